/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler's loop. It takes no lock that a thread of the program may own, and allocates nothing while a thread is
 * held.
 */
#include "agent/sampler/loop.h"

#include "agent/clocks/clocks.h"
#include "agent/host/spawn.h"
#include "agent/libc/own_proc.h"
#include "agent/sampler/sampler.h"
#include "agent/sampler/thread_poll.h"
#include "agent/sampler/threads.h"
#include "frozen/random.h"
#include "frozen/raw.h"
#include "frozen/signal/ticks.h"
#include "os/own_fd.h"

#define LOOKS_AT_ONCE 64         /* threads, between two looks at the slots: 10 us, or 300 if all ran */
#define IDLE_NS 100000000        /* between two looks, where only clocks are looked after */
#define SETTLE_NS 5000000        /* while requests are under way */
#define KEPT_NS 20000000         /* while stills are kept: a new map wakes it sooner */
#define SOON_NS 500000           /* until a round is tried again */
#define END_NS 200000000         /* for threads that stand when it ends */

const struct sf_sampler_round *_Atomic sf_sampler_round;

/* Half to one and a half periods from now: no program can fall into step with it. */
static uint64_t next_time(struct sf_sampler_loop *loop, uint64_t now_ns, uint64_t period_ns)
{
	return now_ns + period_ns / 2 + sf_random(&loop->random) % (period_ns + 1);
}

/* Whether running threads have no clock of their own, and must be requested. */
static bool must_request(const struct sf_agent *agent)
{
	return !agent->options.event && (!agent->clock || agent->clock == &sf_agent_clock_tick);
}

static void set_periods(struct sf_sampler_loop *loop)
{
	const struct sf_agent *agent = loop->agent;

	loop->look_period_ns = sf_period_ns(agent->options.blocked_rate_mhz);
	if (!loop->look_period_ns || agent->options.clock == SF_AGENT_CPU)
		loop->look_period_ns = IDLE_NS;
	if (must_request(agent))
		loop->tick_period_ns = sf_period_ns(agent->options.rate_mhz);
}

bool sf_sampler_loop_init(struct sf_sampler_loop *loop, struct sf_agent *agent, struct sf_error *err)
{
	loop->agent = agent;
	loop->random = sf_raw_now_ns() | 1;
	set_periods(loop);
	return sf_requests_init(&loop->requests, err);
}

void sf_sampler_loop_deinit(struct sf_sampler_loop *loop)
{
	sf_requests_deinit(&loop->requests);
}

void sf_sampler_loop_begin(struct sf_sampler_loop *loop, int32_t tid)
{
	struct sf_agent_threads *threads = loop->agent->threads;

	sf_priority_init(&loop->priority);
	sf_priority_see(&loop->priority, sf_handler.config.pid);
	sf_priority_settle(&loop->priority);
	sf_handler.config.remote_clocks = sf_own_table(&sf_handler.code.memory.mem_fd, 1);
	threads->own[0] = tid;
	sf_cpu_affinity_init(&loop->affinity, &sf_handler.link.wake_up);
	sf_sleep_budget_begin(&threads->sleep_budget, (unsigned)CPU_COUNT(&loop->affinity.allowed), sf_raw_now_ns());
	sf_agent_threads_hurry();
	sf_agent_threads_scan(threads, sf_raw_now_ns());
	loop->looked = threads->n;
}

/* --- its turn --- */

static void look_on(struct sf_sampler_loop *loop, uint64_t now_ns)
{
	struct sf_agent_threads *threads = loop->agent->threads;

	for (unsigned i = 0; i < LOOKS_AT_ONCE && loop->looked < threads->n; i++) {
		struct sf_agent_thread *thread = &threads->all[loop->looked++];
		const uint64_t before_ns = thread->cpu_ns;

		sf_thread_poll(loop->agent, thread, now_ns);
		if (thread->cpu_ns != before_ns)
			sf_priority_see(&loop->priority, thread->tid);
	}
}

static void pause_or_resume(struct sf_sampler_loop *loop, bool pause, uint64_t now_ns)
{
	struct sf_agent_threads *threads = loop->agent->threads;

	if (pause == loop->paused)
		return;
	loop->paused = pause;
	if (pause)
		sf_agent_threads_pause(threads);
	else
		sf_agent_threads_resume(threads, now_ns);
}

/*
 * The first thread has ended unnoticed by an exit(2) of its own, and it was the last: the process ends with the agent's
 * threads.
 */
static void look_at_last(const struct sf_sampler_loop *loop)
{
	struct sf_agent *agent = loop->agent;

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
static bool make_round(struct sf_sampler_loop *loop, uint64_t now_ns)
{
	const struct sf_sampler_round *round = atomic_load(&sf_sampler_round);

	if (!round)
		return true;
	if (loop->requests.n || !all_free())
		return false;
	loop->is_left = !round->make(loop->agent, now_ns);
	return true;
}

static void tick_clock(struct sf_sampler_loop *loop, uint64_t now_ns)
{
	if (!make_round(loop, now_ns)) {
		loop->next_tick_ns = now_ns + SOON_NS;
		return;
	}
	if (loop->is_left)
		return;
	sf_requests_send_due(&loop->requests, loop->agent, loop->tick_period_ns, &loop->random, loop->woke_ns);
	loop->next_tick_ns = next_time(loop, now_ns, loop->tick_period_ns);
}

/* A round of looks is not mixed with a scan, which moves threads about. */
static void tick(struct sf_sampler_loop *loop, uint64_t now_ns)
{
	struct sf_agent_threads *threads = loop->agent->threads;
	bool looking = loop->looked < threads->n;

	if (!looking)
		sf_agent_threads_scan(threads, now_ns);
	if (loop->paused) {
		loop->looked = threads->n;
		return;
	}
	if (!looking && now_ns >= loop->next_look_ns) {
		sf_spawned_follow();
		look_at_last(loop);
		sf_priority_settle(&loop->priority);
		loop->looked = 0;
		sf_sleep_budget_round(&threads->sleep_budget, now_ns);
		loop->next_look_ns = next_time(loop, now_ns, loop->look_period_ns);
	} else if (!looking) {
		loop->looked = threads->n;
	}
	look_on(loop, now_ns);
	if (loop->tick_period_ns && now_ns >= loop->next_tick_ns)
		tick_clock(loop, now_ns);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t wake_time(const struct sf_sampler_loop *loop, uint64_t now_ns)
{
	struct sf_agent_threads *threads = loop->agent->threads;
	const uint64_t look_ns = loop->paused ? UINT64_MAX : loop->next_look_ns;
	uint64_t time_ns = earlier(look_ns, sf_agent_threads_scan_ns(threads, look_ns));

	if (!loop->paused && loop->looked < threads->n)
		time_ns = now_ns;
	if (!loop->paused && loop->tick_period_ns)
		time_ns = earlier(time_ns, loop->next_tick_ns);
	if (loop->requests.n)
		time_ns = earlier(time_ns, now_ns + SETTLE_NS);
	if (sf_kept_stills_any(sf_handler.link.kept))
		time_ns = earlier(time_ns, now_ns + KEPT_NS);
	return time_ns;
}

/* With the walk in the handler, threads wake the sampler only for requests. */
static bool is_woken_by_ticks(const struct sf_agent *agent)
{
	return agent->options.walk == SF_AGENT_SAMPLER;
}

bool sf_sampler_loop_turn(struct sf_sampler_loop *loop)
{
	struct sf_agent *agent = loop->agent;
	uint32_t heard = sf_wake_up_count(&sf_handler.link.wake_up);
	uint64_t now_ns, wake_ns;

	sf_handler_serve(&sf_handler, agent->workspace);
	now_ns = sf_raw_now_ns();
	sf_handler_walk_kept(&sf_handler, agent->workspace, now_ns);
	sf_requests_settle(&loop->requests, now_ns);
	pause_or_resume(loop, atomic_load(&agent->paused), now_ns);
	tick(loop, now_ns);
	if (loop->is_left)
		return false;
	atomic_fetch_add(&agent->n_quiet, 1);
	wake_ns = wake_time(loop, now_ns);
	if (is_woken_by_ticks(agent))
		sf_cpu_affinity_move(&loop->affinity, now_ns, wake_ns);
	sf_wake_up_wait(&sf_handler.link.wake_up, heard, wake_ns);
	loop->woke_ns = sf_raw_now_ns();
	sf_cpu_affinity_woke(&loop->affinity, loop->woke_ns);
	return true;
}

/* --- the end --- */

/* Serves the threads that stand, and waits for those that were requested, until there are none, or until until_ns. */
static void serve_the_rest(struct sf_sampler_loop *loop, uint64_t until_ns)
{
	uint64_t now_ns = sf_raw_now_ns();

	while (now_ns < until_ns) {
		uint32_t heard = sf_wake_up_count(&sf_handler.link.wake_up);

		sf_handler_serve(&sf_handler, loop->agent->workspace);
		sf_requests_settle(&loop->requests, now_ns);
		if (all_free() && !loop->requests.n)
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
static void switch_off(struct sf_sampler_loop *loop)
{
	serve_the_rest(loop, sf_raw_now_ns() + END_NS);
	atomic_store(&sf_handler.link.mode, SF_MODE_OFF);
	atomic_thread_fence(memory_order_seq_cst);
	serve_the_rest(loop, sf_raw_now_ns() + END_NS);
	sf_handler_settle_kept(&sf_handler, loop->agent->workspace, 0);
}

static void wind_up(struct sf_sampler_loop *loop)
{
	struct sf_agent *agent = loop->agent;
	uint64_t now_ns = sf_raw_now_ns();

	pause_or_resume(loop, false, now_ns);
	sf_agent_threads_disarm(agent->threads);
	for (uint32_t i = 0; i < agent->threads->n; i++)
		sf_thread_poll(agent, &agent->threads->all[i], now_ns);
	switch_off(loop);
	sf_agent_threads_end(agent->threads, sf_raw_now_ns());
}

/* The accounts stay open. A perf clock ends with this thread's descriptors; the next thread arms new clocks. */
static void leave(struct sf_sampler_loop *loop)
{
	struct sf_agent_threads *threads = loop->agent->threads;

	sf_agent_threads_disarm(threads);
	switch_off(loop);
	threads->own[0] = 0;
	threads->own_ended_cpu_ns += sf_raw_thread_cpu_ns();
}

void sf_sampler_loop_end(struct sf_sampler_loop *loop, bool leaves)
{
	(leaves ? leave : wind_up)(loop);
	sf_cpu_affinity_end(&loop->affinity);
}
