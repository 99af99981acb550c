/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that take their signals by hand: every thread blocks all signals, and one takes whatever comes, by
 * sigtimedwait or signalfd, as servers do, also by the numbers of these calls. A signal that is not the program's own must not
 * come there, nor while another thread sets the signals of the signalfd anew. sigtimedwait waits for the longest time that there
 * is, and must not end without a signal.
 *
 * in_sigwait [SECONDS]
 */
#include <limits.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>

#include "in_program.h"

static int64_t end_ns;
static sigset_t all;
static volatile bool done;

/* Numbered, to one thread, one at a time. */
#define N_TAKERS 4
#define SET_SIZE 8 /* the kernel's */

struct taker {
	pthread_t thread;
	bool by_fd, by_number;
	_Atomic int fd; /* -1 in most of them */
	volatile unsigned taken;
	unsigned foreign, disordered, early;
	int last_foreign;
};

static int make_fd(const struct taker *taker, int fd)
{
	return taker->by_number ? (int)syscall(SYS_signalfd4, fd, &all, SET_SIZE, SFD_NONBLOCK) : signalfd(fd, &all, SFD_NONBLOCK);
}

static int take(const struct taker *taker, siginfo_t *ret)
{
	struct signalfd_siginfo info;
	const struct timespec wait = { .tv_sec = LONG_MAX };

	if (!taker->by_fd)
		return taker->by_number ? (int)syscall(SYS_rt_sigtimedwait, &all, ret, &wait, SET_SIZE) : sigtimedwait(&all, ret, &wait);
	if (read(taker->fd, &info, sizeof(info)) != sizeof(info))
		return -1;
	ret->si_value.sival_int = info.ssi_int;
	return (int)info.ssi_signo;
}

static void *take_signals(void *arg)
{
	struct taker *taker = arg;

	taker->fd = taker->by_fd ? make_fd(taker, -1) : -1;
	while (!done) {
		siginfo_t info;
		int signal = take(taker, &info);

		burn_ns(300000);
		if (signal == SIGRTMIN + 4) {
			taker->disordered += info.si_value.sival_int != (int)taker->taken;
			taker->taken++;
		} else if (signal < 0) {
			taker->early += !taker->by_fd;
		} else if (signal != SIGRTMIN + 5) {
			taker->foreign++;
			taker->last_foreign = signal;
		}
	}
	close(taker->fd);
	return NULL;
}

/* The same signals, by another thread than the one that reads, for as long. */
static void set_anew(const struct taker takers[N_TAKERS], int64_t ns)
{
	const int64_t until_ns = now_ns() + ns;

	while (now_ns() < until_ns) {
		for (int i = 0; i < N_TAKERS; i++) {
			if (takers[i].fd >= 0)
				make_fd(&takers[i], takers[i].fd);
		}
	}
}

/* The queue has room for so many signals to all processes of a user: others may have filled it for a moment. */
static void send(const struct taker *taker, union sigval value)
{
	while (pthread_sigqueue(taker->thread, SIGRTMIN + 4, value) == EAGAIN)
		sleep_ns(1000000);
}

/* On a busy machine they lag behind; what is lost never comes. */
static void wait_for(const struct taker *taker, unsigned sent)
{
	int64_t patience = now_ns() + 20 * NS_PER_S;

	while (now_ns() < patience && taker->taken < sent)
		sleep_ns(2000000);
}

int main(int argc, char **argv)
{
	struct taker takers[N_TAKERS] = {
		{ .fd = -1 },
		{ .by_fd = true, .fd = -1 },
		{ .by_number = true, .fd = -1 },
		{ .by_fd = true, .by_number = true, .fd = -1 },
	};
	union sigval value = { .sival_int = 0 };
	unsigned bad = 0;

	bounded(60);
	end_ns = now_ns() + argument(argc, argv, 1, 2) * NS_PER_S;
	sigfillset(&all);
	sigdelset(&all, SIGALRM);
	sigprocmask(SIG_BLOCK, &all, NULL);
	for (int i = 0; i < N_TAKERS; i++)
		if (pthread_create(&takers[i].thread, NULL, take_signals, &takers[i]) != 0)
			return 2;
	ready();
	for (; now_ns() < end_ns; value.sival_int++) {
		for (int i = 0; i < N_TAKERS; i++)
			send(&takers[i], value);
		set_anew(takers, 1000000);
		sleep_ns(1000000);
	}
	for (int i = 0; i < N_TAKERS; i++)
		wait_for(&takers[i], value.sival_int);
	sleep_ns(50000000); /* for what should not come */
	done = true;
	for (int i = 0; i < N_TAKERS; i++) {
		while (pthread_kill(takers[i].thread, SIGRTMIN + 5) == EAGAIN)
			sleep_ns(1000000);
		pthread_join(takers[i].thread, NULL);
		printf("%s%s taken %u of %d foreign %u (signal %d) disordered %u early %u\n",
		       takers[i].by_fd ? "signalfd" : "sigtimedwait", takers[i].by_number ? " by number" : "",
		       takers[i].taken, value.sival_int, takers[i].foreign, takers[i].last_foreign,
		       takers[i].disordered, takers[i].early);
		bad += takers[i].foreign || takers[i].disordered || takers[i].early || takers[i].taken != (unsigned)value.sival_int;
	}
	return bad != 0;
}
