/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stillframe, for programs that profile themselves: link with -lstillframe-agent (or load it).
 *
 *   sf_profile_start("out=program.sfs,rate=999hz");
 *   ...
 *   sf_profile_stop();              program.sfs is complete: stillframe report program.sfs
 *
 * All functions may be called from any thread. No function may be called from a signal handler, unless
 * its comment says otherwise. No function prints. Functions that can fail return 0 or an errno value.
 * After a failure sf_profile_error() says in words what failed, why, and what to do.
 *
 * The options are a text, "key=value,key=value" and the same as in the environment variable
 * STILLFRAME; README.md lists them. A comma in a value is written "\,".
 */
#ifndef STILLFRAME_H
#define STILLFRAME_H

#ifdef __cplusplus
extern "C" {
#endif

#define SF_API __attribute__((visibility("default")))

/*
 * Starts sampling this process. NULL: only what STILLFRAME= says. EBUSY: it is being sampled
 * already.
 */
SF_API int sf_profile_start(const char *options);

/* Stops, writes what is left, and gives signal and timers back. 0 also when nothing was running. */
SF_API int sf_profile_stop(void);

/* No samples from now on, and again from now on; sampling stays set up. Cheap. */
SF_API int sf_profile_pause(void);
SF_API int sf_profile_resume(void);

/*
 * Writes what was sampled so far to the stream file, so that it can be read while the program runs.
 * To `path` a copy of it is written, for its owner alone; what stands there is replaced only if it is a
 * stream or empty, and ours. NULL: only the file itself is brought up to date.
 */
SF_API int sf_profile_write(const char *path);

/*
 * In words, the last failure in the calling thread; "" when there was none. Valid until its next
 * call.
 */
SF_API const char *sf_profile_error(void);

/*
 * With only=registered, the threads that are sampled: the calling one, from now until it
 * unregisters or ends. Nested calls count as one. Without it, registering makes a new thread known
 * at once.
 */
SF_API int sf_thread_register(void);
SF_API int sf_thread_unregister(void);

/*
 * A name for the calling thread in the profile, instead of the system's. Copied; at most 63 bytes.
 */
SF_API int sf_thread_name(const char *name);

/*
 * A label that the calling thread's samples carry from now on, such as sf_label_set("trace",
 * "4bf92f35"). One at a time: another key replaces it; NULL as the value takes it off. Copied; at
 * most 255 bytes each. ENOSPC: there are 65,535 different labels already. EAGAIN: too many new ones at
 * once. After a failure its samples carry none.
 */
SF_API int sf_label_set(const char *key, const char *value);

#ifdef __cplusplus
}
#endif
#endif
