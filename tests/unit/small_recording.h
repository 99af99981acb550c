/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings written by hand through the real writer, a line per fact. Addresses name functions:
 * address 0x1000 * n + 0x11 is in function n of module 1, "/opt/app/libwork.so".
 */
#ifndef SMALL_RECORDING_H
#define SMALL_RECORDING_H

#include "recording/profile/profile.h"
#include "recording/recording.h"

#define SMALL_START_NS 5000000000u
#define MS 1000000u

/* A folder of its own for each test (what cmocka calls around it), and a path in it. */
int small_folder_make(void **state);
int small_folder_remove(void **state);
const char *small_path(const char *name);

struct sf_recording *small_start(const char *path);
uint32_t small_thread(struct sf_recording *recording, int tid, const char *name);

/* The function that is a guess wherever it is a caller; 0: none. */
extern unsigned small_guess;

/* Functions from the outermost to the innermost, 0 ends them. */
uint32_t small_stack(struct sf_recording *recording, enum sf_end end, const char *wait,
		     const unsigned *functions);
#define SMALL_STACK(recording, end, wait, ...)                                                     \
	small_stack((recording), (end), (wait), (const unsigned[]){ __VA_ARGS__, 0 })

/* A sample `at` milliseconds after the start, of one tick. */
void small_sample(struct sf_recording *recording, unsigned at_ms, uint32_t thread, uint32_t stack,
		  enum sf_state state, unsigned cpu_ms, unsigned wall_ms);

/* The same with a label's number (0: none). */
void small_labelled(struct sf_recording *recording, unsigned at_ms, uint32_t thread, uint32_t stack,
		    enum sf_state state, unsigned cpu_ms, unsigned wall_ms, uint32_t label);

/*
 * Names: function n is called "fn<n>" in "work.c"; function 3 is inlined into function 2 where it
 * stands (so address 3 has the functions fn3, fn2), function 9 has no name,
 * function 7 is approximate.
 */
void small_names(struct sf_recording *recording);
void small_finish(struct sf_recording *recording);

struct sf_profile *small_load(const char *path);

/* The same; one that was cut short gets these names. */
struct sf_profile *small_load_named(const char *path);

/* The number that a query on the file yields. */
int64_t small_query(const char *path, const char *sql);

/* The same by SQLite as stillframe opens it, which reads what a killed writer left to do. */
int64_t small_read(const char *path, const char *sql);

/* Every page of the file is as SQLite wants it, read in that way. */
void small_check(const char *path);

#endif
