/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walking the stills of a session: knows the processes' code maps, renews them when an address is
 * in none, and holds the buffer for the trace.
 */
#ifndef SF_SESSION_WALKER_H
#define SF_SESSION_WALKER_H

#include "base/intern.h"
#include "base/vec.h"
#include "frozen/unwind/walk.h"
#include "session/process_runtimes.h"
#include "target/images.h"
#include "target/process.h"

/* A process, and the runtimes in it. */
struct sf_walked {
	struct sf_process process;
	struct sf_process_runtimes runtimes;
	bool begun;              /* sf_walker_begin() was called: mappings that were added before it are of this program */
};

struct sf_walker {
	struct sf_images *images;
	struct sf_intern *pids;
	SF_VEC(uint32_t) places;                 /* by a pid's number - 1: the place in processes + 1; 0: none */
	SF_VEC(struct sf_walked) processes;
	SF_VEC(uint32_t) free_places;
	struct sf_trace trace;                   /* the last walk's */
	struct sf_tail_regs *regs;               /* of its frames */
	bool awaiters;                           /* asynchronous functions have those that await them as callers */
	bool completes;                          /* the processes' runtimes may be written to: runtimes.h */
	struct sf_image *kernel;                 /* stands for the kernel's code; NULL: none was seen */
	bool has_records;                        /* the engine records what processes map */
	bool lacks_registers;                    /* the last walk needed registers that only the thread
						  * knows, and went on without some frames */
};

bool sf_walker_init(struct sf_walker *walker, uint32_t max_depth, struct sf_error *err);
void sf_walker_deinit(struct sf_walker *walker);

/*
 * The process is new, or runs another program now: drops its maps. The first time it keeps mappings that were added
 * before: then the process began before it came into sight.
 */
bool sf_walker_begin(struct sf_walker *walker, int32_t pid, struct sf_error *err);

/* The process has ended: gives back what is known of it. Its images stay. */
void sf_walker_end(struct sf_walker *walker, int32_t pid);

/* Code that a process has mapped: used if it has ended before its maps were read. */
bool sf_walker_add_mapping(struct sf_walker *walker, int32_t pid, const struct sf_mapping *mapping, struct sf_error *err);

/* From here on the code of this process can be read, also where the process has not come into sight. False: no memory. */
bool sf_walker_know(struct sf_walker *walker, int32_t pid, struct sf_error *err);

/*
 * A process that was forked. Where it has ended before its code could be read, it has the code that its parent has now.
 * False: no memory.
 */
bool sf_walker_fork(struct sf_walker *walker, int32_t pid, int32_t parent, struct sf_error *err);

/* Whether code of the process is known. Not so if its mappings could not be read, or if it has ended. */
bool sf_walker_has_code(struct sf_walker *walker, int32_t pid);

/* Reads a process's maps and loads its tables before the first still comes. */
bool sf_walker_prepare(struct sf_walker *walker, int32_t pid, struct sf_error *err);

/* Walks into walker->trace, which is valid until the next walk. `tail`: of the thread's last walk; NULL: it has none. */
enum sf_end sf_walker_walk(struct sf_walker *walker, struct sf_still *still, struct sf_tail *tail);

/* The runtimes of a process; NULL when it has none that can be walked. */
struct sf_process_runtimes *sf_walker_runtimes(struct sf_walker *walker, int32_t pid);

/*
 * A message to the user about the runtimes of a process: why frames are not shown, or which data is
 * missing. Each message is returned once; NULL if there is no new one.
 */
const char *sf_walker_news(struct sf_walker *walker, int32_t pid);

/* Reports what can be shown of the runtimes of a process, which is prepared. */
void sf_walker_examine(struct sf_walker *walker, int32_t pid, const struct sf_runtime_findings *findings);

#endif
