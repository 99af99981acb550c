/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registers from a signal's context, and system calls that a signal broke. Each call sleeps, is interrupted a few
 * times by a timer whose handler mends it, and then gets its data: it must never have seen an EINTR. Once as the
 * only thread and once as one of several, since glibc has other code for each.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <cmocka.h>

#include "asleep.h"
#include "frozen/signal/interrupted_calls.h"
#include "frozen/signal/context.h"
#include "frozen/signal/handler.h"

#define OURS SIGALRM
#define HITS 4            /* interruptions of each call */
#define HIT_US 2000
#define TIMEOUT_NS 40000000L

/* --- what interrupts --- */

static volatile sig_atomic_t hits, mended, is_mending = 1, also_raise;
static void (*volatile feed)(void);   /* what the call waits for; NULL: its time-out */

static void set_timer(long us)
{
	const struct itimerval time = { .it_value = { 0, us } };

	setitimer(ITIMER_REAL, &time, NULL);
}

static int64_t last_hit_ns;

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void mend(void *context)
{
	uint64_t pc;

	if (is_mending && sf_context_interrupted(context, &pc) &&
	    sf_context_mend(&sf_handler.config, context, (const uint8_t *)(uintptr_t)pc - SF_CONTEXT_CODE,
			    SF_CONTEXT_CODE))
		mended++;
}

/* All signals are blocked in it, as in ours. */
static void interrupt(int number, siginfo_t *info, void *context)
{
	const int saved = errno;

	(void)number, (void)info;
	hits++;
	last_hit_ns = now_ns();
	if (also_raise)
		raise(also_raise);
	sf_context_give_way(&sf_handler.config, context);
	mend(context);
	if (hits < HITS)
		set_timer(HIT_US);
	else if (feed)
		feed();
	errno = saved;
}

static void install(int number, void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART };

	sigfillset(&action.sa_mask);
	assert_int_equal(sigaction(number, &action, NULL), 0);
}

/* --- the calls --- */

struct call {
	const char *name;
	int number;                /* of the system call, 0: whatever libc takes */
	long (*call)(void);
	void (*feed)(void);
	long wanted;
	bool restarts;             /* the kernel does it, as SA_RESTART says */
};

static int ends[2], epoll, queue, set, child, listener, spare, file, mailbox;
static char path[32];
static sem_t semaphore;

static struct timespec timeout(void)
{
	return (struct timespec){ 0, TIMEOUT_NS };
}

static struct timespec until(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	time.tv_nsec += TIMEOUT_NS;
	if (time.tv_nsec >= 1000000000L)
		time.tv_sec++, time.tv_nsec -= 1000000000L;
	return time;
}

static void feed_byte(void)
{
	if (write(ends[1], "x", 1) != 1)
		_exit(9);
}

static void feed_post(void)
{
	sem_post(&semaphore);
}

static void feed_message(void)
{
	const struct msgbuf message = { .mtype = 1 };

	msgsnd(queue, &message, 0, 0);
}

static void feed_mailbox(void)
{
	mq_send(mailbox, "", 0, 0);
}

static void feed_kill(void)
{
	kill(child, SIGKILL);
}

static void feed_drain(void)
{
	char bytes[65536];

	while (recv(ends[1], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

static void feed_accept(void)
{
	close(accept(listener, NULL, NULL));
}

static void feed_connect(void)
{
	struct sockaddr_in address;
	socklen_t size = sizeof(address);

	spare = socket(AF_INET, SOCK_STREAM, 0);
	getsockname(listener, (struct sockaddr *)&address, &size);
	connect(spare, (struct sockaddr *)&address, size);
}

static void feed_unlock(void)
{
	kill(child, SIGTERM); /* with its lock */
}

static long call_poll(void)
{
	struct pollfd wait = { .fd = ends[0], .events = POLLIN };

	return poll(&wait, 1, TIMEOUT_NS / 1000000);
}

static long call_ppoll(void)
{
	struct pollfd wait = { .fd = ends[0], .events = POLLIN };
	struct timespec time = timeout();

	return ppoll(&wait, 1, &time, NULL);
}

static long call_select(void)
{
	struct timeval time = { 0, TIMEOUT_NS / 1000 };
	fd_set fds;

	FD_ZERO(&fds);
	FD_SET(ends[0], &fds);
	return select(ends[0] + 1, &fds, NULL, NULL, &time);
}

static long call_pselect(void)
{
	struct timespec time = timeout();
	fd_set fds;

	FD_ZERO(&fds);
	FD_SET(ends[0], &fds);
	return pselect(ends[0] + 1, &fds, NULL, NULL, &time, NULL);
}

static long call_epoll_wait(void)
{
	struct epoll_event event;

	return epoll_wait(epoll, &event, 1, TIMEOUT_NS / 1000000);
}

static long call_epoll_pwait(void)
{
	struct epoll_event event;

	return epoll_pwait(epoll, &event, 1, TIMEOUT_NS / 1000000, NULL);
}

static long call_epoll_pwait2(void)
{
	struct timespec time = timeout();
	struct epoll_event event;

	return epoll_pwait2(epoll, &event, 1, &time, NULL);
}

static long call_nanosleep(void)
{
	struct timespec time = timeout();

	return nanosleep(&time, NULL);
}

static long call_clock_nanosleep(void)
{
	struct timespec time = timeout();

	return clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static long call_clock_nanosleep_until(void)
{
	struct timespec time = until(CLOCK_MONOTONIC);

	return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

static long call_usleep(void)
{
	return usleep(TIMEOUT_NS / 1000);
}

static long call_sem_timedwait(void)
{
	struct timespec time = until(CLOCK_REALTIME);

	time.tv_sec += 60;
	return sem_timedwait(&semaphore, &time);
}

static long call_sem_wait(void)
{
	return sem_wait(&semaphore);
}

static long call_read(void)
{
	char byte;

	return read(ends[0], &byte, 1);
}

static long call_recv(void)
{
	char byte;

	return recv(ends[0], &byte, 1, 0);
}

static long call_recvfrom(void)
{
	struct sockaddr_storage from;
	socklen_t size = sizeof(from);
	char byte;

	return recvfrom(ends[0], &byte, 1, 0, (struct sockaddr *)&from, &size);
}

static long call_recvmsg(void)
{
	char byte;
	struct iovec piece = { &byte, 1 };
	struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1 };

	return recvmsg(ends[0], &message, 0);
}

static long call_recvmmsg(void)
{
	char byte;
	struct iovec piece = { &byte, 1 };
	struct mmsghdr message = { .msg_hdr = { .msg_iov = &piece, .msg_iovlen = 1 } };

	return recvmmsg(ends[0], &message, 1, 0, NULL);
}

static long call_send(void)
{
	return send(ends[0], "x", 1, 0);
}

static long call_sendto(void)
{
	return sendto(ends[0], "x", 1, 0, NULL, 0);
}

static long call_write(void)
{
	return write(ends[0], "x", 1);
}

static long call_accept(void)
{
	const int fd = accept(listener, NULL, NULL);

	return close(fd);
}

static long call_accept4(void)
{
	const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	return close(fd);
}

/* The socket is bound by its kind alone (autobind), and its queue is full. */
static long call_connect(void)
{
	const struct timeval patience = { 60, 0 };
	struct sockaddr_un address;
	socklen_t size = sizeof(address);
	const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	long result;

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	getsockname(listener, (struct sockaddr *)&address, &size);
	result = connect(fd, (struct sockaddr *)&address, size);
	close(fd);
	return result;
}

/* The kernel answers no more while the queue of the other end is full; it asks again after a second. */
static long call_connect_tcp(void)
{
	const struct timeval patience = { 60, 0 };
	struct sockaddr_in address;
	socklen_t size = sizeof(address);
	const int fd = socket(AF_INET, SOCK_STREAM, 0);
	long result;

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	getsockname(listener, (struct sockaddr *)&address, &size);
	result = connect(fd, (struct sockaddr *)&address, size);
	if (result == 0)
		result = send(fd, "x", 1, 0) - 1;
	close(fd);
	return result;
}

static long call_msgrcv(void)
{
	struct msgbuf message;

	return msgrcv(queue, &message, sizeof(message.mtext), 0, 0);
}

static long call_semtimedop(void)
{
	struct sembuf one = { .sem_op = -1 };
	struct timespec time = timeout();

	return semtimedop(set, &one, 1, &time) == -1 && errno == EAGAIN ? 7 : -1;
}

static long call_sigtimedwait(void)
{
	struct timespec time = timeout();
	sigset_t nothing;

	sigemptyset(&nothing);
	sigaddset(&nothing, SIGUSR1);
	return sigtimedwait(&nothing, NULL, &time) == -1 && errno == EAGAIN ? 7 : -1;
}

static long call_mq_receive(void)
{
	struct timespec time = until(CLOCK_REALTIME);
	char bytes[8192];

	time.tv_sec += 60;
	return mq_timedreceive(mailbox, bytes, sizeof(bytes), NULL, &time);
}

static long call_waitpid(void)
{
	int status;

	return waitpid(child, &status, 0) == child ? 0 : -1;
}

static long call_flock(void)
{
	return flock(file, LOCK_EX);
}

/* As libaio makes it: the call itself, no function of libc's. */
static long io_getevents(unsigned long context, const struct timespec *time, uint64_t event[4])
{
	long result = 0;
#ifdef __x86_64__
	register long r10 __asm__("r10") = (long)event;
	register long r8 __asm__("r8") = (long)time;

	__asm__ volatile("mov $208, %%eax; syscall"
			 : "=a"(result)
			 : "D"(context), "S"(1L), "d"(1L), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
#endif
	return result;
}

/* The same, without a mask. */
static long io_pgetevents(unsigned long context, const struct timespec *time, uint64_t event[4])
{
	long result = 0;
#ifdef __x86_64__
	register long r10 __asm__("r10") = (long)event;
	register long r8 __asm__("r8") = (long)time;
	register long r9 __asm__("r9") = 0;

	__asm__ volatile("mov $333, %%eax; syscall"
			 : "=a"(result)
			 : "D"(context), "S"(1L), "d"(1L), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
#endif
	return result;
}

static long wait_for_events(long (*call)(unsigned long context, const struct timespec *time, uint64_t event[4]))
{
	unsigned long context = 0;
	struct timespec time = timeout();
	uint64_t event[4];
	long result;

	assert_int_equal(syscall(SYS_io_setup, 1, &context), 0);
	result = call(context, &time, event);
	syscall(SYS_io_destroy, context);
	return result;
}

static long call_io_getevents(void)
{
	return wait_for_events(io_getevents);
}

static long call_io_pgetevents(void)
{
	return wait_for_events(io_pgetevents);
}

/* As liburing makes it, with a time-out. */
static long io_uring_enter(int ring, const struct io_uring_getevents_arg *time)
{
	long result = 0;
#ifdef __x86_64__
	register long r10 __asm__("r10") = IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG;
	register long r8 __asm__("r8") = (long)time;
	register long r9 __asm__("r9") = sizeof(*time);

	__asm__ volatile("mov $426, %%eax; syscall"
			 : "=a"(result)
			 : "D"((long)ring), "S"(0L), "d"(1L), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
#endif
	return result;
}

static long call_io_uring_enter(void)
{
	struct io_uring_params params = { 0 };
	struct timespec time = timeout();
	const struct io_uring_getevents_arg arg = { .ts = (uint64_t)(uintptr_t)&time };
	const int ring = (int)syscall(SYS_io_uring_setup, 1, &params);
	long result;

	if (ring < 0) {
		print_message("SKIPPED io_uring_enter: there is no io_uring here\n");
		return 7;
	}
	result = io_uring_enter(ring, &arg);
	close(ring);
	return result == -ETIME ? 7 : -1;
}

/* To add one: a line here, and one in frozen/signal/interrupted_calls.c where it is not there yet. */
static const struct call calls[] = {
	{ "poll", SYS_poll, call_poll, NULL, 0, false },
	{ "poll, fed", SYS_poll, call_poll, feed_byte, 1, false },
	{ "ppoll", SYS_ppoll, call_ppoll, NULL, 0, false },
	{ "select", SYS_pselect6, call_select, NULL, 0, false },
	{ "pselect", SYS_pselect6, call_pselect, NULL, 0, false },
	{ "epoll_wait", SYS_epoll_wait, call_epoll_wait, NULL, 0, false },
	{ "epoll_pwait", SYS_epoll_pwait, call_epoll_pwait, feed_byte, 1, false },
	{ "epoll_pwait2", 441, call_epoll_pwait2, NULL, 0, false },
	{ "nanosleep", SYS_clock_nanosleep, call_nanosleep, NULL, 0, false },
	{ "clock_nanosleep", SYS_clock_nanosleep, call_clock_nanosleep, NULL, 0, false },
	{ "clock_nanosleep, until", SYS_clock_nanosleep, call_clock_nanosleep_until, NULL, 0, false },
	{ "usleep", SYS_clock_nanosleep, call_usleep, NULL, 0, false },
	{ "sem_timedwait", SYS_futex, call_sem_timedwait, feed_post, 0, false },
	{ "sem_wait", SYS_futex, call_sem_wait, feed_post, 0, true },
	{ "read, socket with a time-out", SYS_read, call_read, feed_byte, 1, false },
	{ "recv with a time-out", SYS_recvfrom, call_recv, feed_byte, 1, false },
	{ "recvfrom with a time-out", SYS_recvfrom, call_recvfrom, feed_byte, 1, false },
	{ "recvmsg with a time-out", SYS_recvmsg, call_recvmsg, feed_byte, 1, false },
	{ "recvmmsg with a time-out", SYS_recvmmsg, call_recvmmsg, feed_byte, 1, false },
	{ "send with a time-out", SYS_sendto, call_send, feed_drain, 1, false },
	{ "sendto with a time-out", SYS_sendto, call_sendto, feed_drain, 1, false },
	{ "write with a time-out", SYS_write, call_write, feed_drain, 1, false },
	{ "accept with a time-out", SYS_accept, call_accept, feed_connect, 0, false },
	{ "accept4 with a time-out", SYS_accept4, call_accept4, feed_connect, 0, false },
	{ "connect with a time-out", SYS_connect, call_connect, feed_accept, 0, false },
	{ "connect by TCP with a time-out", SYS_connect, call_connect_tcp, feed_accept, 0, false },
	{ "msgrcv", SYS_msgrcv, call_msgrcv, feed_message, 0, false },
	{ "semtimedop", SYS_semtimedop, call_semtimedop, NULL, 7, false },
	{ "sigtimedwait", SYS_rt_sigtimedwait, call_sigtimedwait, NULL, 7, false },
	{ "io_getevents", SYS_io_getevents, call_io_getevents, NULL, 0, false },
	{ "io_pgetevents", SYS_io_pgetevents, call_io_pgetevents, NULL, 0, false },
	{ "io_uring_enter", SYS_io_uring_enter, call_io_uring_enter, NULL, 7, false },
	{ "mq_timedreceive", SYS_mq_timedreceive, call_mq_receive, feed_mailbox, 0, true },
	{ "waitpid", SYS_wait4, call_waitpid, feed_kill, 0, true },
	{ "flock", SYS_flock, call_flock, feed_unlock, 0, true },
};

/* --- one call --- */

static void fill_socket(int fd)
{
	char bytes[4096] = { 0 };

	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

static void listen_on(int family)
{
	const struct timeval patience = { 60, 0 };
	struct sockaddr_storage address = { .ss_family = (sa_family_t)family };
	socklen_t size = family == AF_UNIX ? sizeof(sa_family_t) : sizeof(struct sockaddr_in);

	if (family == AF_INET)
		((struct sockaddr_in *)&address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(family, SOCK_STREAM, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
	assert_int_equal(listen(listener, 0), 0);
	assert_int_equal(setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
}

/* One waits already, which is all that a queue of 0 takes. */
static void fill_queue(int family)
{
	struct sockaddr_storage address;
	socklen_t size = sizeof(address);

	listen_on(family);
	spare = socket(family, SOCK_STREAM, 0);
	getsockname(listener, (struct sockaddr *)&address, &size);
	assert_int_equal(connect(spare, (struct sockaddr *)&address, size), 0);
}

/* A child that sleeps until it is killed, holding a lock. */
static void start_child(void)
{
	int ready[2];
	char byte;

	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (child == 0) {
		const int own = open(path, O_RDWR | O_CLOEXEC);

		signal(SIGTERM, SIG_DFL);
		flock(own, LOCK_EX);
		if (write(ready[1], "x", 1) == 1)
			sleep(60);
		_exit(0);
	}
	assert_true(child > 0);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
}

static void prepare(const struct call *call)
{
	const struct timeval patience = { 60, 0 };
	struct epoll_event event = { .events = EPOLLIN };

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event), 0);
	if (call->feed == feed_drain)
		fill_socket(ends[0]);
	if (call->feed == feed_connect)
		listen_on(AF_INET);
	if (call->call == call_connect)
		fill_queue(AF_UNIX);
	if (call->call == call_connect_tcp)
		fill_queue(AF_INET);
	if (call->feed == feed_kill || call->feed == feed_unlock)
		start_child();
}

static void clean_up(const struct call *call)
{
	int status;

	if (call->feed == feed_unlock) {
		waitpid(child, &status, 0);
		flock(file, LOCK_UN);
	}
	close(ends[0]);
	close(ends[1]);
	close(listener);
	close(spare);
	listener = spare = -1;
}

/* False: it was right, but all interruptions came before or after it, or its time-out came before the last one. */
static bool interrupt_call(const struct call *call)
{
	long result;
	int error;

	prepare(call);
	hits = mended = 0;
	feed = call->feed;
	set_timer(HIT_US);
	errno = 0;
	result = call->call();
	error = errno;
	set_timer(0);
	clean_up(call);
	if (result == 0 && call->wanted != 0 && (call->restarts ? hits : mended) < HITS)
		return false;
	if (result != call->wanted || (call->restarts && mended))
		fail_msg("%s: %ld (%s), %d hits, %d mended", call->name, result, strerror(error), hits,
			 mended);
	return call->restarts || mended;
}

/* On a machine that is very busy the time-out may come before the timer. */
static void check_call(const struct call *call)
{
	bool interrupted = false;

	for (unsigned i = 0; i < 20 && !interrupted; i++)
		interrupted = interrupt_call(call);
	if (!interrupted)
		fail_msg("%s: was not mended once", call->name);
	assert_true(sf_call_mends(call->number));
}

static void check_calls(void)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		check_call(&calls[i]);
}

static void test_alone(void **state)
{
	(void)state;
	check_calls();
}

/* The other thread never gets the signal, and is there for as long as the calls are made. */
static void *wait_there(void *arg)
{
	sem_wait(arg);
	return NULL;
}

static void test_one_of_several(void **state)
{
	sigset_t all, before;
	pthread_t thread;
	sem_t end;

	(void)state;
	sem_init(&end, 0, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	assert_int_equal(pthread_create(&thread, NULL, wait_there, &end), 0);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	check_calls();
	sem_post(&end);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* --- calls that wait for a signal --- */

static void handle(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info, (void)context;
}

static void stop_mending(void)
{
	is_mending = 0;
	set_timer(HIT_US);
}

static long call_pause(void)
{
	return pause();
}

static long call_sigsuspend(void)
{
	sigset_t none;

	sigemptyset(&none);
	return sigsuspend(&none);
}

static long call_ppoll_masked(void)
{
	struct timespec time = { 60, 0 };
	sigset_t none;

	sigemptyset(&none);
	return ppoll(NULL, 0, &time, &none);
}

static long call_pselect_masked(void)
{
	struct timespec time = { 60, 0 };
	sigset_t none;

	sigemptyset(&none);
	return pselect(0, NULL, NULL, NULL, &time, &none);
}

static long call_epoll_masked(void)
{
	struct epoll_event event;
	sigset_t none;

	sigemptyset(&none);
	return epoll_pwait(epoll, &event, 1, 60000, &none);
}

/* They end by the interruption after those that are mended. */
static void check_waiting(bool has_handler)
{
	long (*const waits[])(void) = { call_pause, call_sigsuspend, call_ppoll_masked,
					call_pselect_masked, call_epoll_masked };

	int n_mended = 0;

	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		hits = mended = 0;
		is_mending = 1;
		feed = stop_mending;
		set_timer(HIT_US);
		assert_int_equal(waits[i](), -1);
		assert_int_equal(errno, EINTR);
		set_timer(0);
		assert_true(has_handler ? mended == 0 : hits > HITS);
		n_mended += mended;
	}
	is_mending = 1;
	assert_true(has_handler || n_mended > HITS);
}

static void test_waiting_for_a_signal(void **state)
{
	(void)state;
	check_waiting(false);
	install(SIGUSR2, handle);
	check_waiting(true);
	signal(SIGUSR2, SIG_IGN);
	check_waiting(false);
	signal(SIGUSR2, SIG_DFL);
}

/* Another handler is about to run: the EINTR is its. */
static void test_interrupted_again(void **state)
{
	(void)state;
	install(SIGUSR2, handle);
	hits = mended = 0;
	feed = NULL;
	also_raise = SIGUSR2;
	errno = 0;
	set_timer(HIT_US);
	for (unsigned i = 0; i < 20 && call_nanosleep() == 0; i++)
		set_timer(HIT_US);
	assert_int_equal(errno, EINTR);
	assert_int_equal(mended, 0);
	set_timer(0);
	also_raise = SIGCHLD; /* pending, and then ignored: nobody sees it */
	mended = 0;
	for (unsigned i = 0; i < 20 && !mended; i++) {
		hits = 0;
		set_timer(HIT_US);
		assert_int_equal(call_nanosleep(), 0);
	}
	set_timer(0); /* on a busy machine the sleep may end before the last interruption: none is left for the next test */
	assert_true(mended > 0);
	also_raise = 0;
	signal(SIGUSR2, SIG_DFL);
}

static void nothing(int number)
{
	(void)number;
}

static pid_t interrupt_when_asleep(void)
{
	const pid_t parent = getpid(), pid = fork();

	if (pid == 0) {
		wait_until_asleep(parent);
		kill(parent, OURS);
		_exit(0);
	}
	return pid;
}

/* Both at once, and ours is the first: as the other one's action says, the read is broken off, or goes on. */
static void test_gives_way(void **state)
{
	struct sigaction action = { .sa_handler = nothing };
	pid_t pid;
	char byte;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(sigaction(SIGUSR2, &action, NULL), 0);
	hits = HITS - 1;
	feed = feed_byte;
	also_raise = SIGUSR2;
	pid = interrupt_when_asleep();
	errno = 0;
	assert_int_equal(read(ends[0], &byte, 1), -1);
	assert_int_equal(errno, EINTR);
	assert_int_equal(hits, HITS);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	waitpid(pid, NULL, 0);
	action.sa_flags = SA_RESTART;
	assert_int_equal(sigaction(SIGUSR2, &action, NULL), 0);
	hits = 0;
	set_timer(HIT_US);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_int_equal(hits, HITS);
	also_raise = 0;
	close(ends[0]);
	close(ends[1]);
	signal(SIGUSR2, SIG_DFL);
}

/* --- without a signal --- */

#ifdef __x86_64__

static bool mends_code(const char *code, size_t size, long rax, ucontext_t *context)
{
	uint8_t bytes[SF_CONTEXT_CODE];

	memset(bytes, 0x90, sizeof(bytes));
	memcpy(bytes + sizeof(bytes) - size, code, size);
	memset(context, 0, sizeof(*context));
	context->uc_mcontext.gregs[REG_RAX] = rax;
	context->uc_mcontext.gregs[REG_RIP] = 1000;
	return sf_context_mend(&sf_handler.config, context, bytes, sizeof(bytes));
}

#define MENDS(code, number)                                                                        \
	do {                                                                                       \
		ucontext_t context;                                                                \
		assert_true(mends_code(code "\x0f\x05", sizeof(code) + 1, -EINTR, &context));      \
		assert_int_equal(context.uc_mcontext.gregs[REG_RAX], number);                      \
		assert_int_equal(context.uc_mcontext.gregs[REG_RIP], 998);                         \
		assert_false(mends_code(code "\x0f\x05", sizeof(code) + 1, -EAGAIN, &context));    \
		assert_int_equal(context.uc_mcontext.gregs[REG_RIP], 1000);                        \
	} while (0)
#define LEAVES(code)                                                                               \
	do {                                                                                       \
		ucontext_t context;                                                                \
		assert_false(mends_code(code, sizeof(code) - 1, -EINTR, &context));                \
		assert_int_equal(context.uc_mcontext.gregs[REG_RAX], -EINTR);                      \
		assert_int_equal(context.uc_mcontext.gregs[REG_RIP], 1000);                        \
	} while (0)

/* As if ours came without SA_RESTART, so that every call may fail because of it. */
static int without_restart(void **state)
{
	const struct sigaction action = { .sa_handler = SIG_IGN };

	(void)state;
	return sigaction(OURS, &action, NULL);
}

static int with_restart(void **state)
{
	(void)state;
	install(OURS, interrupt);
	return 0;
}

static void test_code(void **state)
{
	(void)state;
	MENDS("\xb8\xe8\x00\x00\x00", SYS_epoll_wait);
	MENDS("\x31\xc0", SYS_read);
	MENDS("\xb8\x19\x01\x00\x00\x8b\x7c\x24\x04", SYS_epoll_pwait);
	MENDS("\xb8\x2d\x00\x00\x00\x48\x8b\x54\x24\x10\x48\x8b\x74\x24\x08", SYS_recvfrom);
	MENDS("\xb8\x2c\x00\x00\x00\x48\x8b\x74\x24\x10\x8b\x7c\x24\x08", SYS_sendto);
	MENDS("\xb8\xca\x00\x00\x00\x31\xd2", SYS_futex);
	MENDS("\xb8\xca\x00\x00\x00\x40\x80\xf6\x81", SYS_futex);
	MENDS("\xb8\xca\x00\x00\x00\x45\x31\xd2", SYS_futex);
	MENDS("\xb8\x2d\x00\x00\x00\x44\x8b\x54\x24\x20", SYS_recvfrom);
	MENDS("\xb8\x2d\x00\x00\x00\x8b\x3c\x24", SYS_recvfrom);
	LEAVES("\xb8\xe8\x00\x00\x00\x90\x0f\x05");                 /* an instruction between */
	LEAVES("\xb8\xe8\x00\x00\x00\x0f\x34");                     /* sysenter */
	LEAVES("\xb8\xe8\x00\x00\x00\x0f\x05\x90");                 /* not behind it */
	LEAVES("\x4c\x8b\x4c\x24\x08\x0f\x05");                     /* syscall(3) */
	LEAVES("\xb8\x03\x00\x00\x00\x0f\x05");                     /* close */
	LEAVES("\xb8\x10\x00\x00\x00\x0f\x05");                     /* ioctl */
	LEAVES("\xb8\xff\xff\xff\xff\x0f\x05");
	LEAVES("\x0f\x05");
}

/* With SA_RESTART ours breaks none of these off: the EINTR is of a handler of the program's, which has just returned. */
static void test_what_is_for_the_program(void **state)
{
	(void)state;
	LEAVES("\x31\xc0\x0f\x05");                                  /* read */
	LEAVES("\xb8\x2d\x00\x00\x00\x8b\x3c\x24\x0f\x05");         /* recvfrom */
	LEAVES("\xb8\x3d\x00\x00\x00\x0f\x05");                     /* wait4 */
	MENDS("\xb8\xe8\x00\x00\x00", SYS_epoll_wait);
}

static void test_short_code(void **state)
{
	static const uint8_t code[] = { 0xb8, 0xe8, 0, 0, 0, 0x0f, 0x05 };
	ucontext_t context = { 0 };

	(void)state;
	for (size_t n = 0; n < sizeof(code); n++) {
		context.uc_mcontext.gregs[REG_RAX] = -EINTR;
		assert_false(sf_context_mend(&sf_handler.config, &context, code + sizeof(code) - n, n));
	}
	assert_true(sf_context_mend(&sf_handler.config, &context, code, sizeof(code)));
}

/* A handler of the program's has run: the EINTR is left to it where the context is behind a call (rcx), until the next call. */
static void test_left_interrupted(void **state)
{
	static const struct { long rax, rcx; bool is_left; } cases[] = {
		{ -EINTR, 1000, true },
		{ -EINTR, 998, false },
		{ -EAGAIN, 1000, false },
	};
	ucontext_t context = { 0 };
	greg_t *gregs = context.uc_mcontext.gregs;
	uint64_t pc;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		gregs[REG_RIP] = 1000;
		gregs[REG_RAX] = cases[i].rax;
		gregs[REG_RCX] = cases[i].rcx;
		sf_context_leave_interrupted(&context);
		assert_int_equal(gregs[REG_RAX], cases[i].rax);
		assert_int_equal(gregs[REG_RCX] == cases[i].rcx, !cases[i].is_left);
		assert_int_equal(sf_context_interrupted(&context, &pc), cases[i].rax == -EINTR && !cases[i].is_left);
		gregs[REG_RAX] = -EINTR;
		gregs[REG_RCX] = 1000; /* as `syscall` leaves it */
		assert_true(sf_context_interrupted(&context, &pc));
	}
}

/* The same call with the same arguments: all but its number and where it is made stays as it was. */
static void test_the_same_call(void **state)
{
	static const uint8_t code[] = { 0xb8, 0xe8, 0, 0, 0, 0x0f, 0x05 };
	ucontext_t context, before;

	(void)state;
	for (size_t i = 0; i < sizeof(context); i++)
		((uint8_t *)&context)[i] = (uint8_t)(i * 7 + 1);
	context.uc_mcontext.gregs[REG_RAX] = -EINTR;
	context.uc_mcontext.gregs[REG_RIP] = 1000;
	memcpy(&before, &context, sizeof(before));
	assert_true(sf_context_mend(&sf_handler.config, &context, code, sizeof(code)));
	before.uc_mcontext.gregs[REG_RAX] = SYS_epoll_wait;
	before.uc_mcontext.gregs[REG_RIP] = 998;
	assert_memory_equal(&context, &before, sizeof(before));
}

/*
 * A signal with a handler of the program's is pending. Where the interrupted code blocks it, its handler does not run
 * now, so the EINTR is ours; where it does not, its handler is about to run.
 */
static void test_pending_and_blocked(void **state)
{
	static const uint8_t code[] = { 0xb8, 0xe8, 0, 0, 0, 0x0f, 0x05 };
	sigset_t usr2, before;
	ucontext_t context;

	(void)state;
	install(SIGUSR2, handle);
	sigemptyset(&usr2);
	sigaddset(&usr2, SIGUSR2);
	assert_int_equal(sigprocmask(SIG_BLOCK, &usr2, &before), 0);
	raise(SIGUSR2);
	for (unsigned blocked = 0; blocked < 2; blocked++) {
		memset(&context, 0, sizeof(context));
		context.uc_mcontext.gregs[REG_RAX] = -EINTR;
		context.uc_mcontext.gregs[REG_RIP] = 1000;
		if (blocked)
			sigaddset(&context.uc_sigmask, SIGUSR2);
		assert_int_equal(sf_context_mend(&sf_handler.config, &context, code, sizeof(code)), blocked);
		assert_int_equal(context.uc_mcontext.gregs[REG_RIP], blocked ? 998 : 1000);
	}
	sigprocmask(SIG_SETMASK, &before, NULL); /* it runs */
	signal(SIGUSR2, SIG_DFL);
}

/* Set back to a call at 1000 (rcx: behind its `syscall`), with a handler without SA_RESTART pending. */
static bool gives_way(long rax, long rcx, bool blocked)
{
	ucontext_t context = { 0 };

	context.uc_mcontext.gregs[REG_RAX] = rax;
	context.uc_mcontext.gregs[REG_RIP] = 1000;
	context.uc_mcontext.gregs[REG_RCX] = rcx;
	if (blocked)
		sigaddset(&context.uc_sigmask, SIGUSR2);
	sf_context_give_way(&sf_handler.config, &context);
	assert_int_equal(context.uc_mcontext.gregs[REG_RAX] == -EINTR,
			 context.uc_mcontext.gregs[REG_RIP] == 1002);
	return context.uc_mcontext.gregs[REG_RIP] == 1002;
}

static void test_what_gives_way(void **state)
{
	struct sigaction action = { .sa_handler = nothing };
	sigset_t usr2, before;

	(void)state;
	assert_int_equal(sigaction(SIGUSR2, &action, NULL), 0);
	sigemptyset(&usr2);
	sigaddset(&usr2, SIGUSR2);
	assert_int_equal(sigprocmask(SIG_BLOCK, &usr2, &before), 0);
	assert_false(gives_way(SYS_read, 1002, false)); /* none is pending */
	raise(SIGUSR2);
	assert_true(gives_way(SYS_read, 1002, false));
	assert_false(gives_way(SYS_read, 1002, true));
	assert_false(gives_way(SYS_read, 1000, false));  /* no call was made there */
	assert_false(gives_way(SYS_close, 1002, false));
	assert_false(gives_way(-1, 1002, false));
	assert_false(gives_way(SYS_read + (1l << 32), 1002, false)); /* no number: a result */
	action.sa_flags = SA_RESTART;
	assert_int_equal(sigaction(SIGUSR2, &action, NULL), 0);
	assert_false(gives_way(SYS_read, 1002, false));
	sigprocmask(SIG_SETMASK, &before, NULL);
	signal(SIGUSR2, SIG_DFL);
}

/* How long a call takes that is interrupted HITS times, from the last of them to its time-out. */
static int64_t time_call(long (*call)(void))
{
	hits = mended = 0;
	feed = NULL;
	set_timer(HIT_US);
	assert_int_equal(call(), 0);
	set_timer(0);
	return now_ns() - last_hit_ns;
}

/*
 * Its time-out once, and nothing for being made again. The shortest of some: what is more is the machine's, and no
 * machine makes it less.
 */
static void check_time(long (*call)(void))
{
	int64_t shortest_ns = INT64_MAX;

	for (unsigned i = 0; i < 10; i++) {
		const int64_t ns = time_call(call);

		if (mended == HITS && ns < shortest_ns)
			shortest_ns = ns;
	}
	assert_in_range(shortest_ns, TIMEOUT_NS, TIMEOUT_NS + 15000000);
}

static void test_takes_no_longer(void **state)
{
	(void)state;
	check_time(call_epoll_wait);
	check_time(call_nanosleep);
}

/* System V psABI, figure 3.36. */
static void test_registers(void **state)
{
	static const int order[] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
				     REG_RBP, REG_RSP, REG_R8,	REG_R9,	 REG_R10, REG_R11,
				     REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP };
	ucontext_t context = { 0 };
	struct sf_regs regs = { .known = 0 };

	(void)state;
	for (unsigned i = 0; i < 17; i++)
		context.uc_mcontext.gregs[order[i]] = 1000 + i;
	sf_context_registers(&context, &regs);
	assert_int_equal(regs.pc, 1016);
	assert_int_equal(regs.known, 0x1ffff);
	for (unsigned i = 0; i < 17; i++)
		assert_int_equal(regs.r[i], 1000 + i);
}

#endif

static int set_up(void **state)
{
	struct mq_attr attributes = { .mq_maxmsg = 4, .mq_msgsize = 8192 };
	char name[32];

	(void)state;
	snprintf(path, sizeof(path), "/tmp/test_context.XXXXXX");
	snprintf(name, sizeof(name), "/test_context_%d", (int)getpid());
	file = mkstemp(path);
	listener = spare = -1;
	epoll = epoll_create1(0);
	queue = msgget(IPC_PRIVATE, 0600);
	set = semget(IPC_PRIVATE, 1, 0600);
	mailbox = mq_open(name, O_RDWR | O_CREAT, 0600, &attributes);
	mq_unlink(name);
	sem_init(&semaphore, 0, 0);
	sf_handler.config.signal = OURS;
	install(OURS, interrupt);
	return file < 0 || epoll < 0 || queue < 0 || set < 0 || mailbox < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	(void)state;
	msgctl(queue, IPC_RMID, NULL);
	semctl(set, 0, IPC_RMID);
	unlink(path);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef __x86_64__
		cmocka_unit_test_setup_teardown(test_code, without_restart, with_restart),
		cmocka_unit_test(test_what_is_for_the_program),
		cmocka_unit_test(test_short_code),
		cmocka_unit_test(test_left_interrupted),
		cmocka_unit_test(test_the_same_call),
		cmocka_unit_test(test_pending_and_blocked),
		cmocka_unit_test(test_what_gives_way),
		cmocka_unit_test(test_takes_no_longer),
		cmocka_unit_test(test_registers),
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_waiting_for_a_signal),
		cmocka_unit_test(test_interrupted_again),
		cmocka_unit_test(test_gives_way),
		cmocka_unit_test(test_one_of_several),
#endif
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
