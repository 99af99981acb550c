/* SPDX-License-Identifier: Apache-2.0 */
/* The notes of the summary: what the recording lacks, and why. */
#include "capture/perf/perf.h"

#include <stdio.h>
#include <string.h>

#include "os/cgroup.h"

#define NOTED_PART 10                /* what was passed over or lost of many is said if it was one of so many, or more */

/* Whether there is something to say. ret holds at least NOTE_SIZE bytes. */
typedef bool note_fn(const struct sf_perf *perf, char *ret);
#define NOTE_SIZE 800

/* The records that are missing, and how often the kernel paused `what`: only what there was. False: neither. */
static bool say_missing(const struct sf_perf *perf, const char *what, char *ret)
{
	const unsigned long long lost = perf->n_lost, paused = perf->n_throttled;
	int n = 0;

	if (lost)
		n = snprintf(ret, NOTE_SIZE, "%llu records found no room in the rings%s", lost, paused ? ", and " : "");
	if (paused)
		snprintf(ret + n, NOTE_SIZE - (size_t)n, "the kernel paused %s %llu times", what, paused);
	return lost || paused;
}

static void append(char *ret, const char *text)
{
	snprintf(ret + strlen(ret), NOTE_SIZE - strlen(ret), "%s", text);
}

static bool lost_records(const struct sf_perf *perf, char *ret)
{
	if (!say_missing(perf, perf->counting.on ? "the event" : "a clock", ret))
		return false;
	if (!perf->counting.on) {
		append(ret, ": the times are right, with fewer samples");
		return true;
	}
	append(ret, ": these events are lost (a lower --rate loses fewer, and so does ");
	append(ret, perf->counting.event.name);
	append(ret, "/N)");
	return true;
}

static bool over_budget(const struct sf_perf *perf, char *ret)
{
	const struct sf_perf_budget *budget = &perf->budget;

	if (budget->n_over * NOTED_PART < budget->n_samples || !budget->n_over)
		return false;
	snprintf(ret, NOTE_SIZE, "%.0f %% of the samples were used: more would take over %u %% of this machine's CPUs (each sample stands "
		 "for more %s; --max-cost allows more)", 100.0 - 100.0 * (double)budget->n_over / (double)budget->n_samples,
		 perf->base.limit.late_share, perf->counting.on ? "events" : "time");
	return true;
}

static bool dropped_names(const struct sf_perf *perf, char *ret)
{
	snprintf(ret, NOTE_SIZE, "the names of %llu processes that began were not kept until their first samples, since there were too many",
		 (unsigned long long)perf->newcomers.n_dropped);
	return perf->newcomers.n_dropped;
}

static const char *without_kernel(const struct sf_perf *perf)
{
	if (perf->counting.on)
		return "events in the kernel were not counted";
	return perf->kernel_time.on ? "time in the kernel was found by holds only" : "time in the kernel was not sampled, and is a loss";
}

static bool no_kernel(const struct sf_perf *perf, char *ret)
{
	char why[sizeof(perf->no_kernel.text)];

	snprintf(ret, NOTE_SIZE, "%s%s: %s", without_kernel(perf),
		 perf->base.blocked_period_ns ? "; sleeping threads were looked at some times a second" : "",
		 sf_error_sentences(perf->no_kernel.text, why, sizeof(why)));
	return *perf->no_kernel.text;
}

static bool no_cpu(const struct sf_perf *perf, char *ret)
{
	char why[sizeof(perf->no_cpu.text)];

	snprintf(ret, NOTE_SIZE, "a CPU that came online was not sampled: %s", sf_error_sentences(perf->no_cpu.text, why, sizeof(why)));
	return *perf->no_cpu.text;
}

/* A service that is started anew has a new one. */
static bool no_cgroup(const struct sf_perf *perf, char *ret)
{
	snprintf(ret, NOTE_SIZE, "the control group was removed while it was recorded: what ran in another one of its name since then "
		 "is not sampled");
	return perf->base.watch.cgroup && sf_cgroup_is_removed(perf->base.watch.cgroup);
}

static bool no_saved(const struct sf_perf *perf, char *ret)
{
	char why[sizeof(perf->no_saved.text)];

	snprintf(ret, NOTE_SIZE, "sleeping threads were read without all their registers%s: %s",
		 perf->base.options.no_interrupt ? "" : ", and held only where these were needed, at most once for each sleep",
		 sf_error_sentences(perf->no_saved.text, why, sizeof(why)));
	return *perf->no_saved.text && perf->base.read_asleep;
}

static bool no_sleeps(const struct sf_perf *perf, char *ret)
{
	snprintf(ret, NOTE_SIZE, "sleeps were not recorded, and sleeping threads were looked at some times a second: %s", perf->sleeps.reason);
	return !perf->sleeps.on && *perf->sleeps.reason;
}

static bool no_wakings(const struct sf_perf *perf, char *ret)
{
	snprintf(ret, NOTE_SIZE, "wakings of threads were not recorded, and sleeps contain a wait for a CPU: %s", perf->sleeps.reason);
	return perf->sleeps.on && *perf->sleeps.reason;
}

static bool lost_sleeps(const struct sf_perf *perf, char *ret)
{
	snprintf(ret, NOTE_SIZE, "%llu records of sleeps found no room in the rings: those threads were looked at instead",
		 (unsigned long long)perf->sleeps.n_lost);
	return perf->sleeps.n_lost;
}

static bool lost_wakings(const struct sf_perf *perf, char *ret)
{
	snprintf(ret, NOTE_SIZE, "%llu records of wakings found no room in the rings: sleeps without one contain a wait for a CPU",
		 (unsigned long long)perf->sleeps.n_lost_wakings);
	return perf->sleeps.n_lost_wakings * NOTED_PART > perf->sleeps.n_wakings_ever;
}

static bool gave_up_wakings(const struct sf_perf *perf, char *ret)
{
	snprintf(ret, NOTE_SIZE, "wakings were not recorded any more, since the machine's threads wake each other so often that it "
		 "would have cost too much: sleeps contain a wait for a CPU (--max-cost allows more)");
	return perf->sleeps.gave_up_wakings;
}

static bool paused_sleeps(const struct sf_perf *perf, char *ret)
{
	snprintf(ret, NOTE_SIZE, "for %.1f s sleeps were not recorded, since threads switched so often that it "
		 "would have cost too much: sleeping threads were looked at (--max-cost allows more)", (double)perf->sleeps.paused_ns / 1e9);
	return perf->sleeps.n_paused;
}

static bool part_of_sleeps(const struct sf_perf *perf, char *ret)
{
	const uint64_t wanted = perf->sleeps.n_wanted_ever, sent = perf->sleeps.n_sent_ever;

	if ((wanted - sent) * NOTED_PART <= wanted)
		return false;
	snprintf(ret, NOTE_SIZE, "%.0f %% of the sleeps have samples, which stand for the others, too: more would cost too much "
		 "(--max-cost allows more)", 100.0 * (double)sent / (double)wanted);
	return true;
}

/* To add one: a function above, and its place here, in the order of what matters most. */
static note_fn *const notes[] = {
	lost_records, over_budget, dropped_names, no_kernel, no_cpu, no_cgroup, no_saved, no_sleeps, no_wakings, lost_sleeps, lost_wakings,
	gave_up_wakings, paused_sleeps, part_of_sleeps,
};

bool sf_perf_notes(const struct sf_perf *perf, const struct sf_sink *sink, struct sf_error *err)
{
	char text[NOTE_SIZE];

	for (size_t i = 0; sink->note && i < sizeof(notes) / sizeof(notes[0]); i++) {
		if (notes[i](perf, text) && !sink->note(sink->arg, perf->base.options.pid, text, err))
			return false;
	}
	return true;
}
