/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exec preparation: removes the calling thread's request, clock and pending signals of ours before
 * it executes another program. Signal-safe, because the exec functions are.
 */
#include "agent/threads/exec_preparation.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#include "agent/clocks/clocks.h"
#include "agent/threads/thread_entries.h"
#include "frozen/signal/handler.h"
#include "frozen/raw.h"
#include "frozen/signal/rearm.h"

#define PIECE_NS 1000000
/*
 * Much longer than any request lasts. On a busy machine the sampler may get no CPU for long: 200 ms were
 * too few at a load of 60 on two CPUs. An exec with an armed clock would end the next program.
 */
#define PATIENCE_NS UINT64_C(5000000000)

static _Atomic uint32_t n_execs;

static int32_t own_tid(void)
{
	return (int32_t)sf_raw0(SYS_gettid);
}

static bool is_ours(const siginfo_t *info, const struct sf_thread_entry *entry)
{
	uint64_t value, mark = sf_handler_value(sf_handler.cookie, 0, 0);

	memcpy(&value, &info->si_value, sizeof(value));
	if (info->si_code == SI_TIMER || info->si_code == SI_QUEUE)
		return value >> 48 == mark >> 48;
	return info->si_code > 0 && entry && atomic_load(&entry->rings_as) > 0 &&
	       info->si_fd == atomic_load(&entry->rings_as);
}

bool sf_agent_thread_is_sent(const siginfo_t *info)
{
	return is_ours(info, sf_agent_find_own_entry());
}

/*
 * A signal that waits because it is blocked would reach the next program, whose action for it is
 * to die.
 */
static void swallow_pending(const struct sf_thread_entry *entry)
{
	const struct timespec now = { 0 };
	uint64_t set = UINT64_C(1) << (sf_handler.signal - 1);
	siginfo_t info, others[8];
	unsigned n = 0;

	while (n < 8 && sf_raw4(SYS_rt_sigtimedwait, &set, &info, &now, sizeof(set)) > 0) {
		if (!is_ours(&info, entry))
			others[n++] = info;
	}
	while (n > 0)
		sf_raw4(SYS_rt_tgsigqueueinfo, sf_handler.pid, own_tid(), sf_handler.signal,
			&others[--n]);
}

/*
 * Whether this is the sampled process. A child of vfork() runs in our memory, but must not change it.
 * Only its process id differs.
 */
static bool is_sampled_process(void)
{
	return sf_handler.entries && sf_handler.signal > 0 && sf_raw0(SYS_getpid) == sf_handler.pid;
}

/*
 * A perf clock that is a descriptor in the sampler's table, or that the sampler is taking off just now: it is asked to. If
 * it is not there any more, it has done so for all. That entry->clock is gone says only that somebody has begun: the
 * clock rings until it is closed, and the flag goes after that.
 */
static void wait_until_off(struct sf_thread_entry *entry)
{
	uint64_t until_ns = sf_raw_now_ns() + PATIENCE_NS;
	uint32_t none = 0;

	while ((atomic_load(&entry->flags) & SF_ENTRY_PERF) && sf_raw_now_ns() < until_ns) {
		atomic_compare_exchange_strong(&entry->asked, &none, SF_REQUEST_LEAVE);
		none = 0;
		sf_agent_threads_hurry();
		sf_raw_futex_wait(&entry->asked, SF_REQUEST_LEAVE, PIECE_NS);
	}
	none = SF_REQUEST_LEAVE;
	atomic_compare_exchange_strong(&entry->asked, &none, 0);
}

static void wait_until_done(struct sf_thread_entry *entry)
{
	uint64_t now_ns = sf_raw_now_ns(), until_ns = now_ns + PATIENCE_NS;
	uint32_t asked;

	while ((asked = atomic_load(&entry->asked)) && now_ns < until_ns) {
		sf_raw_futex_wait(&entry->asked, asked, until_ns - now_ns);
		now_ns = sf_raw_now_ns();
	}
}

bool sf_agent_exec_under_way(void)
{
	return atomic_load(&n_execs) > 0;
}

void sf_exec_preparation_forked(void)
{
	atomic_store(&n_execs, 0);
}

static void take_leave(struct sf_thread_entry *entry)
{
	if (!entry)
		return;
	atomic_fetch_or(&entry->flags, SF_ENTRY_LEAVING);
	wait_until_done(entry);
	if (!sf_rearm_is_remote(entry))
		sf_agent_clock_disarm(entry);
	wait_until_off(entry);
}

/*
 * A thread that is not the first one gets the first one's id in its exec (execve(2)), and with it
 * the signals that the first one's clock sends from then on. NULL: it is the first one.
 */
static struct sf_thread_entry *find_first_entry(void)
{
	return own_tid() == sf_handler.pid ? NULL : sf_thread_table_find(sf_handler.entries, sf_handler.pid);
}

bool sf_agent_thread_before_exec(void)
{
	struct sf_thread_entry *entry;

	if (!is_sampled_process())
		return false;
	atomic_fetch_add(&n_execs, 1);
	sf_agent_clock_itimer.disarm(NULL);
	/* Also one that the sampler has not met yet: it would give it a clock just now. */
	entry = sf_agent_own_entry(NULL);
	take_leave(entry);
	take_leave(find_first_entry());
	swallow_pending(entry);
	return true;
}

static void come_back(struct sf_thread_entry *entry)
{
	if (entry)
		atomic_fetch_and(&entry->flags, ~(uint32_t)SF_ENTRY_LEAVING);
}

void sf_agent_thread_after_exec(void)
{
	atomic_fetch_sub(&n_execs, 1);
	come_back(sf_agent_find_own_entry());
	come_back(find_first_entry());
	sf_agent_threads_hurry();
}
