/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small profile, written by hand, whose sums can be done in the head:
 *
 *   worker 101   main > compute > inner (inlined)   15 ms on a CPU, in two samples, 3 ticks; inner is
 *                                                approximate: more may be inlined into it
 *   worker 101   nothing known of the stack         1 ms blocked
 *   io     102   main > [futex]                     50 ms blocked, and a sample of no weight
 *   worker 103   main > "evil;name\nx" > a script   7 ms, of these 5 ms on a CPU, runnable; in two
 *                                                samples, of 2 ms for trace=0001 and 5 ms for trace=4bf9
 */
#ifndef SF_TESTS_FAKE_PROFILE_H
#define SF_TESTS_FAKE_PROFILE_H

#include "recording/profile/profile.h"

#define FAKE_SCRIPT "</script><img src=x onerror=alert(1)>"
#define FAKE_MAIN_BUILD_ID "abcdef0123"

/* Lives as long as the program. */
const struct sf_profile *fake_profile(void);

#endif
