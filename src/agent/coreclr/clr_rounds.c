/* SPDX-License-Identifier: Apache-2.0 */
/* The rounds: which threads are walked, and what is called in which order. clr_walked.c records what came out. */
#include "agent/coreclr/clr_rounds.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/coreclr/clr_profiler.h"
#include "agent/coreclr/clr_stack.h"
#include "agent/coreclr/clr_walked.h"
#include "agent/sampler/sampler.h"
#include "agent/sampler/threads.h"
#include "frozen/coreclr/coreclr.h"
#include "frozen/raw.h"
#include "frozen/signal/handler.h"
#include "os/clock.h"

#define MAX_WALKED 1024              /* threads in one round; the others keep their time for the next one */
#define AT_ONCE 64                   /* ThreadIDs that are asked for at once */
#define PAUSE_SHARE 10               /* the runtime is suspended for at most one part in so many of the time */
#define ENDING_NS 100000000u         /* that a thread which ends waits for a walk */
#define LEAVE_NS 1000000000u         /* that the end of a profile waits for a round */
#define LOOK_NS 50000u

static struct {
	struct sf_clr_info *_Atomic info; /* NULL: no rounds */
	_Atomic bool busy;           /* a round is under way */
	_Atomic bool came_up;        /* in this profile */
	int walk;                    /* enum sf_agent_runtime_walk */
	int32_t tid;                 /* of the thread that the runtime has prepared */
	uint64_t not_before_ns;
	struct sf_clr_pool pool;
	struct sf_clr_walked walked[MAX_WALKED];
	uint32_t n_walked;
	uint16_t places[SF_THREAD_TABLE_SIZE]; /* by the thread's place in the sampler's list: its place in walked + 1 */
} rounds;

/* --- the threads that ran --- */

static bool has_run(const struct sf_agent_thread *thread, uint64_t *cpu_ns_ret)
{
	return thread->watched && !thread->replaced && !(atomic_load(&thread->entry->flags) & SF_ENTRY_LEAVING) &&
	       sf_agent_thread_cpu(thread->tid, cpu_ns_ret) &&
	       *cpu_ns_ret > atomic_load(&thread->entry->accounted_ns) && *cpu_ns_ret != thread->ticked_cpu_ns;
}

static void find_walked(struct sf_agent_threads *threads)
{
	rounds.n_walked = 0;
	for (uint32_t i = 0; i < threads->n && rounds.n_walked < MAX_WALKED; i++) {
		struct sf_clr_walked *walked = &rounds.walked[rounds.n_walked];

		if (!has_run(&threads->all[i], &walked->cpu_ns))
			continue;
		walked->thread = &threads->all[i];
		walked->is_managed = false;
		rounds.places[i] = (uint16_t)++rounds.n_walked;
	}
}

static void forget_walked(const struct sf_agent_threads *threads)
{
	for (uint32_t i = 0; i < rounds.n_walked; i++)
		rounds.places[rounds.walked[i].thread - threads->all] = 0;
}

/* The thread with this id, if it ran. The runtime has listed it, so the sampler no longer requests it. */
static struct sf_clr_walked *find_listed(const struct sf_agent_threads *threads, int32_t tid)
{
	struct sf_thread_entry *entry = sf_thread_table_find(threads->entries, tid);
	uint32_t place = entry ? threads->places[entry - threads->entries] : 0;

	if (!place)
		return NULL;
	atomic_fetch_or(&entry->flags, SF_ENTRY_IN_ROUNDS);
	place = rounds.places[place - 1];
	return place ? &rounds.walked[place - 1] : NULL;
}

/* --- records --- */

static void record_all(const struct sf_agent *agent, struct sf_clr_info *info, const struct sf_code_map *map, uint64_t time_ns,
		       uint64_t pause_ns)
{
	const struct sf_clr_round round = {
		.workspace = agent->workspace, .info = info, .map = map, .pool = &rounds.pool,
		.twice = rounds.walk == SF_AGENT_WALK_BOTH, .time_ns = time_ns, .pause_ns = pause_ns,
	};

	for (uint32_t i = 0; i < rounds.n_walked; i++)
		sf_clr_walked_record(&round, &rounds.walked[i]);
}

/* The threads that the runtime would have walked lose their ticks. False: there is none. */
static bool lose_all(enum sf_loss cause)
{
	bool any = false;

	for (uint32_t i = 0; i < rounds.n_walked; i++) {
		struct sf_clr_walked *walked = &rounds.walked[i];

		if (!(atomic_load(&walked->thread->entry->flags) & SF_ENTRY_IN_ROUNDS))
			continue;
		walked->thread->ticked_cpu_ns = walked->cpu_ns;
		sf_clr_walked_lose(cause, walked);
		any = true;
	}
	return any;
}

/* The runtime is not suspended. */
static void lose_round(int32_t result)
{
	if (!lose_all(sf_clr_loss(result)))
		sf_clr_lose_call(result);
}

/* --- inside the suspension --- */

static void capture(const struct sf_agent *agent, struct sf_clr_info *info, const struct sf_code_map *map,
		    uintptr_t thread)
{
	struct sf_clr_walked *walked;
	uint32_t tid = 0;
	const int32_t result = sf_clr_get_thread_info(info, thread, &tid);

	if (result < 0) {
		sf_clr_lose_call(result);
		return;
	}
	walked = find_listed(agent->threads, (int32_t)tid);
	if (!walked || walked->is_managed)
		return;
	walked->is_managed = true;
	sf_clr_stack_capture(&rounds.pool, info, agent->workspace, map, thread, (int32_t)tid, &walked->stack);
}

/* Each thread of the runtime. ThreadIDs are good only as long as the runtime is suspended. */
static void capture_all(const struct sf_agent *agent, struct sf_clr_info *info, const struct sf_code_map *map,
			struct sf_clr_threads *threads)
{
	uintptr_t ids[AT_ONCE];
	uint32_t n = 0, seen = 0;
	int32_t result = SF_CLR_OK;

	while (result == SF_CLR_OK && seen < SF_THREAD_TABLE_SIZE) {
		result = sf_clr_next_threads(threads, AT_ONCE, ids, &n);
		if (result < 0)
			sf_clr_lose_call(result);
		for (uint32_t i = 0; result >= 0 && i < n && i < AT_ONCE; i++)
			capture(agent, info, map, ids[i]);
		seen += AT_ONCE;
	}
}

/* Between SuspendRuntime and ResumeRuntime. Returns the enumerator, which is released when the threads run again. */
static struct sf_clr_threads *walk_suspended(const struct sf_agent *agent, struct sf_clr_info *info,
					     const struct sf_code_map *map)
{
	struct sf_clr_threads *threads = NULL;
	const int32_t result = sf_clr_enum_threads(info, &threads);

	if (result < 0 || !threads) {
		sf_clr_lose_call(result);
		return NULL;
	}
	capture_all(agent, info, map, threads);
	return threads;
}

/* --- a round --- */

/* The runtime's functions read memory that may not exist, and catch the fault: it must reach the runtime's handler. */
static void let_faults_through(uint64_t *before_ret)
{
	const uint64_t faults = UINT64_C(1) << (SIGSEGV - 1) | UINT64_C(1) << (SIGBUS - 1) |
				UINT64_C(1) << (SIGILL - 1) | UINT64_C(1) << (SIGFPE - 1);

	sf_raw4(SYS_rt_sigprocmask, SIG_UNBLOCK, &faults, before_ret, sizeof(*before_ret));
}

static bool is_prepared(struct sf_clr_info *info)
{
	const int32_t tid = (int32_t)sf_raw0(SYS_gettid);
	int32_t result;

	if (rounds.tid == tid)
		return true;
	result = sf_clr_initialize_thread(info);
	if (result < 0)
		lose_round(result);
	else
		rounds.tid = tid;
	return result >= 0;
}

/*
 * The runtime waits for a thread that reaches no safe point, as one in native code that it has called without giving up
 * its mode (SuppressGCTransition). False: the call was left behind, and the profile has ended.
 */
static bool suspend(struct sf_clr_info *info, int32_t *result_ret)
{
	sf_round_call_begin();
	*result_ret = sf_clr_suspend(info);
	if (sf_round_call_end())
		return true;
	if (*result_ret >= 0)
		sf_clr_resume_all(info);
	return false;
}

/* False as that of suspend. */
static bool suspend_and_walk(const struct sf_agent *agent, struct sf_clr_info *info)
{
	const struct sf_code_map *map = atomic_load(&sf_handler.code.map);
	const uint64_t start_ns = sf_raw_now_ns();
	struct sf_clr_threads *threads;
	uint64_t end_ns;
	int32_t result;

	if (!suspend(info, &result))
		return false;
	if (result < 0) {
		lose_round(result);
		return true;
	}
	rounds.pool.n_captured = rounds.pool.n_frames = 0;
	threads = walk_suspended(agent, info, map);
	result = sf_clr_resume_all(info);
	end_ns = sf_raw_now_ns();
	if (threads)
		sf_clr_release(threads);
	if (result < 0)
		sf_clr_lose_call(result);
	record_all(agent, info, map, start_ns, end_ns - start_ns);
	rounds.not_before_ns = end_ns + (PAUSE_SHARE - 1) * (end_ns - start_ns);
	return true;
}

/* The service thread has not attached to the runtime yet: no frame could be described. */
static bool is_too_early(void)
{
	const struct sf_code_map *map = atomic_load(&sf_handler.code.map);

	return map && !sf_coreclr_of(map);
}

static bool make_round(struct sf_agent *agent, struct sf_clr_info *info, uint64_t now_ns)
{
	uint64_t before;
	bool ok = true;

	if (now_ns < rounds.not_before_ns || is_too_early())
		return true;
	find_walked(agent->threads);
	if (rounds.n_walked) {
		let_faults_through(&before);
		if (is_prepared(info))
			ok = suspend_and_walk(agent, info);
		sf_raw4(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
	}
	if (ok)
		forget_walked(agent->threads);
	return ok;
}

static void leave_profiler(void);

static bool do_round(struct sf_agent *agent, uint64_t now_ns)
{
	struct sf_clr_info *info;
	bool ok = true;

	atomic_store(&rounds.busy, true);
	info = atomic_load(&rounds.info);
	if (info)
		ok = make_round(agent, info, now_ns);
	atomic_store(&rounds.busy, false);
	if (ok)
		return true;
	leave_profiler();
	sf_round_call_is_undone();
	return false;
}

static void lose_left(struct sf_agent *agent)
{
	(void)agent;
	if (!lose_all(SF_LOSS_CLR_NO_RETURN))
		sf_output_lose(&sf_handler.output, 0, SF_LOSS_CLR_NO_RETURN, 0, 0, 1);
}

static const struct sf_sampler_round round_of = { .make = do_round, .lose = lose_left };

static void wait_for_round(uint64_t ns)
{
	const uint64_t until_ns = sf_now_ns() + ns;

	while (atomic_load(&rounds.busy) && sf_now_ns() < until_ns)
		sf_sleep_until(sf_now_ns() + LOOK_NS);
}

/* --- the profiler --- */

static void came_up(struct sf_clr_info *info)
{
	atomic_store(&rounds.came_up, true);
	atomic_store(&rounds.info, info);
}

static void leaves(struct sf_clr_info *info)
{
	(void)info;
	atomic_store(&rounds.info, NULL);
	wait_for_round(LEAVE_NS);
}

/* Its Thread object is freed when this returns. */
static void thread_destroyed(uintptr_t thread)
{
	(void)thread;
	wait_for_round(ENDING_NS);
}

static const struct sf_clr_part part = {
	.events_low = SF_CLR_MONITOR_THREADS | SF_CLR_ENABLE_STACK_SNAPSHOT,
	.came_up = came_up,
	.leaves = leaves,
	.thread_destroyed = thread_destroyed,
};

/* As long as the profiler stays, the runtime can be resumed. */
static void leave_profiler(void)
{
	sf_clr_profiler_end(&part);
	sf_clr_pool_deinit(&rounds.pool);
}

bool sf_clr_rounds_begin(int walk, struct sf_error *err)
{
	rounds.walk = walk == SF_AGENT_WALK_THEIRS || walk == SF_AGENT_WALK_BOTH ? walk : SF_AGENT_WALK_OURS;
	atomic_store(&rounds.came_up, false);
	atomic_store(&rounds.info, NULL); /* a forked child has its parent's, and that one's rounds */
	atomic_store(&sf_sampler_round, NULL);
	if (rounds.walk == SF_AGENT_WALK_OURS)
		return true;
	if (sf_handler.config.arch != &sf_arch_x86_64)
		return sf_fail(err, SF_E_UNSUPPORTED, "the .NET runtime walks its threads for stillframe on x86-64 only");
	if (sf_round_call_is_left())
		return sf_fail(err, SF_E_UNSUPPORTED, "the .NET runtime has not come back yet from the suspension in which an earlier "
			       "profile ended: one of its threads reaches no safe point");
	if (!sf_clr_pool_init(&rounds.pool))
		return sf_fail_memory(err);
	memset(rounds.places, 0, sizeof(rounds.places));
	rounds.tid = 0;
	rounds.not_before_ns = 0;
	if (!sf_clr_profiler_begin(&part, err)) {
		sf_clr_pool_deinit(&rounds.pool);
		return false;
	}
	atomic_store(&sf_sampler_round, &round_of);
	return true;
}

void sf_clr_rounds_stop(void)
{
	if (rounds.walk != SF_AGENT_WALK_OURS && !atomic_load(&rounds.came_up))
		sf_clr_profiler_note_absence("the .NET runtime walked no thread for stillframe, whose own walk was used");
}

/* The sampler has ended, so no round is under way. Or it was left behind, and leaves the profiler when its call returns. */
void sf_clr_rounds_end(void)
{
	if (!atomic_exchange(&sf_sampler_round, NULL))
		return;
	for (uint32_t i = 0; sf_handler.link.entries && i < SF_THREAD_TABLE_SIZE; i++)
		atomic_fetch_and(&sf_handler.link.entries[i].flags, ~(uint32_t)SF_ENTRY_IN_ROUNDS);
	if (!sf_round_call_is_left())
		leave_profiler();
}
