/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler's thread: its loop, its start and its end. It takes no lock that a thread of the
 * program may own, and allocates nothing while a thread is held.
 */
#include "agent/sampler/sampler.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include "agent/sampler/select_threads.h"
#include "agent/clocks/clocks.h"
#include "agent/libc/own_proc.h"
#include "agent/threads/labels.h"
#include "agent/sampler/thread_poll.h"
#include "agent/host/spawn.h"
#include "agent/sampler/cpu_affinity.h"
#include "agent/sampler/round_call.h"
#include "agent/sampler/priority.h"
#include "agent/sampler/requests.h"
#include "agent/sampler/threads.h"
#include "frozen/random.h"
#include "frozen/raw.h"
#include "frozen/signal/ticks.h"
#include "os/own_fd.h"

#define LOOKS_AT_ONCE 64         /* threads, between two looks at the slots: 10 us, or 300 if all ran */
#define IDLE_NS 100000000        /* between two looks, where only clocks are looked after */
#define SETTLE_NS 5000000        /* while requests are under way */
#define SOON_NS 500000           /* until a round is tried again */
#define END_NS 200000000         /* for threads that stand when it ends */
#define STOP_NS 500000000        /* for a call of a round: stillframe waits for 0.9 s, after Ctrl-C (capture/signal/signal.c) */

const struct sf_sampler_round *_Atomic sf_sampler_round;

struct sf_sampler {
	struct sf_agent *agent;
	struct sf_requests requests;
	struct sf_cpu_affinity affinity;
	struct sf_priority priority;
	pthread_t pthread;
	sem_t    ready;
	struct sf_wake_up ended;     /* posted once, when the thread ends */
	int32_t  tid;
	_Atomic bool stop;
	bool     joined, paused;
	bool     leaves;             /* it ends for a while only */
	bool     is_left;            /* its thread was left behind in a call, and owns this; the thread's own */
	uint64_t cpu_ns;             /* of its threads that have ended */
	uint64_t random;
	uint64_t look_period_ns, tick_period_ns; /* 0: none */
	uint64_t next_look_ns, next_tick_ns;
	uint64_t woke_ns;            /* who was displaced by that waits no longer than since then */
	uint32_t looked;             /* threads of the present round of looks; n: it is over */
};

/* --- its own clock --- */

/* Half to one and a half periods from now: no program can fall into step with it. */
static uint64_t next_time(struct sf_sampler *sampler, uint64_t now_ns, uint64_t period_ns)
{
	return now_ns + period_ns / 2 + sf_random(&sampler->random) % (period_ns + 1);
}

/* Whether running threads have no clock of their own, and must be requested. */
static bool must_request(const struct sf_agent *agent)
{
	return !agent->options.event && (!agent->clock || agent->clock == &sf_agent_clock_tick);
}

static void set_periods(struct sf_sampler *sampler)
{
	const struct sf_agent *agent = sampler->agent;

	sampler->look_period_ns = sf_period_ns(agent->options.blocked_rate_mhz);
	if (!sampler->look_period_ns || agent->options.clock == SF_AGENT_CPU)
		sampler->look_period_ns = IDLE_NS;
	if (must_request(agent))
		sampler->tick_period_ns = sf_period_ns(agent->options.rate_mhz);
}

/* --- requests --- */

static void request_selected(struct sf_sampler *sampler)
{
	struct sf_agent *agent = sampler->agent;
	uint32_t chosen[SF_MAX_SELECTED];
	uint32_t n = sf_select_threads(agent, sampler->tick_period_ns, &sampler->random, chosen);

	for (uint32_t i = 0; i < n; i++) {
		const struct sf_agent_thread *thread = &agent->threads->all[chosen[i]];

		if (sf_is_awake(thread) &&
		    !sf_requests_send(&sampler->requests, thread, sampler->woke_ns))
			break;
		sf_handler_serve(&sf_handler, agent->workspace);
	}
}

/* --- its turn --- */

static void look_on(struct sf_sampler *sampler, uint64_t now_ns)
{
	struct sf_agent_threads *threads = sampler->agent->threads;

	for (unsigned i = 0; i < LOOKS_AT_ONCE && sampler->looked < threads->n; i++) {
		struct sf_agent_thread *thread = &threads->all[sampler->looked++];
		const uint64_t before_ns = thread->cpu_ns;

		sf_thread_poll(sampler->agent, thread, now_ns);
		if (thread->cpu_ns != before_ns)
			sf_priority_see(&sampler->priority, thread->tid);
	}
}

static void pause_or_resume(struct sf_sampler *sampler, bool pause, uint64_t now_ns)
{
	struct sf_agent_threads *threads = sampler->agent->threads;

	if (pause == sampler->paused)
		return;
	sampler->paused = pause;
	if (pause)
		sf_agent_threads_pause(threads);
	else
		sf_agent_threads_resume(threads, now_ns);
}

/*
 * The first thread has ended unnoticed by an exit(2) of its own, and it was the last: the process ends with the agent's
 * threads.
 */
static void look_at_last(const struct sf_sampler *sampler)
{
	struct sf_agent *agent = sampler->agent;

	if (agent->threads->n > 1 || atomic_load(&agent->deserted) || !sf_own_has_none(sf_spawned_count()))
		return;
	atomic_store(&agent->deserted, true);
	sf_wake_up_post(&sf_handler.output.wake_up);
}

static bool all_free(void)
{
	for (uint32_t i = 0; i < sf_handler.link.n_slots; i++) {
		if (sf_slot_state(atomic_load(&sf_handler.link.slots[i].word)) != SF_SLOT_FREE)
			return false;
	}
	return true;
}

/* False: not now. */
static bool make_round(struct sf_sampler *sampler, uint64_t now_ns)
{
	const struct sf_sampler_round *round = atomic_load(&sf_sampler_round);

	if (!round)
		return true;
	if (sampler->requests.n || !all_free())
		return false;
	sampler->is_left = !round->make(sampler->agent, now_ns);
	return true;
}

static void tick_clock(struct sf_sampler *sampler, uint64_t now_ns)
{
	if (!make_round(sampler, now_ns)) {
		sampler->next_tick_ns = now_ns + SOON_NS;
		return;
	}
	if (sampler->is_left)
		return;
	request_selected(sampler);
	sampler->next_tick_ns = next_time(sampler, now_ns, sampler->tick_period_ns);
}

/* A round of looks is not mixed with a scan, which moves threads about. */
static void tick(struct sf_sampler *sampler, uint64_t now_ns)
{
	struct sf_agent_threads *threads = sampler->agent->threads;
	bool looking = sampler->looked < threads->n;

	if (!looking)
		sf_agent_threads_scan(threads, now_ns);
	if (sampler->paused) {
		sampler->looked = threads->n;
		return;
	}
	if (!looking && now_ns >= sampler->next_look_ns) {
		sf_spawned_follow();
		look_at_last(sampler);
		sf_priority_settle(&sampler->priority);
		sampler->looked = 0;
		sampler->next_look_ns = next_time(sampler, now_ns, sampler->look_period_ns);
	} else if (!looking) {
		sampler->looked = threads->n;
	}
	look_on(sampler, now_ns);
	if (sampler->tick_period_ns && now_ns >= sampler->next_tick_ns)
		tick_clock(sampler, now_ns);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t wake_time(const struct sf_sampler *sampler, uint64_t now_ns)
{
	struct sf_agent_threads *threads = sampler->agent->threads;
	const uint64_t look_ns = sampler->paused ? UINT64_MAX : sampler->next_look_ns;
	uint64_t time_ns = earlier(look_ns, sf_agent_threads_scan_ns(threads, look_ns));

	if (!sampler->paused && sampler->looked < threads->n)
		time_ns = now_ns;
	if (!sampler->paused && sampler->tick_period_ns)
		time_ns = earlier(time_ns, sampler->next_tick_ns);
	if (sampler->requests.n)
		time_ns = earlier(time_ns, now_ns + SETTLE_NS);
	return time_ns;
}

/* With the walk in the handler, threads wake the sampler only for requests. */
static bool is_woken_by_ticks(const struct sf_agent *agent)
{
	return agent->options.walk == SF_AGENT_SAMPLER;
}

static void turn(struct sf_sampler *sampler)
{
	struct sf_agent *agent = sampler->agent;
	uint32_t heard = sf_wake_up_count(&sf_handler.link.wake_up);
	uint64_t now_ns, wake_ns;

	sf_handler_serve(&sf_handler, agent->workspace);
	now_ns = sf_raw_now_ns();
	sf_requests_settle(&sampler->requests, now_ns);
	pause_or_resume(sampler, atomic_load(&agent->paused), now_ns);
	tick(sampler, now_ns);
	if (sampler->is_left)
		return;
	atomic_fetch_add(&agent->n_quiet, 1);
	wake_ns = wake_time(sampler, now_ns);
	if (is_woken_by_ticks(agent))
		sf_cpu_affinity_move(&sampler->affinity, now_ns, wake_ns);
	sf_wake_up_wait(&sf_handler.link.wake_up, heard, wake_ns);
	sampler->woke_ns = sf_raw_now_ns();
	sf_cpu_affinity_woke(&sampler->affinity, sampler->woke_ns);
}

/* --- the thread --- */

/* Serves the threads that stand, and waits for those that were requested, until there are none, or until until_ns. */
static void serve_the_rest(struct sf_sampler *sampler, uint64_t until_ns)
{
	uint64_t now_ns = sf_raw_now_ns();

	while (now_ns < until_ns) {
		uint32_t heard = sf_wake_up_count(&sf_handler.link.wake_up);

		sf_handler_serve(&sf_handler, sampler->agent->workspace);
		sf_requests_settle(&sampler->requests, now_ns);
		if (all_free() && !sampler->requests.n)
			break;
		sf_wake_up_wait(&sf_handler.link.wake_up, heard, now_ns + 1000000);
		now_ns = sf_raw_now_ns();
	}
}

/*
 * The clocks are closed, but a signal of a clock may still be pending. So the handler is switched off before the accounts
 * are closed. Threads that took a slot before they saw the new mode are served: a thread checks the mode again after it
 * has taken its slot (handler.c), and the sampler checks the slots after it has set the mode.
 */
static void switch_off(struct sf_sampler *sampler)
{
	serve_the_rest(sampler, sf_raw_now_ns() + END_NS);
	atomic_store(&sf_handler.link.mode, SF_MODE_OFF);
	atomic_thread_fence(memory_order_seq_cst);
	serve_the_rest(sampler, sf_raw_now_ns() + END_NS);
}

static void wind_up(struct sf_sampler *sampler)
{
	struct sf_agent *agent = sampler->agent;
	uint64_t now_ns = sf_raw_now_ns();

	pause_or_resume(sampler, false, now_ns);
	sf_agent_threads_disarm(agent->threads);
	for (uint32_t i = 0; i < agent->threads->n; i++)
		sf_thread_poll(agent, &agent->threads->all[i], now_ns);
	switch_off(sampler);
	sf_agent_threads_end(agent->threads, sf_raw_now_ns());
}

/* The accounts stay open. A perf clock ends with this thread's descriptors; the next thread arms new clocks. */
static void leave(struct sf_sampler *sampler)
{
	struct sf_agent_threads *threads = sampler->agent->threads;

	sf_agent_threads_disarm(threads);
	switch_off(sampler);
	threads->own[0] = 0;
	threads->own_ended_cpu_ns += sf_raw_thread_cpu_ns();
}

static void free_sampler(struct sf_sampler *sampler)
{
	sf_requests_deinit(&sampler->requests);
	sem_destroy(&sampler->ready);
	free(sampler);
}

static void *run(void *arg)
{
	struct sf_sampler *sampler = arg;
	struct sf_agent_threads *threads = sampler->agent->threads;

	sf_priority_init(&sampler->priority);
	sf_priority_see(&sampler->priority, sf_handler.config.pid);
	sf_priority_settle(&sampler->priority);
	sf_handler.config.remote_clocks = sf_own_table(&sf_handler.code.memory.mem_fd, 1);
	sampler->tid = (int32_t)sf_raw0(SYS_gettid);
	threads->own[0] = sampler->tid;
	sf_cpu_affinity_init(&sampler->affinity, &sf_handler.link.wake_up);
	sf_agent_threads_hurry();
	sf_agent_threads_scan(threads, sf_raw_now_ns());
	sampler->looked = threads->n;
	sem_post(&sampler->ready);
	while (!atomic_load(&sampler->stop) && !sampler->is_left)
		turn(sampler);
	if (sampler->is_left) {
		free_sampler(sampler);
		return NULL;
	}
	(sampler->leaves ? leave : wind_up)(sampler);
	sf_cpu_affinity_end(&sampler->affinity);
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
	sampler->agent = agent;
	sampler->random = sf_raw_now_ns() | 1;
	agent->threads->clock = agent->clock;
	if (agent->clock == &sf_agent_clock_timer)
		agent->threads->between = sf_agent_clock_between_ticks(agent->options.cpu_clock);
	agent->threads->tick_ns = sf_agent_clock_tick_ns();
	set_periods(sampler);
	sf_agent_labels_begin();
	sem_init(&sampler->ready, 0, 0);
	if (sf_requests_init(&sampler->requests, err) && start(sampler, err)) {
		agent->sampler = sampler;
		return true;
	}
	free_sampler(sampler);
	return false;
}

/* --- the end --- */

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

	if (!round || !sf_round_call_leave())
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

bool sf_sampler_return(struct sf_agent *agent, struct sf_error *err)
{
	struct sf_sampler *sampler = agent->sampler;

	if (!sampler)
		return sf_fail(err, SF_E_SYSTEM, "the sampler was left behind in a call");
	sampler->leaves = false;
	atomic_store(&sampler->stop, false);
	if (!start(sampler, err))
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
