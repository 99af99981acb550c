/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of things: what handlers use exists before the first clock is armed, and stays when the
 * last one is off. One mutex orders starts, stops and forks; nothing that a held thread may wait
 * for is done under it while anything is held, as only the sampler holds, and it never takes it.
 */
#include "agent/agent.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "agent/clocks/clocks.h"
#include "agent/libc/syscall_filter.h"
#include "agent/libc/fork_lock.h"
#include "agent/service/service.h"
#include "agent/control.h"
#include "agent/host/memory.h"
#include "agent/output.h"
#include "agent/runtimes.h"
#include "agent/sampler/sampler.h"
#include "agent/interpose/sampling_signal.h"
#include "agent/sampler/threads.h"
#include "agent/threads/events.h"
#include "agent/libc/vdso.h"
#include "frozen/child.h"
#include "frozen/signal/ticks.h"
#include "os/clock.h"
#include "os/own_fd.h"
#include "os/process.h"
#include "stream/control.h"
#include "stream/record.h"

#define PIECE_SIZE (16u << 10)
#define FLUSH_NS 10000000000u
#define TURN_WAIT_NS 500000000u
#define LOOK_NS 100000u
#define PATIENCE_NS 50000000u   /* more than a sampler takes to come, and not yet a hang */

static pthread_mutex_t *const mutex = &sf_fork_mutexes[SF_FORK_PROFILE];
SF_CHILD_DATA static _Atomic bool running;
SF_CHILD_DATA static struct sf_agent agent;       /* valid while running */
SF_CHILD_DATA static struct sf_own_fd channel = SF_NO_OWN_FD;
SF_CHILD_DATA static bool has_output;             /* else there is no file, whatever output says */
static char output[PATH_MAX];

static uint32_t mode_of(const struct sf_agent_options *options)
{
	return options->walk == SF_AGENT_HANDLER ? SF_MODE_HANDLER : SF_MODE_SAMPLER;
}

/* --- an event in place of time --- */

static void begin_events(void)
{
	const struct sf_runtime_event_choice *wanted = &agent.options.wanted_event;

	if (!wanted->event)
		return;
	sf_agent_events_write(wanted->event->name, wanted->event->unit, false);
	sf_agent_events_begin(wanted->each, agent.options.rate_mhz / 1000);
}

static void switch_events(bool on)
{
	if (agent.options.wanted_event.event)
		sf_agent_events_switch(on);
}

/* The sampler has ended: nobody looks after threads. */
static void end_events(void)
{
	const struct sf_runtime_event *event = agent.options.wanted_event.event;

	if (event)
		sf_agent_events_end(event->name, event->unit);
}

/* --- start --- */

static uint16_t make_cookie(void)
{
	uint16_t cookie = 0;

	if (getrandom(&cookie, sizeof(cookie), GRND_NONBLOCK) != sizeof(cookie) || !cookie)
		cookie = (uint16_t)(sf_now_ns() | 1);
	return cookie;
}

static bool prepare_inside(struct sf_error *err)
{
	struct sf_own_memory access = { .mem_fd = -1 };
	const bool has_vdso = sf_agent_find_vdso();

	if (!sf_process_check_system(err))
		return false;
	if (!sf_own_memory_probe(&access))
		return sf_fail(err, SF_E_UNSUPPORTED, "neither process_vm_readv nor /proc/self/mem "
			       "can be used here: stacks cannot be read safely");
	access.gathers &= has_vdso; /* valgrind checks what a call is given, as parts of stacks that were never written */
	sf_handler.code.memory = access;
	sf_handler.config.pid = getpid();
	/*
	 * Once: a tick of an earlier profile may be pending where the signal is blocked
	 * (frozen/signal/handler.h).
	 */
	if (!sf_handler.config.cookie)
		sf_handler.config.cookie = make_cookie();
	sf_handler.config.arch = sf_arch_host();
	sf_handler.config.jitter = true;
	sf_handler.config.kernel_tick_ns = sf_agent_clock_tick_ns();
	sf_handler.config.patience_ns = PATIENCE_NS;
	sf_handler.config.some_threads = agent.options.only != SF_AGENT_ALL || agent.options.threads;
	sf_handler.config.period_ns =
		agent.options.clock == SF_AGENT_WALL ? 0 : sf_period_ns(agent.options.rate_mhz);
	return sf_handler.config.arch || sf_fail(err, SF_E_UNSUPPORTED, "no support for this processor");
}

static bool choose_clock(struct sf_error *err)
{
	if (agent.options.event || agent.options.clock == SF_AGENT_WALL)
		return true;
	agent.clock = sf_agent_clock_choose(agent.options.cpu_clock, err);
	return agent.clock != NULL;
}

static bool stop_from_service(void);

static bool start_threads(struct sf_error *err)
{
	const char *path = channel.fd < 0 ? output : NULL;

	if (!sf_output_write_process(&agent.options, (uint16_t)mode_of(&agent.options), err) ||
	    !sf_service_start(&agent, channel.fd, path, stop_from_service, err))
		return false;
	agent.threads->own[2] = sf_control_listener_tid();
	atomic_store(&sf_handler.link.mode, mode_of(&agent.options));
	if (sf_sampler_start(&agent, err))
		return true;
	atomic_store(&sf_handler.link.mode, SF_MODE_OFF);
	sf_service_stop(&agent, 0, NULL);
	return false;
}

static void free_all(void)
{
	atomic_store(&sf_handler.link.mode, SF_MODE_OFF);
	sf_agent_runtimes_end();
	sf_agent_signal_remove();
	sf_agent_leave_outbox(false);
	sf_agent_threads_destroy(agent.threads);
	sf_workspace_destroy(agent.workspace);
	sf_own_memory_close(&sf_handler.code.memory);
	agent = (struct sf_agent){ 0 };
	channel = SF_NO_OWN_FD;
}

static bool install_signal(struct sf_error *err)
{
	const int clock = agent.options.cpu_clock;
	const bool for_perf = clock && sf_agent_clocks[clock - 1]->is_perf;

	return sf_agent_signal_install(agent.options.signal, for_perf, err);
}

/* Everything up to the threads. */
static bool make_all(int *outbox_fd_ret, struct sf_error *err)
{
	if (!sf_agent_make_slots(&agent.options, err) || !sf_agent_make_outbox(outbox_fd_ret, err))
		return false;
	agent.workspace = sf_workspace_create(&sf_handler.code.memory, agent.options.max_depth, PIECE_SIZE);
	if (!agent.workspace)
		return sf_fail_memory(err);
	agent.threads = sf_agent_threads_create(&agent.options, agent.workspace, err);
	return agent.threads && install_signal(err) && choose_clock(err);
}

/* options.out is a place in options.text, which stays the caller's when this fails. */
static bool start_locked(struct sf_agent_options *options, int with_channel, struct sf_error *err)
{
	int outbox_fd = -1;
	bool ok;

	output[0] = 0;
	has_output = true;
	if (with_channel < 0 && !sf_output_name(options, output, err))
		return false;
	agent = (struct sf_agent){ .options = *options };
	if (options->first && sf_output_is_own(output))
		agent.options.again = true;
	channel = sf_own_fd_of(with_channel);
	ok = sf_filter_check(SF_FILTER_SAMPLING, err) && prepare_inside(err) &&
	     sf_agent_runtimes_begin(&agent.options, err) &&
	     make_all(channel.fd < 0 ? NULL : &outbox_fd, err) &&
	     start_threads(err);
	/* If nobody is there any more the service thread will notice. */
	if (ok && channel.fd >= 0) {
		sf_control_send(channel.fd, SF_CONTROL_READY, NULL, outbox_fd, NULL);
		sf_service_take_channel(&agent, &channel);
	}
	if (outbox_fd >= 0)
		close(outbox_fd);
	if (!ok) {
		free_all();
		return false;
	}
	*options = (struct sf_agent_options){ 0 };
	begin_events();
	atomic_store(&running, true);
	return true;
}

bool sf_agent_start(struct sf_agent_options *options, int with_channel, struct sf_error *err)
{
	bool ok;

	pthread_mutex_lock(mutex);
	if (atomic_load(&running)) {
		ok = sf_fail(err, SF_E_SYSTEM, "this process is being sampled already");
		if (err)
			err->os_errno = EBUSY;
	} else {
		ok = start_locked(options, with_channel, err);
	}
	pthread_mutex_unlock(mutex);
	return ok;
}

/* --- stop --- */

static bool stop_locked(struct sf_error *err)
{
	struct sf_agent_options options = agent.options;
	bool ok;

	switch_events(false);
	sf_sampler_stop(&agent);
	sf_agent_runtimes_stop();
	atomic_store(&sf_handler.link.mode, SF_MODE_OFF);
	end_events();
	sf_agent_wait_for_slots(); /* in vain: what a late handler touches stays all the same */
	ok = sf_service_stop(&agent, sf_sampler_cpu_ns(&agent), err);
	sf_sampler_destroy(&agent);
	free_all();
	atomic_store(&running, false);
	sf_agent_options_deinit(&options);
	return ok;
}

bool sf_agent_stop(const char *why, struct sf_error *err)
{
	bool ok;

	pthread_mutex_lock(mutex);
	snprintf(agent.why, sizeof(agent.why), "%s", why ? why : "");
	ok = !atomic_load(&running) || stop_locked(err);
	pthread_mutex_unlock(mutex);
	return ok;
}

/*
 * Called by the service thread when sampling ends by itself (duration over, collector gone): stops
 * the profile. False: another thread is starting or stopping a profile (and waits for the service
 * thread); the service thread must go on.
 */
static bool stop_from_service(void)
{
	if (pthread_mutex_trylock(mutex) != 0)
		return false;
	/* While it runs this is the service thread of the profile that runs. */
	stop_locked(NULL);
	pthread_mutex_unlock(mutex);
	return true;
}

bool sf_agent_running(void)
{
	return atomic_load_explicit(&running, memory_order_acquire);
}

struct sf_agent *sf_agent_locked(void)
{
	return atomic_load(&running) ? &agent : NULL;
}

void sf_agent_switch_on_locked(void)
{
	if (!atomic_load(&agent.paused))
		atomic_store(&sf_handler.link.mode, mode_of(&agent.options));
}

void sf_agent_end_locked(void)
{
	stop_locked(NULL);
}

/* The memory of the service thread stays allocated, as in a forked child. */
void sf_agent_abandon_locked(void)
{
	struct sf_agent_options options = agent.options;

	sf_sampler_destroy(&agent);
	atomic_store(&sf_handler.code.map, NULL);
	sf_service_forget(false);
	free_all();
	atomic_store(&running, false);
	sf_agent_options_deinit(&options);
}

/* --- while it runs --- */

/* The sampler has made a whole turn since, or is so busy that it may as well not have. */
static void wait_for_turn(void)
{
	uint64_t before = atomic_load(&agent.n_quiet);
	uint64_t until_ns = sf_now_ns() + TURN_WAIT_NS;

	sf_agent_threads_hurry();
	while (atomic_load(&agent.n_quiet) - before < 2 && sf_now_ns() < until_ns) {
		sf_sleep_until(sf_now_ns() + LOOK_NS);
		sf_agent_threads_hurry();
	}
}

/*
 * Clocks ring on while paused, and the handler passes over it. Accounts are set anew before it
 * samples again.
 */
static void pause_locked(bool pause)
{
	if (pause)
		atomic_store(&sf_handler.link.mode, SF_MODE_OFF);
	atomic_store(&agent.paused, pause);
	switch_events(!pause);
	wait_for_turn();
	if (!pause)
		atomic_store(&sf_handler.link.mode, mode_of(&agent.options));
}

void sf_agent_pause(bool pause)
{
	pthread_mutex_lock(mutex);
	if (atomic_load(&running) && atomic_load(&agent.paused) != pause)
		pause_locked(pause);
	pthread_mutex_unlock(mutex);
}

bool sf_agent_flush(struct sf_error *err)
{
	bool ok = true;

	pthread_mutex_lock(mutex);
	if (atomic_load(&running) && channel.fd < 0)
		ok = sf_service_flush(FLUSH_NS, err);
	pthread_mutex_unlock(mutex);
	return ok;
}

void sf_agent_flush_within(uint64_t ns)
{
	if (sf_agent_running())
		sf_service_flush(ns, NULL);
}

const char *sf_agent_output(void)
{
	return has_output ? output : "";
}

/* --- fork --- */

SF_CHILD_CODE bool sf_agent_after_fork_in_child(bool images_are_whole, struct sf_agent_options *options_ret)
{
	bool was = atomic_load(&running);

	atomic_store(&sf_handler.link.mode, SF_MODE_OFF);
	sf_agent_thread_table_forked();
	*options_ret = (struct sf_agent_options){ 0 };
	if (!was)
		return false;
	*options_ret = agent.options;
	atomic_store(&sf_handler.code.map, NULL);
	sf_agent_leave_outbox(true);
	sf_agent_empty_slots();
	atomic_store(&sf_handler.link.wake_up.sleeper, 0); /* a thread of the parent's */
	sf_agent_signal_remove();
	sf_service_forget(images_are_whole);
	sf_own_memory_close(&sf_handler.code.memory);
	has_output = false;
	agent = (struct sf_agent){ 0 };
	channel = SF_NO_OWN_FD;
	atomic_store(&running, false);
	return true;
}
