/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records that leave a process with the agent inside: through shared memory (frozen/output/outbox.h)
 * to stillframe, or into a stream file, which every command takes in the place of a recording.
 *
 * Little-endian, 8-byte aligned, each begins with a sf_record_header whose size is a multiple of 8.
 * Text is not zero-terminated: its length is given, zeros fill up to the record's size. Numbers
 * (serials, images, labels) are the sender's, from 1, and never used again. A record that refers to a
 * number follows the record that introduces the number, except where many threads write. A reader must
 * not rely on this order.
 *
 * To add a record: a line in SF_STREAM_TYPES (frozen/output/record.h), a struct, its check in check.c, its
 * line in docs/stream.md. A reader skips unknown types. A change of an old record's meaning needs a new
 * SF_STREAM_VERSION.
 */
#ifndef SF_STREAM_RECORD_H
#define SF_STREAM_RECORD_H

#include <stdint.h>

#include "frozen/output/record.h" /* the list of types; samples, losses and frames */

#define SF_STREAM_VERSION 2
#define SF_STREAM_MAX_RECORD (512u << 10)   /* bytes: SF_MAX_DEPTH frames and some */

struct sf_stream_process {
	struct sf_record_header header;
	int32_t  pid, parent;
	uint64_t time_ns;          /* CLOCK_MONOTONIC, as all times */
	uint64_t unix_ns;          /* CLOCK_REALTIME at the same moment */
	uint64_t rate_mhz, blocked_rate_mhz;
	uint16_t elf_machine;
	uint16_t walk;             /* enum sf_handler_mode */
	uint16_t name_size, command_size;
	char     text[];           /* name, command */
};

struct sf_stream_thread {
	struct sf_record_header header;
	uint32_t serial;
	int32_t  tid;
	uint64_t time_ns;
	uint32_t name_size;
	uint32_t is_full;          /* 1: the whole name, as a virtual machine knows it; 0: the
				    * system's */
	char     name[];
};

struct sf_stream_thread_end {
	struct sf_record_header header;
	uint32_t serial, reserved;
	uint64_t time_ns;
	uint64_t cpu_ns;           /* by the kernel's count, while it was watched */
};

struct sf_stream_image {
	struct sf_record_header header;
	uint32_t number;
	uint32_t build_id_size;    /* up to 32; 0: none */
	uint8_t  build_id[32];
	uint64_t inode, device;
	uint16_t path_size, note_size, reserved[2];
	char     text[];           /* path as in /proc/PID/maps; note */
};

struct sf_stream_again {
	struct sf_record_header header;
	uint32_t serial, ticks;
	uint64_t time_ns;
	uint64_t cpu_ns, wall_ns;
};

struct sf_stream_label {
	struct sf_record_header header;
	uint32_t number;
	uint16_t key_size, value_size;
	char     text[];           /* key, value */
};

struct sf_stream_measure {
	struct sf_record_header header;
	uint64_t counted;          /* when is_counted: in all; else 0 */
	uint16_t name_size, unit_size;
	uint16_t is_counted;       /* 1: this is the end */
	uint16_t reserved;
	char     text[];           /* name, unit */
};

struct sf_stream_note {
	struct sf_record_header header;
	uint32_t size, reserved;
	char     text[];
};

struct sf_stream_end {
	struct sf_record_header header;
	uint64_t time_ns;
	uint64_t lost_records;     /* that found no room */
	uint64_t agent_cpu_ns;     /* of the agent's own threads; also in the process's CPU time */
};

/* A function of a managed frame. Inlined functions come before the function that they are in. */
struct sf_stream_function {
	uint32_t line;             /* 0: unknown */
	uint16_t name_size, linkage_size, file_size;
	uint16_t flags;            /* enum sf_stream_function_flags */
	uint32_t reserved;
};

enum sf_stream_function_flags {
	SF_STREAM_INLINED = 1,     /* into the next one */
	SF_STREAM_APPROXIMATE = 2, /* what is inlined at the place is not known exactly */
};

#define SF_STREAM_MAX_FUNCTIONS 128

struct sf_stream_place {
	struct sf_record_header header;
	uint64_t key;              /* as in frames */
	uint32_t n_functions;      /* at least 1 */
	uint32_t text_size;
	struct sf_stream_function functions[]; /* then the text: name, linkage, file of each */
};

/* A stream file is this, and records until its end. */
#define SF_STREAM_FILE_MAGIC "stillframe stream\n"   /* 18 bytes, and zeros up to 24 */
struct sf_stream_file_header {
	char     magic[24];
	uint32_t version;
	uint32_t reserved;
};

#endif
