/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A watched process: its code map, read from the system and renewed when code comes or goes.
 * Ordinary code, one thread at a time.
 */
#ifndef SF_TARGET_PROCESS_H
#define SF_TARGET_PROCESS_H

#include "base/vec.h"
#include "frozen/unwind/code_map.h"
#include "target/images.h"

/* Code that a process has mapped, by the record of an engine. */
struct sf_recorded_mapping {
	struct sf_mapping mapping; /* its path is `path` */
	char *path;
};

struct sf_process {
	int32_t pid;
	int32_t root_pid;             /* once it has ended, its files are looked for below the root of this process; 0: below ours */
	const struct sf_arch *arch;
	struct sf_code_map *map;      /* NULL until the first refresh */
	uint64_t vdso;                /* where `map` has it; 0: nowhere */
	const struct sf_runtime *runtimes[SF_MAX_RUNTIMES]; /* not owned; every new map has them */
	size_t n_runtimes;
	uint64_t since_ns;            /* CLOCK_MONOTONIC, when it came into sight */
	uint64_t refreshed_ns;        /* the end of the last refresh */
	uint64_t refresh_cost_ns;     /* CPU time of the last one, */
	uint64_t load_cost_ns;        /* and of loading the images that were new */
	uint64_t same_pause_ns;       /* longer each time that the map was found to be the same; 0: it was another one */
	uint32_t n_at_once;           /* refreshes that no pause delays */
	bool is_outdated;             /* an engine has recorded a mapping since `map` was read, */
	bool is_overlaid;             /* ... one in the place of other code that `map` has: no walk may use `map` any more */
	bool map_is_inherited;        /* `map` has the parent's code, which the next program's recorded mappings replace */
	bool map_is_recorded;         /* `map` is not read: it is inherited, or made from these: */
	SF_VEC(struct sf_recorded_mapping) recorded; /* the last ones of each address */
};

void sf_process_init(struct sf_process *process, int32_t pid);
void sf_process_deinit(struct sf_process *process);

/*
 * A runtime in the process, not owned, for every new map: takes the place of `old` (NULL: there was none). `runtime` NULL:
 * it is gone. There is room for all.
 */
void sf_process_replace_runtime(struct sf_process *process, const struct sf_runtime *old,
				const struct sf_runtime *runtime);
/* The present map has them, too: no walk may be using it. */
void sf_process_show_runtimes(struct sf_process *process);

/*
 * Reads the memory map anew, and opens and loads images that are new. Replaces process->map if it is another one; the
 * old one is freed: no walk may be using it. On failure the old map stays.
 */
bool sf_process_refresh(struct sf_process *process, struct sf_images *images,
			struct sf_error *err);
/* The same, but an old map that was replaced is not freed: *old_ret, the caller's. NULL: there was none, or it stays. */
bool sf_process_refresh_beside(struct sf_process *process, struct sf_images *images, struct sf_code_map **old_ret,
			       struct sf_error *err);

/*
 * Adds code that the process has mapped, by the record of an engine. The next refresh uses it if the process has ended,
 * or has executed another program, before its memory map was read. A map that was read from the system stays: a
 * runtime's code is in it, too. A file whose place is free in that is added: it was there until a moment ago. Mappings
 * that the new one overlaps are dropped. Beyond a bound nothing is kept. False: no memory.
 */
bool sf_process_add_mapping(struct sf_process *process, struct sf_images *images, const struct sf_mapping *mapping);

/* Whether the map was read from the system, and has code. */
bool sf_process_map_is_read(const struct sf_process *process);

/* It runs another program: nothing is known of it any more but its root. */
void sf_process_restart(struct sf_process *process);

/* Once it has ended, its files are looked for where those of its parent are. `known` is the parent, NULL: it is not watched. */
void sf_process_set_parent(struct sf_process *process, int32_t parent, const struct sf_process *known);

/* A process that has just been forked has its parent's map, where its own cannot be read any more. False: no memory. */
bool sf_process_fork(struct sf_process *process, const struct sf_process *parent);

/*
 * How long a map is kept after it was read, though a walk met code that is not in it. Reading it takes less than a
 * twentieth of the time then. A map that stays the same is read more and more seldom: some programs have code without
 * rules, and each walk through it might have met new code. In a program's first second, when the loader maps its
 * libraries, the first refreshes are made at once, and later ones take less than a third of the time. While images are
 * loaded, they take half, as each image is loaded once.
 */
uint64_t sf_process_refresh_pause_ns(const struct sf_process *process, uint64_t now_ns);

/*
 * Whether the map may have code that has gone, with other code in its place: a record says so, or the map is old. has_records:
 * the engine records what processes map.
 */
bool sf_process_may_mislead(const struct sf_process *process, bool has_records, uint64_t now_ns);

/*
 * sf_process_refresh, for a pc that is in no region, unless the map was read too recently. A process that executes another
 * program begins anew: its map is renewed at once. True: the map is another one now.
 */
bool sf_process_refresh_stale(struct sf_process *process, struct sf_images *images);

/* Before a walk: the map is renewed if there is none, or if it may mislead. */
void sf_process_refresh_due(struct sf_process *process, struct sf_images *images, bool has_records);

#endif
