/* SPDX-License-Identifier: Apache-2.0 */
/* Decides when the events of the threads become events of the CPUs, or finer. */
#include "capture/perf/widen.h"

#include "capture/perf/allowed.h"
#include "capture/perf/perf.h"

#define PAUSE_FIRST_NS 50000000     /* a program of short lives shows at once; ... */
#define PAUSE_MAX_NS 800000000      /* ... the looks at all threads of one without become rare */
#define NOTABLE_NS 10000000         /* of CPU time in no account, in a span of time: two ticks of the clock of processes that have ended */
#define NOTABLE_PART 10             /* and one of so many parts of all CPU time in this span */
#define SWITCH_NS 4000              /* that a switch takes more, of a thread with events of its own: at the least; on a virtual machine it was 5.5 us */
#define SAMPLE_NS 5000              /* that a sample takes, of whatever else runs */
#define COST_PART 100               /* of the CPU time, that the switches may take */
#define WATCHED_PERIODS 64          /* of elapsed time: then it shows which threads use little: ... */
#define LITTLE_PART 512             /* ... one of so many parts of a CPU, at the most: after so many periods they would have a sample */
#define FINE_NS 300000              /* a process of a shell script uses some 1 ms */
#define MANY_PERIODS 10             /* that threads use between two looks: then what is lost at the end of each matters little */

bool sf_perf_is_wide(const struct sf_perf *perf)
{
	return perf->events.all && !perf->base.options.all;
}

bool sf_perf_concerns(const struct sf_perf *perf, int32_t pid)
{
	return !sf_perf_is_wide(perf) || sf_watch_has_process(&perf->base.watch, pid);
}

static bool are_missed_since(const struct sf_unseen *before, const struct sf_unseen *now)
{
	const uint64_t all_ns = now->cpu_ns > before->cpu_ns ? now->cpu_ns - before->cpu_ns : 0;
	const uint64_t unseen_ns = now->unseen_ns > before->unseen_ns ? now->unseen_ns - before->unseen_ns : 0;

	return unseen_ns >= NOTABLE_NS && unseen_ns * NOTABLE_PART >= all_ns;
}

/* Since the last look, or in all: of a program that uses little CPU time, what is missed between two looks is too little to matter. */
static bool are_missed(const struct sf_unseen *before, const struct sf_unseen *now)
{
	static const struct sf_unseen nothing;

	return are_missed_since(before, now) || are_missed_since(&nothing, now);
}

/* Records that have paused to keep the limit of the cost will pause again. */
static bool are_switches_recorded(const struct sf_perf *perf)
{
	return perf->base.watch.switches.are_recorded && !perf->sleeps.n_paused;
}

/*
 * CPU time that each thread must use between two looks. A thread that uses less than a period may get no sample, by chance. By the
 * events of the CPUs the kernel has no record of a thread's count at its end: without records of its switches, what it used after
 * its last sample is lost.
 */
static uint64_t least_use_ns(const struct sf_perf *perf)
{
	return perf->base.period_ns * (are_switches_recorded(perf) ? 1 : MANY_PERIODS);
}

/* Whether switches take a part of the CPU time that matters, and more than samples of all that runs would take. */
static bool are_dear(const struct sf_perf *perf, const struct sf_unseen *before, const struct sf_unseen *now, uint64_t passed_ns)
{
	const uint64_t all_ns = now->cpu_ns > before->cpu_ns ? now->cpu_ns - before->cpu_ns : 0;
	const uint64_t cost_ns = now->switches * SWITCH_NS, others_ns = passed_ns / perf->base.period_ns * perf->events.n_cpus * SAMPLE_NS;

	return cost_ns * COST_PART > all_ns && cost_ns > others_ns && now->n_ran * least_use_ns(perf) <= all_ns;
}

/* Whether threads that use little have a notable part of the CPU time, and no samples. */
static bool use_little(const struct sf_perf *perf, const struct sf_unseen *now, uint64_t now_ns)
{
	return now->unsampled_ns >= NOTABLE_NS && now->unsampled_ns * NOTABLE_PART >= now->cpu_ns &&
	       now_ns - perf->widening.began_ns >= WATCHED_PERIODS * perf->base.period_ns;
}

static bool may_widen(void)
{
	struct sf_error err;
	bool kernel;

	return sf_perf_events_allowed(SF_PERF_ALL_THREADS, &kernel, &err) && kernel;
}

/* Its first sample will begin another account. */
static void know_by_samples(struct sf_thread *thread, uint64_t now_ns)
{
	bool ran;

	if (thread->ran || !sf_thread_measure(thread, now_ns, &ran))
		return;
	thread->by_samples = true;
	thread->before_ns = thread->account.cpu_ns;
}

static bool widen(struct sf_perf *perf, uint64_t now_ns)
{
	struct sf_watch *watch = &perf->base.watch;
	struct sf_error err;

	if (!may_widen() || !sf_perf_events_widen(&perf->events, &err))
		return false;
	watch->by_samples = true;
	for (size_t i = 0; i < watch->threads.n; i++)
		know_by_samples(watch->threads.items[i], now_ns);
	return true;
}

static void want_finer(struct sf_perf *perf)
{
	perf->widening.is_finer = true;
	if (!perf->counting.on && perf->base.period_ns >= 2 * FINE_NS)
		perf->period_wanted = FINE_NS;
}

static void choose(struct sf_perf *perf, const struct sf_unseen *now, uint64_t passed_ns, uint64_t now_ns)
{
	struct sf_perf_widening *widening = &perf->widening;
	const bool few = are_missed(&widening->before, now) || use_little(perf, now, now_ns);

	if (!widening->refused && (few || are_dear(perf, &widening->before, now, passed_ns)))
		widening->refused = !widen(perf, now_ns);
	if (widening->refused && few)
		want_finer(perf);
}

void sf_perf_widen_if_short(struct sf_perf *perf, uint64_t now_ns)
{
	struct sf_perf_widening *widening = &perf->widening;
	const uint64_t passed_ns = now_ns - widening->looked_ns;
	struct sf_unseen now;

	if (perf->events.all || widening->is_finer || !perf->base.period_ns || now_ns < widening->next_ns)
		return;
	if (!widening->next_ns)
		widening->began_ns = now_ns;
	sf_unseen_look(&perf->base.watch, (now_ns - widening->began_ns) / LITTLE_PART, &now);
	if (widening->next_ns)
		choose(perf, &now, passed_ns, now_ns);
	widening->before = now;
	widening->looked_ns = now_ns;
	widening->pause_ns = widening->pause_ns ? 2 * widening->pause_ns : PAUSE_FIRST_NS;
	if (widening->pause_ns > PAUSE_MAX_NS)
		widening->pause_ns = PAUSE_MAX_NS;
	widening->next_ns = now_ns + widening->pause_ns;
}
