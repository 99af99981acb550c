/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service thread's own state, for service.c (its thread), map_publisher.c (code maps), image_tables.c (images and their
 * tables), runtime_publisher.c (runtimes) and stream_writer.c (the outbox and the stream's
 * file). Only the service thread touches it, but for sf_service_start() before that thread runs, sf_service_stop() after it has
 * ended, and the words that others wait on. The channel and the file are open in the service thread's own table of
 * descriptors alone, where it could get one: what it opens takes no number from the program, which cannot close it.
 */
#ifndef SF_AGENT_SERVICE_SERVICE_STATE_H
#define SF_AGENT_SERVICE_SERVICE_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "agent/agent.h"
#include "base/vec.h"
#include "os/own_fd.h"
#include "os/parcel.h"
#include "runtime/runtimes.h"
#include "stream/file.h"
#include "target/process.h"
#include "unwind/cache.h"

/* A code map that was replaced: freed when no thread can be using it. */
struct sf_kept_map {
	struct sf_code_map *map;
	uint64_t n_quiet;         /* agent->n_quiet when it was replaced */
};

/* An image whose table was not in the disk cache. */
struct sf_kept_miss {
	uint32_t image;
	bool has_key;             /* else there is nothing to look for */
	uint64_t since_ns;
	struct sf_cache_key key;
};

/* The facts about a thread that are in the stream already, by its entry. */
struct sf_kept_runtime_thread {
	uint32_t serial;          /* of whom the rest is told */
	uint32_t n_looks;         /* at it, the last one at looked_ns */
	uint64_t looked_ns;
	char name[SF_RUNTIME_NAME];
};

struct sf_runtime_memory;
struct description;               /* runtime_publisher.c's: a record that is being made */

struct sf_runtime_publisher {
	struct sf_runtimes all;
	struct sf_runtime_memory *memory; /* of them, as it is read */
	struct description *description;
	struct sf_kept_runtime_thread *threads; /* SF_THREAD_TABLE_SIZE; 4 MB, of which what is used is touched */
	uint16_t *entries;          /* room for SF_THREAD_TABLE_SIZE: those that were taken when so many had been */
	uint32_t n_entries, n_with_serial;
	uint64_t next_look_ns;    /* at them */
	uint64_t n_not_queued;        /* places that could not be described */
};

struct sf_service {
	struct sf_agent *agent;
	bool (*stop)(void);
	struct sf_own_fd channel; /* -1: none */
	bool owns_channel;        /* the start went well: it says DONE, and closes it */
	int32_t pid;

	/* The thread. */
	pthread_t thread;
	_Atomic bool quit;
	_Atomic uint32_t began;   /* it has its own table of descriptors, or cannot have one */
	bool apart;               /* it has */
	bool left;                /* its descriptors wait in the parcel */
	struct sf_parcel *parcel; /* it leaves its descriptors there, or has to take them from there */
	_Atomic uint32_t flush_asked, flushed;
	uint64_t started_ns, signal_checked_ns;

	/* image_tables.c */
	struct sf_images *images;
	struct sf_images *inherited; /* in a forked child that has not started anew: the parent's; NULL: none */
	SF_VEC(struct sf_kept_miss) missing;
	uint64_t missing_tried_ns;

	/* map_publisher.c */
	struct sf_process process;
	SF_VEC(struct sf_kept_map) retired;
	uint32_t n_written;       /* images up to this number have their records */
	uint64_t renew_pause_ns;  /* until the map is read again, unless unknown code is met */
	bool renew;               /* a table has come since the map was made */
	bool urgent;              /* ... or a virtual machine, and its code is run: at once */
	_Atomic bool incomplete;  /* the map that is published lacks tables that may still come */

	/* runtime_publisher.c */
	struct sf_runtime_publisher runtimes;

	/* stream_writer.c */
	struct sf_stream_file *file;
	struct sf_error file_error; /* the first one, if code is set */
	uint64_t agent_cpu_ns;      /* for the END; before that of the threads that have ended */
	bool ended;                 /* the END found room */
	bool in_vain;               /* the reader was waited for as long as may be, ... */
	uint64_t vain_tail;         /* ... and stands where it stood then */
	void *record;               /* room for the largest one, by mmap */
};

/* --- map_publisher.c --- */

bool sf_map_publisher_init(struct sf_service *service, struct sf_error *err);
/* No walk may be under way. */
void sf_map_publisher_deinit(struct sf_service *service);
/*
 * Renews the code map if it is due, loads missing tables, and frees unused maps. Returns the time at
 * which the next turn is due, which may be in the past.
 */
uint64_t sf_map_publisher_turn(struct sf_service *service, uint64_t now_ns);

/* --- image_tables.c --- */

/*
 * Makes service->images. Until sf_image_tables_build_no_more(), tables that are not in the cache are built at once. False: no
 * memory.
 */
bool sf_image_tables_init(struct sf_service *service);
void sf_image_tables_build_no_more(void);
/* After images were loaded, which opens the cache. */
void sf_image_tables_close_cache(void);
/* Looks for tables that are missing, and builds at most one of them: other work of the service thread waits meanwhile. */
void sf_image_tables_look(struct sf_service *service, uint64_t now_ns);
uint64_t sf_image_tables_due_ns(const struct sf_service *service, uint64_t now_ns);

/* --- runtime_publisher.c --- */

/* Attaches to a virtual machine if it is time: with the next map its frames are known. */
void sf_runtime_publisher_look(struct sf_service *service);
/* Refreshes the runtimes if that is due (runtimes.h). The next map has the changes, and is made at once. */
void sf_runtime_publisher_refresh(struct sf_service *service, bool unknown_code);
/*
 * Describes the places that are wanted, looks for new threads and names now and then. True: so many were wanted that
 * the next should not wait long.
 */
bool sf_runtime_publisher_turn(struct sf_service *service, uint64_t now_ns);
/* Writes all records that are not written yet. No thread walks any more. */
void sf_runtime_publisher_end(struct sf_service *service);
void sf_runtime_publisher_deinit(struct sf_service *service);

/* --- stream_writer.c --- */

/* path NULL: stillframe reads the outbox. */
bool sf_stream_writer_init(struct sf_service *service, const char *path, struct sf_error *err);
void sf_stream_writer_deinit(struct sf_service *service);
/* From the outbox into the file, to the disk's cache; how many bytes. */
uint64_t sf_stream_writer_drain(struct sf_service *service);
/*
 * A record that must not be lost: makes room, or waits until the reader does, for a while. Where it has waited in vain
 * the next ones fail at once, until the reader goes on.
 */
bool sf_stream_writer_put(struct sf_service *service, uint16_t type, const struct sf_outbox_piece *pieces,
		     unsigned n);
/* The same for a record of this size that begins with its header, and then text. */
bool sf_stream_writer_put_record(struct sf_service *service, uint16_t type, const void *record, size_t size,
				 const void *text, size_t text_size);
bool sf_stream_writer_end(struct sf_service *service, uint64_t agent_cpu_ns);

#endif
