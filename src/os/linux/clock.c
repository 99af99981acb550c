/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clocks, sleeps and alarms on Linux.
 *
 * The alarm is a POSIX timer that signals this one thread (timer_create(2), SIGEV_THREAD_ID). It
 * repeats, because a signal that comes just before the call blocks would be missed.
 */
#include "os/clock.h"

#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "os/linux/proc.h"

#define REPEAT_NS 2000000

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static timer_t alarm_timer;
static bool alarm_open, alarm_set;

/*
 * Where sf_alarm_bound is to be left to, while it is in its call. Of the one thread with an alarm.
 */
static sigjmp_buf bound_end;
static volatile sig_atomic_t is_bound;

static uint64_t read_clock(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

uint64_t sf_now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t sf_unix_now_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}

/* The second number of /proc/uptime, seconds with two decimals (proc_uptime(5)). */
uint64_t sf_idle_ns(void)
{
	unsigned long long seconds = 0, hundredths = 0;

	sf_proc_scan("/proc/uptime", "%*u.%*u %llu.%llu", &seconds, &hundredths);
	return seconds * 1000000000 + hundredths * 10000000;
}

static struct timespec as_timespec(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000u),
				  .tv_nsec = (long)(ns % 1000000000u) };
}

void sf_sleep_until(uint64_t time_ns)
{
	struct timespec time = as_timespec(time_ns);

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

static void on_alarm(int signal_number)
{
	(void)signal_number;
	if (is_bound)
		siglongjmp(bound_end, 1);
}

bool sf_alarm_bound(void (*fn)(void *arg), void *arg)
{
	if (sigsetjmp(bound_end, 0) != 0) {
		is_bound = 0;
		return false;
	}
	is_bound = 1;
	fn(arg);
	is_bound = 0;
	return true;
}

bool sf_alarm_open(struct sf_error *err)
{
	/* No SA_RESTART: that is the point. SA_NODEFER: the handler may be left by a jump. */
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_NODEFER };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN };
	sigset_t set;

	event.sigev_notify_thread_id = gettid();
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	if (sigaction(SIGRTMIN, &action, NULL) != 0 ||
	    pthread_sigmask(SIG_UNBLOCK, &set, NULL) != 0 ||
	    timer_create(CLOCK_MONOTONIC, &event, &alarm_timer) != 0)
		return sf_fail_os(err, "cannot create a timer");
	alarm_open = true;
	return true;
}

void sf_alarm_set(uint64_t time_ns)
{
	struct itimerspec when = { 0 };

	if (!alarm_open || (!time_ns && !alarm_set))
		return;
	alarm_set = time_ns != 0;
	if (time_ns) {
		when.it_value = as_timespec(time_ns);
		when.it_interval = as_timespec(REPEAT_NS);
	}
	timer_settime(alarm_timer, TIMER_ABSTIME, &when, NULL);
}

void sf_alarm_handle_once(int signal_number, void (*handler)(int signal_number))
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = (int)SA_RESETHAND };

	sigfillset(&action.sa_mask);
	sigaction(signal_number, &action, NULL);
}

void sf_alarm_close(void)
{
	if (!alarm_open)
		return;
	timer_delete(alarm_timer);
	alarm_open = false;
}
