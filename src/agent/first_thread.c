/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in of the program's first thread: part of first_thread.h. */
#include "agent/first_thread.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"
#include "agent/aside.h"
#include "agent/control.h"
#include "agent/host/spawn.h"
#include "agent/libc/own_proc.h"
#include "agent/threads/api_guard.h"
#include "os/clock.h"

#define LOOK_NS 20000000u

/* Signals of the process come to this thread from here on, as they would come to the program's last one. */
static void be_the_last(void)
{
	sigset_t none;

	sf_control_unlisten();
	sf_agent_stop(NULL, NULL);
	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
}

static void *stand_in(void *arg)
{
	(void)arg;
	pthread_detach(pthread_self());
	while (!sf_own_has_none(sf_spawned_count())) {
		sf_sleep_until(sf_now_ns() + LOOK_NS);
		sf_spawned_follow();
	}
	be_the_last();
	return NULL;
}

void sf_first_thread_ends(void)
{
	pthread_t thread;
	int32_t tid;

	if (!sf_own_has_others(sf_spawned_count())) {
		sf_aside_for_good(NULL);
		return;
	}
	sf_api_guard_begin();
	if (!sf_spawn(&thread, &tid, stand_in, NULL, "sf-last", NULL))
		sf_agent_stop("the program's first thread has ended, and no other thread could be made", NULL);
	sf_api_guard_end();
}
