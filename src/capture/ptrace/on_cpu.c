/* SPDX-License-Identifier: Apache-2.0 */
/* Adds up for how long a thread was on a CPU since its count was read. */
#include "capture/ptrace/on_cpu.h"

#define TICK_NS 10000000 /* the kernel brings the count of a thread that runs up to date so often, at least */

void sf_on_cpu_counted(struct sf_on_cpu *on_cpu, uint64_t cpu_ns, uint64_t now_ns)
{
	on_cpu->cpu_ns = cpu_ns;
	on_cpu->counted_ns = now_ns;
	on_cpu->ran_ns = on_cpu->late_ns = 0;
}

/* The count was read when the thread had run for so long. */
static uint64_t late(uint64_t ran_ns)
{
	return ran_ns < TICK_NS ? ran_ns : TICK_NS;
}

void sf_on_cpu_switch(struct sf_on_cpu *on_cpu, uint64_t time_ns, bool leaves)
{
	const bool is_first = !on_cpu->is_followed;
	const uint64_t counted_ns = on_cpu->counted_ns, since_ns = is_first ? counted_ns : on_cpu->since_ns;

	on_cpu->is_followed = true;
	on_cpu->since_ns = leaves ? 0 : time_ns;
	if (!leaves || !since_ns || time_ns <= counted_ns)
		return;
	if (since_ns <= counted_ns)
		on_cpu->late_ns = is_first ? TICK_NS : late(counted_ns - since_ns);
	on_cpu->ran_ns += time_ns - (since_ns > counted_ns ? since_ns : counted_ns);
}

/*
 * How much more the kernel's record of the end may say: no thread runs for longer than the time that has passed. Where
 * switches are recorded, that record may be wrong. Then what the kernel's count lacks is taken from it, and no more.
 */
static uint64_t most_of(const struct sf_on_cpu *on_cpu, const struct sf_switches *switches, uint64_t now_ns)
{
	if (!on_cpu->counted_ns)
		return UINT64_MAX;
	if (!switches->are_recorded)
		return now_ns - on_cpu->counted_ns + TICK_NS;
	return sf_on_cpu_is_complete(on_cpu, switches) ? on_cpu->late_ns : TICK_NS;
}

uint64_t sf_on_cpu_end(const struct sf_on_cpu *on_cpu, uint64_t ended_ns, const struct sf_switches *switches, uint64_t now_ns)
{
	const uint64_t least_ns = on_cpu->cpu_ns + (sf_on_cpu_is_complete(on_cpu, switches) ? on_cpu->ran_ns : 0);
	const uint64_t more_ns = ended_ns > least_ns ? ended_ns - least_ns : 0;

	return more_ns <= most_of(on_cpu, switches, now_ns) ? least_ns + more_ns : least_ns;
}
