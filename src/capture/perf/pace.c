/* SPDX-License-Identifier: Apache-2.0 */
/* Decides how many events there are for one sample. */
#include "capture/perf/pace.h"

#define BURST 1000                      /* samples that come at once are let through: what one ring holds */
#define STEP_MIN 4                      /* the number rises by this factor at least: each change loses some events */
#define STEP_PART 100                   /* and by one of so many parts of the samples at the most: a short burst says little */
#define PAUSE_FIRST_NS UINT64_C(1000000000)
#define PAUSE_MAX_NS UINT64_C(16000000000)
#define ROOM 8                          /* the number falls where there are so many times fewer samples than may be ... */
#define AIM 2                           /* ... to where there would be one of so many parts */
#define MAX_EACH (UINT64_C(1) << 40)

void sf_perf_pace_begin(struct sf_perf_pace *pace, uint64_t least, uint64_t most, uint64_t now_ns)
{
	*pace = (struct sf_perf_pace){ .least = least, .most = most ? most : 1, .since_ns = now_ns, .pause_ns = PAUSE_FIRST_NS };
}

static void begin_anew(struct sf_perf_pace *pace, uint64_t now_ns)
{
	pace->n = 0;
	pace->since_ns = now_ns;
}

static uint64_t raise(const struct sf_perf_pace *pace, uint64_t each, uint64_t allowed)
{
	const uint64_t most = pace->n / STEP_PART;
	uint64_t factor = pace->n / (allowed + 1);

	factor = factor > most ? most : factor;
	factor = factor < STEP_MIN ? STEP_MIN : factor;
	return each > MAX_EACH / factor ? each : each * factor;
}

/* `allowed` is of the time since the last change. */
static uint64_t lower(const struct sf_perf_pace *pace, uint64_t each, uint64_t allowed)
{
	const uint64_t wanted = (uint64_t)((unsigned __int128)each * (pace->n + 1) * AIM / allowed);

	return wanted < pace->least ? pace->least : wanted;
}

uint64_t sf_perf_pace_look(struct sf_perf_pace *pace, uint64_t each, uint64_t n, uint64_t now_ns)
{
	const uint64_t passed_ns = now_ns - pace->since_ns;
	const uint64_t allowed = (uint64_t)((unsigned __int128)pace->most * passed_ns / 1000000000);

	pace->n += n;
	if (pace->n > allowed + BURST || (passed_ns >= pace->pause_ns && pace->n > allowed)) {
		each = raise(pace, each, allowed);
		begin_anew(pace, now_ns);
	} else if (passed_ns >= pace->pause_ns && each > pace->least && pace->n * ROOM < allowed) {
		each = lower(pace, each, allowed);
		pace->pause_ns = pace->pause_ns < PAUSE_MAX_NS ? 2 * pace->pause_ns : PAUSE_MAX_NS;
		begin_anew(pace, now_ns);
	} else if (passed_ns >= pace->pause_ns) {
		begin_anew(pace, now_ns);
	}
	return each;
}
