/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A dump: every thread of a process, once, with its state, the object of its wait, and its stack with names. An engine
 * yields the stills (capture/dump.h). All processes are looked at before any name is sought.
 */
#ifndef SF_SESSION_DUMP_H
#define SF_SESSION_DUMP_H

#include "base/error.h"
#include "base/vec.h"
#include "capture/dump.h"
#include "capture/engine.h"
#include "frozen/trace.h"
#include "os/task.h"
#include "session/walker.h"
#include "symbols/symbols.h"
#include "target/lock_wait.h"

/* A function at a place. Inlined calls are frames of their own, before the frame of the function that contains them. */
struct sf_dump_frame {
	uint64_t pc, address;
	uint32_t image;         /* number, 0: none */
	uint32_t function, file;/* numbers in sf_dumps.strings, 0: unknown */
	uint32_t line;
	uint8_t  via;
	uint8_t  kind;          /* enum sf_frame_kind */
	bool     inlined;
	bool     approximate;   /* what is inlined here is not known exactly */
};

struct sf_dump_thread {
	struct sf_dump_seen seen;
	char     name[SF_RUNTIME_NAME];  /* a runtime's, or the system's */
	uint8_t  end;           /* enum sf_end */
	char     wait[32];      /* "futex", "page fault"; "" when it does not wait */
	char     detail[160];   /* what for; "" when unknown */
	const char *purpose;    /* of its wait, in the words of its runtime: "waits for a task"; NULL: unknown */
	struct sf_lock_wait lock;        /* what it waits for that another thread has */
	size_t   owner;         /* that thread's place in sf_dump.threads, from 1; 0: not known */
	SF_VEC(struct sf_frame) trace;          /* as walked */
	SF_VEC(struct sf_dump_frame) frames;    /* with names */
};

/* Threads that wait in a circle: each for what the next one has, and the last one for what the first one has. */
struct sf_dump_circle {
	size_t first, n;        /* a thread's place in sf_dump.threads; its `owner` leads to the next */
	bool   timed;           /* a wait has a time-out: it is no deadlock */
};

struct sf_dump {
	const struct sf_dumps *all;
	int32_t pid;
	const struct sf_engine *engine;
	struct sf_error passed;           /* why an engine that holds fewer threads was passed over; its text "": none was */
	char    name[64];
	int32_t tracer;                   /* the process that traces it already (a debugger), 0:
					   * none */
	char    tracer_name[64];
	bool    frozen;                   /* its first thread is: sf_task_is_frozen */
	SF_VEC(struct sf_dump_thread) threads;
	SF_VEC(struct sf_dump_circle) circles;
	const char *note;                 /* what to say of its runtimes, or NULL; the
					   * walker's */
	struct sf_dump_cost cost;
};

/* The dumps of several processes. They share images and names, each of which is read once. */
struct sf_dumps {
	struct sf_walker walker;          /* has the images */
	struct sf_intern *strings;
	SF_VEC(uint32_t) paths;           /* strings: of the images, to be shown */
	SF_VEC(struct sf_dump) items;
};

/* sf_dumps_deinit in any case. */
bool sf_dumps_init(struct sf_dumps *ret, uint32_t max_depth, struct sf_error *err);
void sf_dumps_deinit(struct sf_dumps *dumps);

/* Adds a process, without names. `engine` can dump `pid`. False when no thread could be looked at: nothing is added. */
bool sf_dumps_look(struct sf_dumps *dumps, const struct sf_engine *engine, int32_t pid, struct sf_error *err);

/* After the last look: the names of all frames, and who waits for whom. */
bool sf_dumps_name(struct sf_dumps *dumps, struct sf_error *err);

/* "" for 0. */
const char *sf_dump_string(const struct sf_dump *dump, uint32_t number);
/* The path of an image, to be shown; "" for 0. */
const char *sf_dump_path(const struct sf_dump *dump, uint32_t image);

#endif
