/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's threads end and come back, in the order in which they depend on each other. Where the program's first thread ends,
 * another one stands in for it.
 */
#include "agent/aside.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/control.h"
#include "agent/host/spawn.h"
#include "agent/libc/fork_lock.h"
#include "agent/libc/own_proc.h"
#include "agent/libc/syscall_filter.h"
#include "agent/sampler/sampler.h"
#include "agent/sampler/threads.h"
#include "agent/service/service.h"
#include "agent/threads/api_guard.h"
#include "frozen/signal/handler.h"
#include "os/clock.h"
#include "os/parcel.h"

#define N_OWN 2                   /* sampler and service thread, of agent->threads->own */
#define PATIENCE_NS 1000000000u
#define LOOK_NS 20000u
#define LAST_LOOK_NS 20000000u

static pthread_mutex_t *const mutex = &sf_fork_mutexes[SF_FORK_PROFILE];

/* Of who is aside, from begin to end: under the mutex. */
static struct {
	struct sf_parcel parcel;
	sigset_t signals;
	bool left; /* a profile's threads, which have to come back */
} aside;

/* --- the calling thread --- */

/* The sampling signal stays: the sampler waits for a thread that it has requested. No handler of the program runs meanwhile. */
static void hold_signals(sigset_t *before)
{
	sigset_t others;

	sigfillset(&others);
	if (sf_handler.config.signal)
		sigdelset(&others, sf_handler.config.signal);
	pthread_sigmask(SIG_BLOCK, &others, before);
}

/* It and unlock() are called between sf_api_guard_begin() and sf_api_guard_end(): the thread cannot be cancelled meanwhile. */
static bool lock(void)
{
	sigset_t signals;

	hold_signals(&signals);
	if (sf_control_leave()) {
		if (sf_fork_lock_in_time(SF_FORK_PROFILE)) {
			aside.signals = signals;
			return true;
		}
		sf_control_return();
	}
	pthread_sigmask(SIG_SETMASK, &signals, NULL);
	return false;
}

static void unlock(void)
{
	const sigset_t signals = aside.signals;

	pthread_mutex_unlock(mutex);
	pthread_sigmask(SIG_SETMASK, &signals, NULL);
}

/* pthread_join() returns a little before the kernel takes the thread out of the process. */
static void wait_for_end(int32_t tid)
{
	const uint64_t until_ns = sf_now_ns() + PATIENCE_NS;

	while (tid && tgkill(getpid(), tid, 0) == 0 && sf_now_ns() < until_ns)
		sf_sleep_until(sf_now_ns() + LOOK_NS);
}

/* --- the profile --- */

/* The kernel's numbers of the agent's threads; 0: there is none. */
struct tids {
	int32_t own[N_OWN], listener;
};

static struct tids tids_of(const struct sf_agent *agent)
{
	struct tids tids = { .listener = sf_control_listener_tid() };

	for (unsigned i = 0; agent && i < N_OWN; i++)
		tids.own[i] = agent->threads->own[i];
	return tids;
}

static void wait_for_all(const struct tids *tids)
{
	for (unsigned i = 0; i < N_OWN; i++)
		wait_for_end(tids->own[i]);
	wait_for_end(tids->listener);
}

static void leave(struct sf_agent *agent)
{
	aside.left = sf_parcel_make(&aside.parcel);
	if (!aside.left) {
		sf_agent_end_locked();
		return;
	}
	sf_sampler_leave(agent);
	aside.left = sf_service_leave(agent, &aside.parcel);
	if (aside.left)
		return;
	sf_own_fd_close(&aside.parcel.socket);
	sf_agent_abandon_locked();
}

static void come_back(struct sf_agent *agent)
{
	const bool back = sf_service_return(agent, &aside.parcel);

	sf_own_fd_close(&aside.parcel.socket);
	agent->threads->own[2] = sf_control_listener_tid();
	if (back && sf_sampler_return(agent))
		sf_agent_switch_on_locked();
	else if (back)
		sf_agent_end_locked();
	else
		sf_agent_abandon_locked();
}

bool sf_aside_begin(void)
{
	const int32_t listener = sf_control_listener_tid();
	struct sf_error err = { 0 };
	struct sf_agent *agent;
	struct tids tids;

	if (!(sf_agent_running() || sf_control_listener_tid()))
		return false;
	if (!sf_filter_allows(SF_FILTER_ASIDE, &err)) {
		sf_aside_for_good(err.text);
		return false;
	}
	sf_api_guard_begin();
	if (!lock()) {
		sf_api_guard_end();
		return false;
	}
	aside.left = false;
	agent = sf_agent_locked();
	tids = tids_of(agent);
	tids.listener = listener; /* lock() has ended it */
	if (agent)
		leave(agent);
	wait_for_all(&tids);
	return true;
}

void sf_aside_end(void)
{
	sf_control_return();
	if (aside.left)
		come_back(sf_agent_locked());
	unlock();
	sf_api_guard_end();
}

void sf_aside_for_good(const char *why)
{
	struct tids tids = { .listener = sf_control_listener_tid() };

	if (!(sf_agent_running() || sf_control_listener_tid()))
		return;
	sf_api_guard_begin();
	if (sf_fork_lock_in_time(SF_FORK_PROFILE)) {
		tids = tids_of(sf_agent_locked());
		pthread_mutex_unlock(mutex);
	}
	sf_control_unlisten();
	sf_agent_stop(why, NULL);
	wait_for_all(&tids);
	sf_api_guard_end();
}

/* --- the end of the program's first thread --- */

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
		sf_sleep_until(sf_now_ns() + LAST_LOOK_NS);
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
