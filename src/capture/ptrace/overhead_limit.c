/* SPDX-License-Identifier: Apache-2.0 */
/* The overhead limit: puts ticks off while holding and walking would take more than their share of all CPUs. */
#include "capture/ptrace/overhead_limit.h"

#define BURST_NS 50000000 /* of CPU time, that may be saved up */
#define IDLE_PERCENT 12   /* of all CPUs: from here on some are idle */
#define ASLEEP_PART 4     /* of the share: what reading sleeping threads may take */
#define LOOK_NS_MAX 2000000 /* of CPU time, that is counted for one thread at one tick */

void sf_overhead_limit_begin(struct sf_overhead_limit *limit, unsigned n_cpus, unsigned percent,
		   const struct sf_overhead_limit_clocks *clocks)
{
	*limit = (struct sf_overhead_limit){
		.n_cpus = n_cpus ? n_cpus : 1,
		.wanted = percent,
		.share = percent ? percent : SF_OVERHEAD_BUSY_PERCENT,
		.start = *clocks,
		.before_ns = clocks->now_ns,
		.debt_ns = -(int64_t)BURST_NS,
		.asleep_debt_ns = -(int64_t)BURST_NS / ASLEEP_PART,
	};
}

void sf_overhead_limit_look(struct sf_overhead_limit *limit, uint64_t now_ns, uint64_t idle_ns)
{
	const uint64_t all_ns = (now_ns - limit->looked_ns) * limit->n_cpus;

	if (limit->looked_ns)
		limit->is_half_idle = (idle_ns - limit->idle_ns) * 2 >= all_ns;
	if (limit->looked_ns && !limit->wanted)
		limit->share = (idle_ns - limit->idle_ns) * 100 >= all_ns * IDLE_PERCENT ?
				      SF_OVERHEAD_PERCENT : SF_OVERHEAD_BUSY_PERCENT;
	limit->looked_ns = now_ns;
	limit->idle_ns = idle_ns;
}

/* CPU time that is counted, since the beginning. */
static uint64_t taken(const struct sf_overhead_limit *limit, const struct sf_overhead_limit_clocks *clocks)
{
	const uint64_t holding_ns = clocks->holding_ns - limit->start.holding_ns;
	const uint64_t all_ns = clocks->all_ns - limit->start.all_ns;

	return all_ns < 2 * holding_ns ? all_ns : 2 * holding_ns;
}

static void pay(int64_t *debt_ns, uint64_t paid_ns, int64_t saved_ns)
{
	*debt_ns -= (int64_t)paid_ns;
	if (*debt_ns < -saved_ns)
		*debt_ns = -saved_ns;
}

/* Twice: the walk of the copy takes about as long. */
void sf_overhead_limit_read(struct sf_overhead_limit *limit, uint64_t cost_ns)
{
	limit->asleep_debt_ns += 2 * (int64_t)(cost_ns < LOOK_NS_MAX ? cost_ns : LOOK_NS_MAX);
}

uint64_t sf_overhead_limit_put_off(const struct sf_overhead_limit *limit)
{
	if (limit->asleep_debt_ns <= 0)
		return 0;
	return (uint64_t)limit->asleep_debt_ns * 100 * ASLEEP_PART / (limit->n_cpus * limit->share);
}

static void account(struct sf_overhead_limit *limit, const struct sf_overhead_limit_clocks *clocks, unsigned n_looked)
{
	const uint64_t taken_ns = taken(limit, clocks);
	const uint64_t passed_ns = clocks->now_ns - limit->before_ns;
	const uint64_t most_ns = (1 + (uint64_t)n_looked) * LOOK_NS_MAX;
	const uint64_t cost_ns = taken_ns - limit->taken_ns;
	const uint64_t allowed_ns = sf_overhead_limit_allows(limit, passed_ns);

	limit->debt_ns += (int64_t)(cost_ns < most_ns ? cost_ns : most_ns);
	pay(&limit->debt_ns, allowed_ns, BURST_NS);
	pay(&limit->asleep_debt_ns, allowed_ns / ASLEEP_PART, BURST_NS / ASLEEP_PART);
	limit->before_ns = clocks->now_ns;
	limit->taken_ns = taken_ns;
}

uint64_t sf_overhead_limit_next(struct sf_overhead_limit *limit, const struct sf_overhead_limit_clocks *clocks, unsigned n_looked,
		      uint64_t next_ns)
{
	uint64_t paid_ns = clocks->now_ns;

	account(limit, clocks, n_looked);
	if (limit->debt_ns > 0)
		paid_ns += (uint64_t)limit->debt_ns * 100 / (limit->n_cpus * limit->share);
	limit->n_ticks++;
	if (paid_ns <= next_ns)
		return next_ns;
	limit->late_ns += paid_ns - next_ns;
	limit->late_share = limit->share;
	return paid_ns;
}
