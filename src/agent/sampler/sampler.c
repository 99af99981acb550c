/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler's thread: its start and its end, also where it is in a call that does not return. Its loop is in loop.c. */
#include "agent/sampler/sampler.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/clocks/clocks.h"
#include "agent/host/spawn.h"
#include "agent/sampler/loop.h"
#include "agent/sampler/threads.h"
#include "agent/threads/thread_register.h"
#include "frozen/raw.h"

#define STOP_NS 500000000        /* for a call of a round: stillframe waits for 0.9 s, after Ctrl-C (capture/signal/signal.c) */

/* --- a call of a round: one word, which both threads change by compare-and-exchange --- */

enum { NO_CALL, CALL, LEFT };

static _Atomic uint32_t state;
static pid_t left_in;          /* the process; set before the state is LEFT */

static bool change(uint32_t from, uint32_t to)
{
	return atomic_compare_exchange_strong(&state, &from, to);
}

/* A forked child begins with its parent's state. */
void sf_round_call_begin(void)
{
	atomic_store(&state, CALL);
}

bool sf_round_call_end(void)
{
	return change(CALL, NO_CALL);
}

void sf_round_call_is_undone(void)
{
	atomic_store(&state, NO_CALL);
}

/* Leaves the call behind that is under way. False: there is none. */
static bool leave_call(void)
{
	left_in = getpid();
	return change(CALL, LEFT);
}

bool sf_round_call_is_left(void)
{
	return atomic_load(&state) == LEFT && left_in == getpid();
}

/* --- the thread --- */

struct sf_sampler {
	struct sf_sampler_loop loop;
	pthread_t pthread;
	sem_t    ready;
	struct sf_wake_up ended;     /* posted once, when the thread ends */
	int32_t  tid;
	_Atomic bool stop;
	bool     joined;
	bool     leaves;             /* it ends for a while only */
	uint64_t cpu_ns;             /* of its threads that have ended */
};

static void free_sampler(struct sf_sampler *sampler)
{
	sf_sampler_loop_deinit(&sampler->loop);
	sem_destroy(&sampler->ready);
	free(sampler);
}

static void *run(void *arg)
{
	struct sf_sampler *sampler = arg;
	bool goes_on = true;

	sampler->tid = (int32_t)sf_raw0(SYS_gettid);
	sf_sampler_loop_begin(&sampler->loop, sampler->tid);
	sem_post(&sampler->ready);
	while (goes_on && !atomic_load(&sampler->stop))
		goes_on = sf_sampler_loop_turn(&sampler->loop);
	if (!goes_on) { /* it was left behind in a call, and is this thread's own */
		free_sampler(sampler);
		return NULL;
	}
	sf_sampler_loop_end(&sampler->loop, sampler->leaves);
	sampler->cpu_ns += sf_raw_thread_cpu_ns();
	sf_wake_up_post(&sampler->ended);
	return NULL;
}

/* Waits until the new thread has scanned the threads and armed their clocks. */
static bool start(struct sf_sampler *sampler, struct sf_error *err)
{
	int32_t tid;

	atomic_store(&sampler->ended.n_posts, 0);
	if (!sf_spawn(&sampler->pthread, &tid, run, sampler, "sf-sampler", err))
		return false;
	while (sem_wait(&sampler->ready) != 0)
		;
	return true;
}

bool sf_sampler_start(struct sf_agent *agent, struct sf_error *err)
{
	struct sf_sampler *sampler = calloc(1, sizeof(*sampler));

	if (!sampler)
		return sf_fail_memory(err);
	agent->threads->clock = agent->clock;
	if (agent->clock == &sf_agent_clock_timer)
		agent->threads->between = sf_agent_clock_between_ticks(agent->options.cpu_clock);
	agent->threads->tick_ns = sf_agent_clock_tick_ns();
	sf_agent_labels_begin();
	sem_init(&sampler->ready, 0, 0);
	if (sf_sampler_loop_init(&sampler->loop, agent, err) && start(sampler, err)) {
		agent->sampler = sampler;
		return true;
	}
	free_sampler(sampler);
	return false;
}

static bool has_ended(struct sf_sampler *sampler, uint64_t until_ns)
{
	while (!sf_wake_up_count(&sampler->ended) && sf_raw_now_ns() < until_ns)
		sf_wake_up_wait(&sampler->ended, 0, until_ns);
	return sf_wake_up_count(&sampler->ended) != 0;
}

/* No slot is taken and no request is open while a call is under way. The sampler is its thread's from here on. */
static bool leave_behind(struct sf_agent *agent)
{
	const struct sf_sampler_round *round = atomic_load(&sf_sampler_round);
	const pthread_t thread = agent->sampler->pthread;
	const uint64_t cpu_ns = sf_sampler_cpu_ns(agent);

	if (!round || !leave_call())
		return false;
	pthread_detach(thread);
	agent->sampler = NULL;
	agent->left_cpu_ns = cpu_ns;
	atomic_store(&sf_handler.link.mode, SF_MODE_OFF);
	round->lose(agent);
	sf_agent_threads_end(agent->threads, sf_raw_now_ns());
	return true;
}

void sf_sampler_stop(struct sf_agent *agent)
{
	struct sf_sampler *sampler = agent->sampler;

	if (!sampler || sampler->joined)
		return;
	atomic_store(&sampler->stop, true);
	sf_agent_threads_hurry(); /* posts the wake-up */
	while (!has_ended(sampler, sf_raw_now_ns() + STOP_NS)) {
		if (leave_behind(agent))
			return;
	}
	pthread_join(sampler->pthread, NULL);
	sampler->joined = true;
}

void sf_sampler_leave(struct sf_agent *agent)
{
	agent->sampler->leaves = true;
	sf_sampler_stop(agent);
}

bool sf_sampler_return(struct sf_agent *agent)
{
	struct sf_sampler *sampler = agent->sampler;

	if (!sampler)
		return false;
	sampler->leaves = false;
	atomic_store(&sampler->stop, false);
	if (!start(sampler, NULL))
		return false;
	sampler->joined = false;
	return true;
}

void sf_sampler_destroy(struct sf_agent *agent)
{
	struct sf_sampler *sampler = agent->sampler;

	if (!sampler)
		return;
	sf_sampler_stop(agent);
	if (agent->sampler)
		free_sampler(sampler);
	agent->sampler = NULL;
}

uint64_t sf_sampler_cpu_ns(const struct sf_agent *agent)
{
	const struct sf_sampler *sampler = agent->sampler;
	uint64_t cpu_ns = 0;

	if (!sampler)
		return agent->left_cpu_ns;
	if (!sampler->joined)
		sf_agent_thread_cpu(sampler->tid, &cpu_ns);
	return sampler->cpu_ns + cpu_ns;
}
