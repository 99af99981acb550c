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
#include "agent/libc/own_proc.h"
#include "agent/threads/thread_entries.h"
#include "frozen/child.h"
#include "frozen/signal/event.h"
#include "frozen/signal/handler.h"
#include "frozen/raw.h"
#include "frozen/signal/rearm.h"
#include "frozen/signal/ticks.h"

#define PIECE_NS 1000000
/*
 * Much longer than any request lasts. On a busy machine the sampler may get no CPU for long: 200 ms were
 * too few at a load of 60 on two CPUs. An exec with an armed clock would end the next program.
 */
#define PATIENCE_NS UINT64_C(5000000000)

SF_CHILD_DATA static _Atomic uint32_t n_execs;

static int32_t own_tid(void)
{
	return (int32_t)sf_raw0(SYS_gettid);
}

static bool is_ours(const siginfo_t *info, const struct sf_thread_entry *entry)
{
	uint64_t value, mark = sf_handler_value(sf_handler.config.cookie, 0, 0);

	memcpy(&value, &info->si_value, sizeof(value));
	if (info->si_code == SI_TIMER || info->si_code == SI_QUEUE)
		return value >> 48 == mark >> 48;
	if (sf_handler_lost_value(info, entry))
		return true;
	return info->si_code > 0 && entry && atomic_load(&entry->perf_fd) > 0 &&
	       info->si_fd == atomic_load(&entry->perf_fd);
}

bool sf_agent_thread_is_sent(const siginfo_t *info)
{
	return is_ours(info, sf_agent_find_own_entry());
}

/*
 * A signal that waits because it is blocked would reach the next program, whose action for it is
 * to die. Returns how many others there are.
 */
static unsigned swallow_pending(const struct sf_thread_entry *entry)
{
	const struct timespec now = { 0 };
	uint64_t set = UINT64_C(1) << (sf_handler.config.signal - 1);
	siginfo_t info, others[8];
	unsigned n = 0;

	while (n < 8 && sf_raw4(SYS_rt_sigtimedwait, &set, &info, &now, sizeof(set)) > 0) {
		if (!is_ours(&info, entry))
			others[n++] = info;
	}
	for (unsigned i = 0; i < n; i++)
		sf_raw4(SYS_rt_tgsigqueueinfo, sf_handler.config.pid, own_tid(), sf_handler.config.signal,
			&others[i]);
	return n;
}

/*
 * Whether this is the sampled process. A child of vfork() runs in our memory, but must not change it.
 * Only its process id differs.
 */
static bool is_sampled_process(void)
{
	return sf_handler.link.entries && sf_handler.config.signal > 0 && sf_raw0(SYS_getpid) == sf_handler.config.pid;
}

bool sf_agent_thread_drop_sent(void)
{
	return is_sampled_process() && !sf_own_process_has_pending(sf_handler.config.signal) &&
	       !swallow_pending(sf_agent_find_own_entry());
}

/*
 * Waits until the sampler has removed a perf clock whose descriptor is in the sampler's table, or has
 * finished removing it. The flag SF_ENTRY_PERF goes last, after the descriptor is closed; entry->clock
 * goes first, while the clock still sends signals.
 */
static void wait_for_removal(struct sf_thread_entry *entry)
{
	uint64_t until_ns = sf_raw_now_ns() + PATIENCE_NS;

	while ((atomic_load(&entry->flags) & SF_ENTRY_PERF) && sf_raw_now_ns() < until_ns) {
		atomic_store(&entry->clock_unwanted, 1);
		sf_agent_threads_hurry();
		sf_raw_futex_wait(&entry->clock_unwanted, 1, PIECE_NS);
	}
	atomic_store(&entry->clock_unwanted, 0);
}

/* Waits until the sampler has set this word of an entry to 0. */
static void wait_for_zero(const _Atomic uint32_t *word)
{
	uint64_t now_ns = sf_raw_now_ns(), until_ns = now_ns + PATIENCE_NS;
	uint32_t value;

	while ((value = atomic_load(word)) && now_ns < until_ns) {
		sf_raw_futex_wait(word, value, until_ns - now_ns);
		now_ns = sf_raw_now_ns();
	}
}

bool sf_agent_exec_under_way(void)
{
	return atomic_load(&n_execs) > 0;
}

SF_CHILD_CODE void sf_exec_preparation_forked(void)
{
	atomic_store(&n_execs, 0);
}

static void prepare(struct sf_thread_entry *entry)
{
	if (!entry)
		return;
	atomic_fetch_or(&entry->flags, SF_ENTRY_LEAVING);
	wait_for_zero(&entry->request);
	wait_for_zero(&entry->clock_busy);
	if (!sf_rearm_is_remote(&sf_handler.config, entry))
		sf_agent_clock_disarm(entry);
	wait_for_removal(entry);
}

/*
 * A thread that is not the first one gets the first one's id in its exec (execve(2)), and with it
 * the signals that the first one's clock sends from then on. NULL: it is the first one.
 */
static struct sf_thread_entry *find_first_entry(void)
{
	return own_tid() == sf_handler.config.pid ? NULL : sf_thread_table_find(sf_handler.link.entries, sf_handler.config.pid);
}

/* The exec ends the thread, or continues it as a thread of the next program: no sample comes for this CPU time. */
static void lose_rest(struct sf_thread_entry *entry, int32_t tid)
{
	const uint32_t serial = atomic_load(&entry->serial);
	uint64_t cpu_ns, lost_ns;
	uint32_t ticks;

	if (!serial || atomic_load(&entry->flags) & SF_ENTRY_UNWATCHED)
		return;
	sf_event_lose(&sf_handler.output, entry);
	if (!sf_agent_thread_cpu(tid, &cpu_ns))
		return;
	lost_ns = sf_thread_entry_take_cpu(entry, cpu_ns, &ticks);
	if (lost_ns && !atomic_load(&sf_handler.event.on))
		sf_output_lose(&sf_handler.output, serial, SF_LOSS_REST, lost_ns, lost_ns,
			       sf_ticks_due(lost_ns, sf_handler.config.period_ns));
}

bool sf_agent_thread_before_exec(void)
{
	struct sf_thread_entry *entry;

	if (!is_sampled_process())
		return false;
	atomic_fetch_add(&n_execs, 1);
	sf_agent_clock_itimer.disarm(NULL);
	/* Also for a thread that the sampler has not found yet: the sampler could arm a clock just now. */
	entry = sf_agent_own_entry(NULL);
	prepare(entry);
	prepare(find_first_entry());
	swallow_pending(entry);
	sf_agent_each_entry(lose_rest);
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
