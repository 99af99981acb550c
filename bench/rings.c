/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of one ring of a clock for its thread, without the handler, which does nothing: CPU time of a fixed
 * amount of work with each clock and without, in turns; the lower quartile over the rounds.
 *
 * rings [ROUNDS [HZ]]
 */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define TURNS 1000000000u
#define MAX_ROUNDS 100

static volatile unsigned long n_rings;
static unsigned long period_ns = 1000000;
static int event = -1;
static unsigned rings_per_period;   /* after so many the perf clock is set anew; 0: never */
static timer_t timer;

static void handler(int number, siginfo_t *info, void *context)
{
	unsigned long next_ns = period_ns - period_ns / 4 + (unsigned long)rand() % (period_ns / 2);

	(void)number, (void)info, (void)context;
	n_rings++;
	if (rings_per_period && n_rings % rings_per_period == 0)
		ioctl(event, PERF_EVENT_IOC_PERIOD, &next_ns);
}

static void start_perf(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = period_ns,
		.wakeup_events = 1,
	};
	struct f_owner_ex owner = { .type = F_OWNER_TID, .pid = gettid() };

	event = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	fcntl(event, F_SETSIG, SIGPROF);
	fcntl(event, F_SETOWN_EX, &owner);
	fcntl(event, F_SETFL, O_ASYNC);
}

static void start_nothing(void)
{
}

static void start_perf_1(void)
{
	rings_per_period = 1;
	start_perf();
}

static void start_perf_8(void)
{
	rings_per_period = 8;
	start_perf();
}

static void stop_perf(void)
{
	close(event);
	rings_per_period = 0;
}

static void start_timer(void)
{
	struct sigevent how = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF };
	struct itimerspec when = { { 0, (long)period_ns }, { 0, (long)period_ns } };

	how.sigev_notify_thread_id = gettid();
	timer_create(CLOCK_THREAD_CPUTIME_ID, &how, &timer);
	timer_settime(timer, 0, &when, NULL);
}

static void stop_timer(void)
{
	timer_delete(timer);
}

static void set_itimer(long us)
{
	setitimer(ITIMER_PROF, &(struct itimerval){ { 0, us }, { 0, us } }, NULL);
}

static void start_itimer(void)
{
	set_itimer((long)period_ns / 1000);
}

static void stop_itimer(void)
{
	set_itimer(0);
}

static const struct {
	const char *name;
	void (*start)(void), (*stop)(void);
} clocks[] = {   /* to add one: a line here */
	{ "nothing", start_nothing, start_nothing },
	{ "perf", start_perf, stop_perf },
	{ "perf, set anew at each ring", start_perf_1, stop_perf },
	{ "perf, set anew at one ring of 8", start_perf_8, stop_perf },
	{ "timer", start_timer, stop_timer },
	{ "setitimer", start_itimer, stop_itimer },
};

#define N_CLOCKS (sizeof(clocks) / sizeof(clocks[0]))

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double work(unsigned clock, double *rings_ret)
{
	double before, seconds;

	n_rings = 0;
	clocks[clock].start();
	before = cpu_seconds();
	for (volatile unsigned long i = 0; i < TURNS; i++)
		;
	seconds = cpu_seconds() - before;
	*rings_ret = (double)n_rings;
	clocks[clock].stop();
	return seconds;
}

static int compare(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static void print(const double seconds[N_CLOCKS], const double rings[N_CLOCKS])
{
	printf("\n### One ring of a clock, %lu Hz\n\n| clock | rings per CPU second | CPU time | us per ring |\n|---|---|---|---|\n",
	       1000000000 / period_ns);
	for (unsigned i = 0; i < N_CLOCKS; i++) {
		printf("| %s | %.0f | %+.2f %% | ", clocks[i].name, rings[i] / seconds[i],
		       100 * (seconds[i] / seconds[0] - 1));
		if (rings[i] > 0)
			printf("%.1f |\n", 1e6 * (seconds[i] - seconds[0]) / rings[i]);
		else
			printf("- |\n");
	}
}

int main(int argc, char **argv)
{
	static double seconds[N_CLOCKS][MAX_ROUNDS], rings[N_CLOCKS][MAX_ROUNDS];
	int n = argc > 1 ? atoi(argv[1]) : 25;
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART };
	double low[N_CLOCKS], middle[N_CLOCKS];

	if (n < 1 || n > MAX_ROUNDS)
		return 2;
	period_ns = 1000000000ul / (argc > 2 ? strtoul(argv[2], NULL, 10) : 1000);
	sigfillset(&action.sa_mask);
	sigaction(SIGPROF, &action, NULL);
	for (int round = 0; round < n; round++)
		for (unsigned i = 0; i < N_CLOCKS; i++)
			seconds[i][round] = work(i, &rings[i][round]);
	for (unsigned i = 0; i < N_CLOCKS; i++) {
		qsort(seconds[i], (size_t)n, sizeof(double), compare);
		qsort(rings[i], (size_t)n, sizeof(double), compare);
		low[i] = seconds[i][n / 4];
		middle[i] = rings[i][n / 2];
	}
	print(low, middle);
	return 0;
}
