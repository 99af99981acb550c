/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handler in a live process: every signal is ours or the program's, every tick a sample or a loss, every
 * thread is let go, and all CPU time is spoken for once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <cmocka.h>

#include "asleep.h"
#include "frozen/signal/chain.h"
#include "frozen/raw.h"
#include "frozen/signal/rearm.h"
#include "handler_rig.h"
#include "sanitizer.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)
#define RING (1u << 20)

static volatile sig_atomic_t n_foreign_calls;

static void count_call(int signal)
{
	(void)signal;
	n_foreign_calls++;
}

static int start(enum sf_handler_mode mode)
{
	n_foreign_calls = 0;
	signal(SF_RIG_SIGNAL, count_call);
	return sf_rig_start(mode, RING) ? 0 : -1;
}

static int start_handler(void **state)
{
	(void)state;
	return start(SF_MODE_HANDLER);
}

static int start_sampler(void **state)
{
	(void)state;
	return start(SF_MODE_SAMPLER);
}

static int stop(void **state)
{
	(void)state;
	sf_rig_stop();
	signal(SF_RIG_SIGNAL, SIG_DFL);
	return 0;
}

/* A queued signal with this value, to the calling thread. */
static void queue(uint64_t value)
{
	const union sigval sigval = { .sival_ptr = (void *)(uintptr_t)value };

	assert_int_equal(pthread_sigqueue(pthread_self(), SF_RIG_SIGNAL, sigval), 0);
}

static void tick(void)
{
	queue(sf_handler_value(sf_handler.config.cookie, SF_NO_SLOT, 0));
}

static void request(uint32_t slot, uint32_t generation)
{
	queue(sf_handler_value(sf_handler.config.cookie, slot, generation));
}

static void assert_all_free(void)
{
	for (uint32_t i = 0; i < SF_RIG_SLOTS; i++) {
		assert_int_equal(sf_slot_state(atomic_load(&sf_handler.link.slots[i].word)), SF_SLOT_FREE);
		assert_null(atomic_load(&sf_handler.link.slots[i].map));
	}
}

/* --- whose it is --- */

static void test_what_is_not_ours(void **state)
{
	(void)state;
	sf_rig_enter(1, 0);
	raise(SF_RIG_SIGNAL);
	queue(0);
	queue(UINT64_MAX);
	queue(sf_handler_value((uint16_t)(sf_handler.config.cookie + 1), SF_NO_SLOT, 0));
	queue((uintptr_t)&sf_handler);
	sf_handler.config.pid++;
	tick();
	sf_handler.config.pid--;
	assert_int_equal(n_foreign_calls, 6);
	assert_int_equal(sf_handler.counts.foreign, 6);
	sf_rig_drain();
	assert_int_equal(sf_rig_sums[0].n_samples, 0);
}

/* As the kernel sends one that the full queue has no room for. */
static void lose_info(void)
{
	siginfo_t info = { .si_signo = SF_RIG_SIGNAL, .si_code = SI_USER };

	assert_int_equal(syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SF_RIG_SIGNAL, &info), 0);
}

/* The second one may come when the first one is done: the sampler stores what it sends before it sends it. */
static void test_what_has_lost_its_value(void **state)
{
	struct sf_thread_entry *entry = sf_rig_enter(1, 0);

	(void)state;
	atomic_store(&entry->sent, sf_handler_value(sf_handler.config.cookie, 2, 7));
	lose_info();
	lose_info();
	assert_int_equal(n_foreign_calls, 0);
	request(1, 7);
	lose_info();
	assert_int_equal(n_foreign_calls, 0);
	request(2, 7);
	assert_int_equal(sf_handler.counts.late, 5);
	lose_info();
	assert_int_equal(n_foreign_calls, 1);
	assert_all_free();
}

static void test_what_is_swallowed(void **state)
{
	struct sf_thread_entry *entry;

	(void)state;
	tick(); /* no entry */
	entry = sf_rig_enter(1, 0);
	atomic_store(&entry->flags, SF_ENTRY_UNWATCHED);
	tick();
	atomic_store(&entry->flags, SF_ENTRY_LEAVING);
	tick();
	atomic_store(&entry->flags, 0);
	atomic_store(&entry->serial, 0);
	tick();
	atomic_store(&entry->serial, 1);
	sf_handler.link.mode = SF_MODE_OFF;
	tick();
	sf_handler.link.mode = SF_MODE_HANDLER;
	sf_rig_drain();
	assert_int_equal(sf_rig_sums[0].n_samples, 0);
	assert_int_equal(n_foreign_calls, 0);
	assert_int_equal(entry->accounted_ns, 0);
	tick();
	sf_rig_drain();
	assert_int_equal(sf_rig_sums[1].n_samples, 1);
	assert_all_free();
}

static bool pin(int cpu)
{
	cpu_set_t only;

	CPU_ZERO(&only);
	CPU_SET(cpu, &only);
	return sched_setaffinity(0, sizeof(only), &only) == 0;
}

/* Threads that take turns on a CPU share the memory of one slot. */
static void test_a_cpu_has_its_slot(void **state)
{
	uint32_t before[SF_RIG_SLOTS];
	cpu_set_t all;

	(void)state;
	sf_rig_enter(1, 0);
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all) || !pin(cpu))
			continue;
		for (uint32_t i = 0; i < SF_RIG_SLOTS; i++)
			before[i] = atomic_load(&sf_handler.link.slots[i].word);
		tick();
		for (uint32_t i = 0; i < SF_RIG_SLOTS; i++)
			assert_int_equal(atomic_load(&sf_handler.link.slots[i].word) != before[i],
					 i == (uint32_t)cpu % SF_RIG_SLOTS);
	}
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

/* As the kernel queues it, in a frame of our own making. */
static void poll_signal(int code, int fd)
{
	siginfo_t info = { .si_signo = SF_RIG_SIGNAL, .si_code = code };
	ucontext_t context;

	getcontext(&context);
	info.si_fd = fd;
	sf_handler_enter(SF_RIG_SIGNAL, &info, &context);
	sigprocmask(SIG_SETMASK, &context.uc_sigmask, NULL);
}

#if defined(__x86_64__)
/* Calls the handler with a stack that is 8 bytes off. */
static void enter_misaligned(siginfo_t *info, ucontext_t *context)
{
	register long signal __asm__("rdi") = SF_RIG_SIGNAL;
	register siginfo_t *second __asm__("rsi") = info;
	register ucontext_t *third __asm__("rdx") = context;

	__asm__ volatile("mov %%rsp, %%rbx\n"
			 "sub $128, %%rsp\n" /* what a function has below its stack pointer */
			 "and $-16, %%rsp\n"
			 "sub $8, %%rsp\n"
			 "call *%[handler]\n"
			 "mov %%rbx, %%rsp\n"
			 : "+r"(signal), "+r"(second), "+r"(third)
			 : [handler] "r"(sf_handler_enter)
			 : "rbx", "rax", "rcx", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
			   "memory", "cc");
}

/* As emulators of processes call handlers. */
static void test_a_stack_that_is_not_aligned(void **state)
{
	const uint64_t value = sf_handler_value(sf_handler.config.cookie, SF_NO_SLOT, 0);
	siginfo_t info = { .si_signo = SF_RIG_SIGNAL, .si_code = SI_TIMER };
	ucontext_t context;

	(void)state;
	sf_rig_enter(1, 0);
	memcpy(&info.si_value, &value, sizeof(value));
	getcontext(&context);
	enter_misaligned(&info, &context);
	sf_rig_drain();
	assert_int_equal(sf_rig_sums[1].n_samples, 1);
}
#endif

static void test_perf(void **state)
{
	struct sf_thread_entry *entry = sf_rig_enter(1, 0);

	(void)state;
	atomic_store(&entry->clock, 1000);
	poll_signal(POLL_IN, 1000);
	assert_int_equal(n_foreign_calls, 1); /* that is a timer's number */
	atomic_store(&entry->flags, SF_ENTRY_PERF);
	atomic_store(&entry->perf_fd, 1000);
	poll_signal(POLL_IN, 1000);
	atomic_store(&entry->clock, -1); /* closed, but one was under way */
	poll_signal(POLL_HUP, 1000);
	sf_rig_drain();
	assert_int_equal(sf_rig_sums[1].n_samples, 2);
	poll_signal(POLL_IN, 1001);
	poll_signal(SI_USER, 1000);
	poll_signal(7, 1000);
	assert_int_equal(n_foreign_calls, 4);
	/* Taken off meanwhile; the program has no handler for it, and would end. */
	sf_chain_set(&(struct sf_kernel_action){ .handler = SF_CHAIN_DEFAULT });
	poll_signal(POLL_IN, 1001);
	sf_chain_set(&(struct sf_kernel_action){ .handler = SF_CHAIN_IGNORE });
	sf_rig_drain();
	assert_int_equal(sf_rig_sums[1].n_samples, 3);
	atomic_store(&entry->clock, -1);
}

/* --- requests --- */

static _Atomic uint32_t n_running;

static void *run_sampler(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	while (n_running)
		sf_rig_sample(arg, 20 * MS);
	return NULL;
}

static pthread_t start_asking(void)
{
	pthread_t sampler;

	n_running = 1;
	assert_int_equal(pthread_create(&sampler, NULL, run_sampler, sf_rig_workspace()), 0);
	return sampler;
}

static void stop_asking(pthread_t sampler)
{
	n_running = 0;
	assert_int_equal(pthread_join(sampler, NULL), 0);
}

static void test_requests(void **state)
{
	struct sf_thread_entry *entry = sf_rig_enter(1, 0);
	const pthread_t sampler = start_asking();
	uint32_t generation;

	(void)state;
	assert_true(sf_slot_request(&sf_handler.link.slots[2], &generation));
	request(2, generation + 1);
	request(1, generation);
	request(SF_RIG_SLOTS, generation);
	assert_int_equal(sf_handler.counts.late, 3);
	assert_int_equal(sf_slot_state(sf_handler.link.slots[2].word), SF_SLOT_REQUESTED);
	request(2, generation);
	request(2, generation);
	assert_int_equal(sf_handler.counts.late, 4);
	sf_rig_drain();
	assert_int_equal(sf_rig_sums[1].n_samples, 1);
	assert_int_equal(entry->n_samples, 1);
	assert_all_free();
	/* A thread that is passed over gives the slot back at once. */
	atomic_store(&entry->flags, SF_ENTRY_UNWATCHED);
	assert_true(sf_slot_request(&sf_handler.link.slots[0], &generation));
	request(0, generation);
	assert_all_free();
	stop_asking(sampler);
}

/* --- weights --- */

static void burn(uint64_t ns)
{
	const uint64_t until = sf_raw_thread_cpu_ns() + ns;

	while (sf_raw_thread_cpu_ns() < until)
		;
}

static void test_weights(void **state)
{
	struct sf_thread_entry *entry = sf_rig_enter(1, 0);
	uint64_t before;

	(void)state;
	sf_handler.config.period_ns = 2 * MS;
	atomic_store(&entry->period_ns, 16 * MS); /* it has backed off: ticks are those that were asked for */
	tick();
	sf_rig_drain();
	memset(sf_rig_sums, 0, sizeof(sf_rig_sums));
	before = entry->accounted_ns;
	entry->tick_carry_ns = 0; /* the tick above was early, and would be one less here */
	burn(9 * MS);
	atomic_store(&entry->run_delay_ns, 7 * MS);
	tick();
	sf_rig_drain();
	assert_true(sf_rig_sums[1].cpu_ns >= 9 * MS);
	assert_int_equal(sf_rig_sums[1].wall_ns, sf_rig_sums[1].cpu_ns + 7 * MS);
	assert_int_equal(sf_rig_sums[1].cpu_ns, entry->accounted_ns - before);
	assert_in_range(sf_rig_sums[1].ticks, sf_rig_sums[1].cpu_ns / (2 * MS),
			sf_rig_sums[1].cpu_ns / (2 * MS) + 1);
}

/*
 * As a sampler asks it that woke 50 s ago, when the thread had waited for a CPU for so much less than by now. On a busy
 * machine the thread does wait, and a while goes by until its entry is read: seconds are more than that.
 */
static void ask(struct sf_thread_entry *entry, uint64_t waited_ns)
{
	uint64_t asked_ns = sf_raw_now_ns() - 50 * S, wait_ns = 0;
	uint32_t generation;

	assert_true(sf_raw_wait_ns((int32_t)sf_raw0(SYS_gettid), &wait_ns));
	atomic_store(&entry->requested_ns, asked_ns);
	atomic_store(&entry->requested_run_delay_ns, wait_ns - waited_ns);
	assert_true(sf_slot_request(&sf_handler.link.slots[1], &generation));
	request(1, generation);
	sf_rig_drain();
}

/* One that had waited for a CPU since before it was asked: its sample is of no CPU time, which the next one gets. */
static void test_who_waited_is_weighed_so(void **state)
{
	struct sf_thread_entry *entry = sf_rig_enter(1, 0);
	const pthread_t sampler = start_asking();
	uint64_t burnt_ns;

	(void)state;
	sf_handler.config.period_ns = MS;
	ask(entry, 0);
	burnt_ns = entry->accounted_ns;
	assert_true(burnt_ns > 0);
	burn(3 * MS);
	atomic_store(&entry->run_delay_ns, 7 * MS);
	ask(entry, 1000 * S);
	assert_int_equal(sf_rig_sums[1].n_samples, 2);
	assert_int_equal(sf_rig_sums[1].cpu_ns, burnt_ns);
	assert_int_equal(sf_rig_sums[1].wall_ns, burnt_ns + 7 * MS);
	assert_int_equal(entry->accounted_ns, burnt_ns);
	assert_int_equal(entry->run_delay_ns, 0);
	ask(entry, 0);
	assert_int_equal(sf_rig_sums[1].n_samples, 3);
	assert_true(sf_rig_sums[1].cpu_ns >= burnt_ns + 3 * MS);
	assert_int_equal(sf_rig_sums[1].cpu_ns, entry->accounted_ns);
	assert_true(sf_rig_sums[1].ticks >= 5);
	/* A wait that began when the sampler woke is the sampler's doing. */
	burn(3 * MS);
	burnt_ns = entry->accounted_ns;
	ask(entry, 2 * S);
	assert_true(entry->accounted_ns >= burnt_ns + 3 * MS);
	assert_int_equal(sf_rig_sums[1].cpu_ns, entry->accounted_ns);
	stop_asking(sampler);
	assert_all_free();
}

/* Nobody weighs it: a tick is lost, its time is not. */
static void test_nobody_weighs(void **state)
{
	struct sf_thread_entry *entry = sf_rig_enter(1, 0);

	(void)state;
	sf_handler.config.patience_ns = 10 * MS;
	burn(MS);
	atomic_store(&entry->run_delay_ns, 77);
	ask(entry, 0);
	assert_int_equal(sf_rig_sums[1].n_losses[SF_LOSS_LATE], 1);
	assert_int_equal(sf_rig_sums[1].n_samples, 0);
	assert_int_equal(sf_rig_sums[1].ticks, 1);
	assert_int_equal(entry->accounted_ns, 0);
	assert_int_equal(entry->run_delay_ns, 77);
	assert_all_free();
}

/* Each is rounded, and together they are as many as periods have gone by. */
static void test_ticks_add_up(void **state)
{
	sf_rig_enter(1, 0);

	(void)state;
	sf_handler.config.period_ns = MS;
	tick();
	sf_rig_drain();
	memset(sf_rig_sums, 0, sizeof(sf_rig_sums));
	for (unsigned i = 0; i < 20; i++) {
		burn(MS * 5 / 4);
		tick();
	}
	sf_rig_drain();
	assert_in_range(sf_rig_sums[1].ticks, sf_rig_sums[1].cpu_ns / MS - 2, sf_rig_sums[1].cpu_ns / MS + 2);
}

/* No room at all: nothing is spoken for, and the next sample speaks for it. */
static void test_a_full_outbox(void **state)
{
	struct sf_thread_entry *entry = sf_rig_enter(1, 0);

	(void)state;
	while (sf_output_lose(&sf_handler.output, 1, SF_LOSS_GONE, 0, 0, 0))
		;
	burn(MS);
	atomic_store(&entry->run_delay_ns, 77);
	tick();
	assert_int_equal(entry->accounted_ns, 0);
	assert_int_equal(entry->run_delay_ns, 77);
	assert_int_equal(entry->n_samples, 0);
	sf_rig_drain();
	memset(sf_rig_sums, 0, sizeof(sf_rig_sums));
	tick();
	sf_rig_drain();
	assert_int_equal(sf_rig_sums[1].n_samples, 1);
	assert_true(sf_rig_sums[1].cpu_ns >= MS);
	assert_int_equal(sf_rig_sums[1].cpu_ns, entry->accounted_ns);
	assert_int_equal(sf_rig_sums[1].wall_ns, sf_rig_sums[1].cpu_ns + 77);
}

static void test_no_slot(void **state)
{
	struct sf_thread_entry *entry = sf_rig_enter(1, 0);

	(void)state;
	for (uint32_t i = 0; i < SF_RIG_SLOTS; i++)
		assert_non_null(sf_slot_claim(sf_handler.link.slots, SF_RIG_SLOTS, i));
	atomic_store(&entry->run_delay_ns, 77);
	tick();
	sf_rig_drain();
	assert_int_equal(sf_handler.counts.no_slot, 1);
	assert_int_equal(sf_rig_sums[1].n_losses[SF_LOSS_NO_SLOT], 1);
	assert_int_equal(sf_rig_sums[1].cpu_ns, entry->accounted_ns);
	assert_int_equal(sf_rig_sums[1].wall_ns, entry->accounted_ns + 77);
}

/* Nobody walks: the thread lets itself go, and that is a loss. */
static void test_nobody_comes(void **state)
{
	struct sf_thread_entry *entry = sf_rig_enter(1, 0);

	(void)state;
	sf_handler.config.patience_ns = 10 * MS;
	tick();
	sf_rig_drain();
	assert_int_equal(sf_rig_sums[1].n_losses[SF_LOSS_LATE], 1);
	assert_int_equal(sf_rig_sums[1].n_samples, 0);
	assert_int_equal(sf_rig_sums[1].cpu_ns, entry->accounted_ns);
	assert_all_free();
}

/* --- maps --- */

/* The service thread is rung for once, until it has taken the word away. */
static void test_a_stale_map(void **state)
{
	static const struct sf_code_map nothing;
	const struct sf_code_map *map = sf_handler.code.map;
	const uint32_t rings = sf_wake_up_count(&sf_handler.output.wake_up);

	(void)state;
	sf_rig_enter(1, 0);
	sf_handler.code.map_stale = 0;
	sf_handler.code.map = &nothing;
	tick();
	assert_int_equal(sf_handler.code.map_stale, 1);
	assert_int_equal(sf_wake_up_count(&sf_handler.output.wake_up), rings + 1);
	tick();
	assert_int_equal(sf_wake_up_count(&sf_handler.output.wake_up), rings + 1);
	sf_handler.code.map_stale = 0;
	tick();
	assert_int_equal(sf_wake_up_count(&sf_handler.output.wake_up), rings + 2);
	sf_handler.code.map = map;
	sf_rig_drain();
	assert_int_equal(sf_rig_sums[1].n_samples, 3);
}

/* The service thread is rung for when the ring that it empties fills up, and not for one that it does not. */
static void test_a_full_outbox_rings(void **state)
{
	const uint32_t rings = sf_wake_up_count(&sf_handler.output.wake_up);

	(void)state;
	sf_handler.code.map_stale = 1; /* nor for that */
	sf_rig_enter(1, 0);
	tick();
	assert_int_equal(sf_wake_up_count(&sf_handler.output.wake_up), rings);
	sf_handler.output.full_bytes = sf_outbox_used(sf_handler.output.outbox) + 1;
	tick();
	assert_int_equal(sf_wake_up_count(&sf_handler.output.wake_up), rings + 1);
	sf_rig_drain();
	tick();
	assert_int_equal(sf_wake_up_count(&sf_handler.output.wake_up), rings + 1);
	sf_handler.output.full_bytes = 0;
	sf_rig_drain();
}

/* --- system calls --- */

static int32_t ring_in(uint64_t ns)
{
	const struct itimerspec time = { .it_value = { 0, (long)ns } };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SF_RIG_SIGNAL };
	int32_t timer;

	event._sigev_un._tid = (pid_t)sf_raw0(SYS_gettid);
	event.sigev_value.sival_ptr =
		(void *)(uintptr_t)sf_handler_value(sf_handler.config.cookie, SF_NO_SLOT, 0);
	assert_int_equal(sf_raw3(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer), 0);
	assert_int_equal(sf_raw4(SYS_timer_settime, timer, 0, &time, NULL), 0);
	return timer;
}

/* Ticks mend, swallowed ones too; the program's own signal does not. */
static void test_calls_are_mended(void **state)
{
	const struct timespec time = { 0, 30 * (long)MS };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		const uint64_t before = sf_handler.counts.mended;

		for (unsigned j = 0; j < 20 && sf_handler.counts.mended == before; j++) {
			const int32_t timer = ring_in(3 * MS);

			errno = 0;
			assert_int_equal(nanosleep(&time, NULL), 0);
			assert_int_equal(errno, 0);
			sf_raw1(SYS_timer_delete, timer);
		}
		assert_true(sf_handler.counts.mended > before);
		if (i == 0)
			sf_rig_enter(1, 0);
	}
}

/* The program's handler. A tick of ours that comes while it runs is delivered when it returns. */
static volatile bool lets_tick;

static void break_off(int signal)
{
	count_call(signal);
	if (lets_tick)
		tick();
}

/* errno of a sleep that one signal of the program's breaks off; 0: it was not broken off. */
static int broken_sleep(void)
{
	const struct timespec time = { 5, 0 };
	const pid_t parent = getpid(), child = fork();
	int error;

	if (child == 0) {
		wait_until_asleep(parent);
		kill(parent, SF_RIG_SIGNAL);
		_exit(0);
	}
	error = nanosleep(&time, NULL) == 0 ? 0 : errno;
	waitpid(child, NULL, 0);
	return error;
}

/*
 * The call that the program's handler has broken off is not made again, whether a tick comes right behind the handler
 * or not.
 */
static void test_what_the_program_breaks_off(void **state)
{
	(void)state;
	signal(SF_RIG_SIGNAL, break_off);
	assert_true(sf_chain_check());
	sf_rig_enter(1, 0);
	for (int i = 0; i < 2; i++) {
		lets_tick = i;
		assert_int_equal(broken_sleep(), EINTR);
		assert_int_equal(n_foreign_calls, i + 1);
	}
	assert_int_equal(sf_handler.counts.mended, 0);
	sf_rig_drain();
	assert_int_equal(sf_rig_sums[1].n_samples, 1);
}

/* --- clocks --- */

static void test_periods(void **state)
{
	(void)state;
	assert_int_equal(sf_rearm_period(100, 100, 13, 100), 200);
	assert_int_equal(sf_rearm_period(100, 100, 12, 100), 100);
	assert_int_equal(sf_rearm_period(800, 100, 900, 800), 1600);
	assert_int_equal(sf_rearm_period(1600, 100, 900, 1600), 1600);
	assert_int_equal(sf_rearm_period(1600, 100, 49, 1600), 800);
	assert_int_equal(sf_rearm_period(1600, 100, 51, 1600), 1600);
	assert_int_equal(sf_rearm_period(100, 100, 1, 100), 100);
}

/*
 * The cost of a tick is CPU time, without the time in which its thread stood and waited. The handler backs off from a cost
 * that is too high, and comes back.
 */
static void test_costs(void **state)
{
	struct sf_thread_entry *entry = sf_rig_enter(1, 400 * MS);

	(void)state;
	sf_handler.config.patience_ns = 20 * MS; /* and nobody comes */
	sf_handler.config.period_ns = 100 * MS;
	atomic_store(&entry->period_ns, 100 * MS);
	tick();
	assert_int_equal(entry->period_ns, 100 * MS);
	atomic_store(&entry->period_ns, 400 * MS);
	tick();
	assert_int_equal(entry->period_ns, 200 * MS);
	assert_int_equal(sf_handler.counts.backed_off, 0);

	sf_handler.config.patience_ns = 0;
	sf_handler.config.period_ns = 50000;
	atomic_store(&entry->period_ns, 50000);
	tick();
	tick();
	sf_rig_leave(entry);
	assert_true(entry->period_ns > 50000);
	assert_true(sf_handler.counts.backed_off > 0);
}

/* Rings until the next sample. */
static unsigned rings_to_sample(struct sf_thread_entry *entry)
{
	unsigned n = 1;

	while (sf_rearm_passes_over(entry))
		n++;
	return n;
}

static void check_rings(uint64_t period_ns, bool jitter, unsigned least, unsigned most)
{
	struct sf_thread_entry entry = { .random = 1 };
	const uint64_t expected = period_ns > 4 * MS ? 10000 * period_ns / (4 * MS) : 10000;
	unsigned lowest = UINT32_MAX, highest = 0, sum = 0, n;

	sf_handler.config.jitter = jitter;
	for (unsigned i = 0; i < 10000; i++) {
		sf_rearm_next(&sf_handler.config, &entry, period_ns, period_ns);
		n = rings_to_sample(&entry);
		lowest = n < lowest ? n : lowest;
		highest = n > highest ? n : highest;
		sum += n;
	}
	assert_int_equal(lowest, least);
	assert_int_equal(highest, most);
	assert_in_range(sum, expected - expected / 50, expected + expected / 50);
}

/* Samples are at rings of a timer, whatever CPU time is between these, and as often as the period has it. */
static void a_timer_has_samples_at_some_rings(void **state)
{
	struct sf_thread_entry entry = { .random = 1 };
	unsigned first[4] = { 0 };

	(void)state;
	sf_handler.config.kernel_tick_ns = 4 * MS;
	check_rings(10 * MS, false, 2, 3);
	check_rings(10 * MS, true, 1, 4);
	check_rings(400 * MS, true, 75, 125);
	check_rings(4 * MS, false, 1, 1);
	check_rings(2 * MS, false, 1, 1);
	sf_handler.config.period_ns = 12 * MS;
	for (unsigned i = 0; i < 4000; i++) {
		sf_rearm_first(&sf_handler.config, &entry);
		first[rings_to_sample(&entry) - 1]++;
	}
	for (unsigned i = 0; i < 4; i++)
		assert_in_range(first[i], 900, 1100);
	sf_handler.config.period_ns = 2 * MS;
	sf_rearm_first(&sf_handler.config, &entry);
	assert_int_equal(rings_to_sample(&entry), 1);
	entry.rings_passed_over = 5;
	entry.flags = SF_ENTRY_PERF;
	assert_int_equal(rings_to_sample(&entry), 1); /* each of a perf clock's has one */
}

/* A ring that is passed over costs nothing: no slot, no loss, and the time is the next sample's. */
static void a_ring_that_is_passed_over_has_no_sample(void **state)
{
	struct sf_thread_entry *entry = sf_rig_enter(1, 0);

	(void)state;
	sf_handler.config.period_ns = MS;
	entry->rings_passed_over = 2;
	tick();
	tick();
	assert_int_equal(entry->n_samples, 0);
	assert_int_equal(entry->accounted_ns, 0);
	tick();
	sf_rig_drain();
	assert_int_equal(sf_rig_sums[1].n_samples, 1);
	assert_int_equal(sf_rig_sums[1].cpu_ns, entry->accounted_ns);
	assert_all_free();
}

/* --- threads --- */

#define N_THREADS 6
#define ENOUGH 20 /* samples of each thread; all but the last one are deep in it */
static uint64_t spoken[N_THREADS + 1], used[N_THREADS + 1];

static __attribute__((noinline)) uint64_t recurse(unsigned depth)
{
	volatile uint64_t x = depth;

	if (depth == 0) {
		burn(100000);
		return 0;
	}
	return recurse(depth - 1) + x;
}

static void *work(void *arg)
{
	const unsigned number = (unsigned)(uintptr_t)arg;
	struct sf_thread_entry *entry = sf_rig_enter(number, MS);

	while (sf_raw_thread_cpu_ns() < 200 * MS ||
	       (atomic_load(&entry->n_samples) < ENOUGH && sf_raw_thread_cpu_ns() < 5000 * MS))
		recurse(20);
	sf_rig_leave(entry);
	tick(); /* the rest */
	spoken[number] = entry->accounted_ns;
	used[number] = sf_raw_thread_cpu_ns();
	n_running--;
	return NULL;
}

static void check_thread(unsigned number)
{
	const struct sf_rig_sums *sums = &sf_rig_sums[number];

	/*
	 * How many of its ticks became samples is the machine's business: where it is busy all slots may be taken for
	 * long by threads that wait for a CPU to leave on. So each runs until it has enough. That nothing is missing is
	 * ours.
	 */
	assert_true(sums->n_samples >= ENOUGH);
	assert_int_equal(sums->cpu_ns, spoken[number]);
	assert_true(used[number] - spoken[number] < 50 * MS);
	assert_in_range(sums->ticks, spoken[number] / MS - 20, spoken[number] / MS + 20);
	assert_true(sums->n_frames / sums->n_samples > 20);
}

static void test_threads(void **state)
{
	pthread_t threads[N_THREADS], sampler;
	const bool sampled = sf_handler.link.mode == SF_MODE_SAMPLER;

	(void)state;
	n_running = N_THREADS;
	for (uintptr_t i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)(i + 1)), 0);
	if (sampled)
		assert_int_equal(pthread_create(&sampler, NULL, run_sampler, sf_rig_workspace()), 0);
	while (n_running) {
		sf_rig_drain();
		usleep(1000);
	}
	for (unsigned i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	if (sampled)
		assert_int_equal(pthread_join(sampler, NULL), 0);
	sf_rig_drain();
	for (unsigned i = 1; i <= N_THREADS; i++)
		check_thread(i);
	assert_int_equal(sf_handler.output.outbox->lost, 0);
	assert_int_equal(n_foreign_calls, 0);
	assert_all_free();
}

/*
 * On an alternate stack as small as programs have: 8 KiB, less than which sysconf(_SC_SIGSTKSZ) does not
 * advise; with a page behind it that nobody may touch.
 */
#if IS_ADDRESS_SANITIZER
#define SMALL 32768  /* it puts space around each variable, and code that is not optimised, as it is in the check, has more of them */
#else
#define SMALL 8192
#endif

static void *work_on_small_stack(void *arg)
{
	const size_t least = (size_t)sysconf(_SC_MINSIGSTKSZ);
	const size_t size = least > SMALL / 2 ? least + SMALL / 2 : SMALL;
	uint8_t *bytes = mmap(NULL, size + 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const stack_t small = { .ss_sp = bytes + 4096, .ss_size = size };
	const stack_t none = { .ss_flags = SS_DISABLE };

	mprotect(bytes, 4096, PROT_NONE);
	sigaltstack(&small, NULL);
	work(arg);
	sigaltstack(&none, NULL);
	munmap(bytes, size + 8192);
	return NULL;
}

static void test_small_stack(void **state)
{
	pthread_t thread, sampler;
	const bool sampled = sf_handler.link.mode == SF_MODE_SAMPLER;
	struct sf_kernel_action ignore = { .handler = SF_CHAIN_IGNORE };

	(void)state;
	sf_chain_set(&ignore); /* so that ours is on the alternate stack */
	n_running = 1;
	assert_int_equal(pthread_create(&thread, NULL, work_on_small_stack, (void *)1), 0);
	if (sampled)
		assert_int_equal(pthread_create(&sampler, NULL, run_sampler, sf_rig_workspace()), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	if (sampled)
		assert_int_equal(pthread_join(sampler, NULL), 0);
	sf_rig_drain();
	check_thread(1);
}

int main(void)
{
#define HANDLER(name) { #name ", handler", name, start_handler, stop, NULL }
#define SAMPLER(name) { #name ", sampler", name, start_sampler, stop, NULL }
	const struct CMUnitTest tests[] = {
		HANDLER(test_what_is_not_ours),
		HANDLER(test_what_has_lost_its_value),
		HANDLER(test_what_is_swallowed),
		HANDLER(test_a_cpu_has_its_slot),
#if defined(__x86_64__)
		HANDLER(test_a_stack_that_is_not_aligned),
#endif
		HANDLER(test_perf),
		HANDLER(test_requests),
		HANDLER(test_weights),
		HANDLER(test_ticks_add_up),
		HANDLER(test_who_waited_is_weighed_so),
		SAMPLER(test_who_waited_is_weighed_so),
		HANDLER(test_nobody_weighs),
		SAMPLER(test_nobody_weighs),
		HANDLER(test_a_full_outbox),
		HANDLER(test_no_slot),
		SAMPLER(test_nobody_comes),
		HANDLER(test_a_stale_map),
		HANDLER(test_a_full_outbox_rings),
		HANDLER(test_calls_are_mended),
		HANDLER(test_what_the_program_breaks_off),
		HANDLER(test_periods),
		SAMPLER(test_costs),
		HANDLER(a_timer_has_samples_at_some_rings),
		HANDLER(a_ring_that_is_passed_over_has_no_sample),
		HANDLER(test_threads),
		SAMPLER(test_threads),
		HANDLER(test_small_stack),
		SAMPLER(test_small_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
