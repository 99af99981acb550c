/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No system call fails because the program is watched. Every blocking call that an interruption
 * could cut short runs in a thread of its own, over and over, and is judged each time by its
 * result, its errno and the time it took. Three sorts:
 *
 *   restarts   after a ptrace stop the kernel restarts it by itself
 *   fails      after a ptrace stop it returns EINTR: it must never be stopped in its sleep
 *   short      returns a part of what was asked for when it is interrupted half-way; that a part of
 *              the bytes went is counted as `partial`, apart from what is wrong
 *
 * eintr_table [SECONDS [TIMEOUT_MS [self-test|burn]]]
 *
 * `burn` is for profilers that signal or hold running threads: each call is made after a random time on the CPU, so that
 * a tick comes also in the moment before the sleep. Use it with short time-outs, so that there are many such moments.
 * Prints one line per call and fails if any failed or returned early. `self-test` has a child stop every thread by
 * ptrace all the time, so that the table is seen to fail.
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#include "program.h"

#define LARGE (1 << 20) /* more than a pipe or a socket buffer holds */

struct row {
	const char *name, *sort;
	long (*call)(struct row *row);  /* one wait; errno as the call left it */
	void (*feed)(struct row *row);  /* what ends it, once a time-out; NULL: it times out */
	bool (*prepare)(struct row *row); /* false: this system has no such call */
	long wanted;                    /* what it must return; ANY: anything but -1 */
	int wanted_errno;               /* when wanted is -1 */

	int fd[2];
	int word;
	sem_t semaphore;
	pthread_t thread, feeder;
	bool absent;
	unsigned calls, interrupted, early, partial, wrong, seed;
	int64_t waited_ns;
	long last_result;
	int last_errno;
};
#define ANY (-1000)

static int64_t timeout_ns;
static bool burns;
static char scratch_dir[] = "/tmp/eintr_table.XXXXXX";

static struct timespec timeout(void)
{
	return (struct timespec){ timeout_ns / NS_PER_S, timeout_ns % NS_PER_S };
}

static struct timespec until(clockid_t clock)
{
	int64_t at = clock_ns(clock) + timeout_ns;

	return (struct timespec){ at / NS_PER_S, at % NS_PER_S };
}

static bool prepare_pipe(struct row *row)
{
	return pipe(row->fd) == 0;
}

static bool prepare_socket(struct row *row)
{
	return socketpair(AF_UNIX, SOCK_STREAM, 0, row->fd) == 0;
}

static bool set_timeout(int fd, int which)
{
	struct timeval time = { timeout_ns / NS_PER_S, timeout_ns % NS_PER_S / 1000 };

	return setsockopt(fd, SOL_SOCKET, which, &time, sizeof(time)) == 0;
}

static void feed_byte(struct row *row)
{
	if (write(row->fd[1], "x", 1) != 1)
		perror(row->name);
}

/* poll and its like, with a time-out */

static long call_poll(struct row *row)
{
	struct pollfd wait = { .fd = row->fd[0], .events = POLLIN };

	return poll(&wait, 1, timeout_ns / 1000000);
}

static long call_ppoll(struct row *row)
{
	struct pollfd wait = { .fd = row->fd[0], .events = POLLIN };
	struct timespec time = timeout();

	return ppoll(&wait, 1, &time, NULL);
}

static long call_select(struct row *row)
{
	struct timeval time = { timeout_ns / NS_PER_S, timeout_ns % NS_PER_S / 1000 };
	fd_set set;

	FD_ZERO(&set);
	FD_SET(row->fd[0], &set);
	return select(row->fd[0] + 1, &set, NULL, NULL, &time);
}

static long call_pselect(struct row *row)
{
	struct timespec time = timeout();
	fd_set set;

	FD_ZERO(&set);
	FD_SET(row->fd[0], &set);
	return pselect(row->fd[0] + 1, &set, NULL, NULL, &time, NULL);
}

static bool prepare_epoll(struct row *row)
{
	struct epoll_event event = { .events = EPOLLIN };
	int ends[2];

	if (pipe(ends) != 0)
		return false;
	row->word = ends[0];
	row->fd[0] = epoll_create1(0);
	row->fd[1] = ends[1];
	return epoll_ctl(row->fd[0], EPOLL_CTL_ADD, ends[0], &event) == 0;
}

static long call_epoll_wait(struct row *row)
{
	struct epoll_event event;

	return epoll_wait(row->fd[0], &event, 1, timeout_ns / 1000000);
}

static long call_epoll_pwait(struct row *row)
{
	struct epoll_event event;

	return epoll_pwait(row->fd[0], &event, 1, timeout_ns / 1000000, NULL);
}

/* sleeps */

static long call_nanosleep(struct row *row)
{
	struct timespec time = timeout();

	(void)row;
	return nanosleep(&time, NULL);
}

static long call_clock_nanosleep(struct row *row)
{
	struct timespec time = timeout();
	int error = clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);

	(void)row;
	errno = error;
	return error ? -1 : 0;
}

static long call_clock_nanosleep_until(struct row *row)
{
	struct timespec time = until(CLOCK_MONOTONIC);
	int error = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);

	(void)row;
	errno = error;
	return error ? -1 : 0;
}

static bool prepare_timerfd(struct row *row)
{
	row->fd[0] = timerfd_create(CLOCK_MONOTONIC, 0);
	return row->fd[0] >= 0;
}

static long call_read_timerfd(struct row *row)
{
	struct itimerspec time = { .it_value = timeout() };
	uint64_t count;

	timerfd_settime(row->fd[0], 0, &time, NULL);
	return read(row->fd[0], &count, sizeof(count));
}

/* locks */

static long call_sem_timedwait(struct row *row)
{
	struct timespec time = until(CLOCK_REALTIME);

	return sem_timedwait(&row->semaphore, &time);
}

static long call_futex_timeout(struct row *row)
{
	struct timespec time = timeout();

	return syscall(SYS_futex, &row->word, FUTEX_WAIT_PRIVATE, 0, &time, NULL, 0);
}

static long call_futex_bitset(struct row *row)
{
	struct timespec time = until(CLOCK_MONOTONIC);

	return syscall(SYS_futex, &row->word, FUTEX_WAIT_BITSET_PRIVATE, 0, &time, NULL,
		       FUTEX_BITSET_MATCH_ANY);
}

static long call_futex(struct row *row)
{
	return syscall(SYS_futex, &row->word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

static void feed_futex(struct row *row)
{
	syscall(SYS_futex, &row->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static long call_sem_wait(struct row *row)
{
	return sem_wait(&row->semaphore);
}

static void feed_semaphore(struct row *row)
{
	sem_post(&row->semaphore);
}

static bool prepare_semaphores(struct row *row)
{
	row->fd[0] = semget(IPC_PRIVATE, 1, 0600);
	return row->fd[0] >= 0;
}

static long call_semtimedop(struct row *row)
{
	struct sembuf down = { .sem_op = -1 };
	struct timespec time = timeout();

	return semtimedop(row->fd[0], &down, 1, &time);
}

static long call_semop(struct row *row)
{
	struct sembuf down = { .sem_op = -1 };

	return semop(row->fd[0], &down, 1);
}

static void feed_semop(struct row *row)
{
	struct sembuf up = { .sem_op = 1 };

	semop(row->fd[0], &up, 1);
}

static bool prepare_file_lock(struct row *row)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%d", scratch_dir, (int)(row->name[0] + row->name[1]));
	row->fd[0] = open(path, O_RDWR | O_CREAT, 0600);
	row->fd[1] = open(path, O_RDWR | O_CREAT, 0600);
	return row->fd[1] >= 0;
}

static long call_flock(struct row *row)
{
	long result;
	int error;

	sem_wait(&row->semaphore); /* until the feeder has the lock */
	result = flock(row->fd[0], LOCK_EX);
	error = errno;

	flock(row->fd[0], LOCK_UN);
	errno = error;
	return result;
}

static void feed_flock(struct row *row)
{
	flock(row->fd[1], LOCK_EX);
	sem_post(&row->semaphore);
	sleep_ns(timeout_ns);
	flock(row->fd[1], LOCK_UN);
}

static long call_setlkw(struct row *row)
{
	struct flock lock = { .l_type = F_WRLCK, .l_len = 1 }, unlock = { .l_type = F_UNLCK, .l_len = 1 };
	long result;
	int error;

	sem_wait(&row->semaphore);
	result = fcntl(row->fd[0], F_OFD_SETLKW, &lock);
	error = errno;
	fcntl(row->fd[0], F_OFD_SETLKW, &unlock);
	errno = error;
	return result;
}

static void feed_setlkw(struct row *row)
{
	struct flock lock = { .l_type = F_WRLCK, .l_len = 1 }, unlock = { .l_type = F_UNLCK, .l_len = 1 };

	fcntl(row->fd[1], F_OFD_SETLKW, &lock);
	sem_post(&row->semaphore);
	sleep_ns(timeout_ns);
	fcntl(row->fd[1], F_OFD_SETLKW, &unlock);
}

/* sockets */

static bool prepare_recv_timeout(struct row *row)
{
	return prepare_socket(row) && set_timeout(row->fd[0], SO_RCVTIMEO);
}

static long call_recv(struct row *row)
{
	char byte;

	return recv(row->fd[0], &byte, 1, 0);
}

static bool prepare_listener(struct row *row)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(address);

	row->fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(row->fd[0], (struct sockaddr *)&address, size) != 0 || listen(row->fd[0], 8) != 0 ||
	    getsockname(row->fd[0], (struct sockaddr *)&address, &size) != 0)
		return false;
	row->word = address.sin_port;
	return true;
}

static bool prepare_accept_timeout(struct row *row)
{
	return prepare_listener(row) && set_timeout(row->fd[0], SO_RCVTIMEO);
}

static long call_accept(struct row *row)
{
	int fd = accept(row->fd[0], NULL, NULL), error = errno;

	if (fd >= 0)
		close(fd);
	errno = error;
	return fd;
}

static void feed_accept(struct row *row)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				       .sin_port = row->word };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		perror("connect");
	close(fd);
}

static bool prepare_send_timeout(struct row *row)
{
	char bytes[4096] = { 0 };

	if (!prepare_socket(row))
		return false;
	while (send(row->fd[0], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	return set_timeout(row->fd[0], SO_SNDTIMEO);
}

static long call_send(struct row *row)
{
	return send(row->fd[0], "x", 1, 0);
}

static long call_recv_all(struct row *row)
{
	char bytes[64];

	return recv(row->fd[0], bytes, sizeof(bytes), MSG_WAITALL);
}

/* Half of it, and the other half later: in between the call sleeps with bytes in hand. */
static void feed_halves(struct row *row)
{
	char bytes[32] = { 0 };

	if (write(row->fd[1], bytes, 32) != 32)
		perror(row->name);
	sleep_ns(timeout_ns);
	if (write(row->fd[1], bytes, 32) != 32)
		perror(row->name);
}

static long call_write_large(struct row *row)
{
	static const char bytes[LARGE];

	return write(row->fd[1], bytes, LARGE);
}

/* Reads in pieces: the writer sleeps between them with a part written. */
static void feed_large(struct row *row)
{
	char bytes[LARGE / 8];

	if (read(row->fd[0], bytes, sizeof(bytes)) < 0)
		perror(row->name);
}

/* reads that last until something comes */

static long call_read(struct row *row)
{
	char bytes[256];

	return read(row->fd[0], bytes, sizeof(bytes));
}

static bool prepare_eventfd(struct row *row)
{
	row->fd[0] = row->fd[1] = eventfd(0, 0);
	return row->fd[0] >= 0;
}

static void feed_eventfd(struct row *row)
{
	uint64_t one = 1;

	if (write(row->fd[1], &one, sizeof(one)) != sizeof(one))
		perror(row->name);
}

static bool prepare_inotify(struct row *row)
{
	row->fd[0] = inotify_init();
	return inotify_add_watch(row->fd[0], scratch_dir, IN_ATTRIB) >= 0;
}

static void feed_inotify(struct row *row)
{
	(void)row;
	chmod(scratch_dir, 0700);
}

static void drain(struct row *row, int fd, long result)
{
	char byte;

	if (result == 1 && read(fd, &byte, 1) != 1)
		perror(row->name);
}

static long call_poll_endless(struct row *row)
{
	struct pollfd wait = { .fd = row->fd[0], .events = POLLIN };
	long result = poll(&wait, 1, -1);
	int error = errno;

	drain(row, row->fd[0], result);
	errno = error;
	return result;
}

static long call_epoll_endless(struct row *row)
{
	struct epoll_event event;
	long result = epoll_wait(row->fd[0], &event, 1, -1);
	int error = errno;

	drain(row, row->word, result);
	errno = error;
	return result;
}

static bool prepare_fifo(struct row *row)
{
	char path[64];

	(void)row;
	snprintf(path, sizeof(path), "%s/fifo", scratch_dir);
	return mkfifo(path, 0600) == 0;
}

static long open_fifo(int flags)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/fifo", scratch_dir);
	fd = open(path, flags);
	if (fd >= 0)
		close(fd);
	return fd;
}

static long call_open_fifo(struct row *row)
{
	(void)row;
	return open_fifo(O_RDONLY);
}

static void feed_open_fifo(struct row *row)
{
	(void)row;
	open_fifo(O_WRONLY | O_NONBLOCK);
}

/* messages, signals, children, asynchronous I/O */

static bool prepare_messages(struct row *row)
{
	row->fd[0] = msgget(IPC_PRIVATE, 0600);
	return row->fd[0] >= 0;
}

struct message {
	long type;
	char text[1];
};

static long call_msgrcv(struct row *row)
{
	struct message message;

	return msgrcv(row->fd[0], &message, 1, 0, 0);
}

static void feed_msgsnd(struct row *row)
{
	struct message message = { .type = 1 };

	msgsnd(row->fd[0], &message, 1, 0);
}

static bool prepare_mq(struct row *row)
{
	struct mq_attr attributes = { .mq_maxmsg = 2, .mq_msgsize = 8 };
	char name[32];

	snprintf(name, sizeof(name), "/eintr_table.%d", getpid());
	row->fd[0] = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
	mq_unlink(name);
	return row->fd[0] >= 0;
}

static long call_mq(struct row *row)
{
	struct timespec time = until(CLOCK_REALTIME);
	char bytes[8];

	return mq_timedreceive(row->fd[0], bytes, sizeof(bytes), NULL, &time);
}

static sigset_t only(int signal)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signal);
	return set;
}

static long call_sigtimedwait(struct row *row)
{
	struct timespec time = timeout();
	sigset_t set = only(SIGUSR2);

	(void)row;
	return sigtimedwait(&set, NULL, &time);
}

static long call_sigwaitinfo(struct row *row)
{
	sigset_t set = only(SIGUSR1);

	(void)row;
	return sigwaitinfo(&set, NULL);
}

static void feed_signal(struct row *row)
{
	pthread_kill(row->thread, SIGUSR1);
}

static pid_t sleeping_child(void)
{
	pid_t child = fork();

	if (child == 0) {
		sleep_ns(timeout_ns);
		_exit(0);
	}
	return child;
}

static long call_waitpid(struct row *row)
{
	pid_t child = sleeping_child();
	long result = waitpid(child, NULL, 0);

	(void)row;
	return result == child ? 0 : result;
}

static long call_waitid(struct row *row)
{
	siginfo_t info;

	(void)row;
	return waitid(P_PID, sleeping_child(), &info, WEXITED);
}

static bool prepare_aio(struct row *row)
{
	aio_context_t *context = calloc(1, sizeof(*context));

	if (syscall(SYS_io_setup, 4, context) != 0) {
		free(context);
		return false;
	}
	row->word = 0;
	memcpy(row->fd, context, sizeof(*context));
	free(context);
	return true;
}

static long call_io_getevents(struct row *row)
{
	struct timespec time = timeout();
	struct io_event event;
	aio_context_t context;

	memcpy(&context, row->fd, sizeof(context));
	return syscall(SYS_io_getevents, context, 1, 1, &event, &time);
}

static bool prepare_uring(struct row *row)
{
	struct io_uring_params params = { 0 };

	row->fd[0] = (int)syscall(SYS_io_uring_setup, 1, &params);
	return row->fd[0] >= 0;
}

static long call_io_uring_enter(struct row *row)
{
	struct timespec time = timeout();
	const struct io_uring_getevents_arg arg = { .ts = (uint64_t)(uintptr_t)&time };

	return syscall(SYS_io_uring_enter, row->fd[0], 0, 1, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &arg, sizeof(arg));
}

static struct row rows[] = {
	{ "poll", "restarts", call_poll, NULL, prepare_pipe, 0, 0 },
	{ "ppoll", "restarts", call_ppoll, NULL, prepare_pipe, 0, 0 },
	{ "select", "restarts", call_select, NULL, prepare_pipe, 0, 0 },
	{ "pselect", "restarts", call_pselect, NULL, prepare_pipe, 0, 0 },
	{ "poll, no time-out", "restarts", call_poll_endless, feed_byte, prepare_pipe, 1, 0 },
	{ "nanosleep", "restarts", call_nanosleep, NULL, NULL, 0, 0 },
	{ "clock_nanosleep", "restarts", call_clock_nanosleep, NULL, NULL, 0, 0 },
	{ "clock_nanosleep, absolute", "restarts", call_clock_nanosleep_until, NULL, NULL, 0, 0 },
	{ "sem_timedwait", "restarts", call_sem_timedwait, NULL, NULL, -1, ETIMEDOUT },
	{ "sem_wait", "restarts", call_sem_wait, feed_semaphore, NULL, 0, 0 },
	{ "futex, time-out", "restarts", call_futex_timeout, NULL, NULL, -1, ETIMEDOUT },
	{ "futex, absolute", "restarts", call_futex_bitset, NULL, NULL, -1, ETIMEDOUT },
	{ "futex", "restarts", call_futex, feed_futex, NULL, 0, 0 },
	{ "read, pipe", "restarts", call_read, feed_byte, prepare_pipe, ANY, 0 },
	{ "read, eventfd", "restarts", call_read, feed_eventfd, prepare_eventfd, 8, 0 },
	{ "read, timerfd", "restarts", call_read_timerfd, NULL, prepare_timerfd, 8, 0 },
	{ "read, inotify", "restarts", call_read, feed_inotify, prepare_inotify, ANY, 0 },
	{ "recv", "restarts", call_recv, feed_byte, prepare_socket, 1, 0 },
	{ "accept", "restarts", call_accept, feed_accept, prepare_listener, ANY, 0 },
	{ "msgrcv", "restarts", call_msgrcv, feed_msgsnd, prepare_messages, 1, 0 },
	{ "mq_timedreceive", "restarts", call_mq, NULL, prepare_mq, -1, ETIMEDOUT },
	{ "waitpid", "restarts", call_waitpid, NULL, NULL, 0, 0 },
	{ "waitid", "restarts", call_waitid, NULL, NULL, 0, 0 },
	{ "flock", "restarts", call_flock, feed_flock, prepare_file_lock, 0, 0 },
	{ "fcntl F_OFD_SETLKW", "restarts", call_setlkw, feed_setlkw, prepare_file_lock, 0, 0 },
	{ "open, fifo", "restarts", call_open_fifo, feed_open_fifo, prepare_fifo, ANY, 0 },

	{ "epoll_wait", "fails", call_epoll_wait, NULL, prepare_epoll, 0, 0 },
	{ "epoll_pwait", "fails", call_epoll_pwait, NULL, prepare_epoll, 0, 0 },
	{ "epoll_wait, no time-out", "fails", call_epoll_endless, feed_byte, prepare_epoll, 1, 0 },
	{ "recv, SO_RCVTIMEO", "fails", call_recv, NULL, prepare_recv_timeout, -1, EAGAIN },
	{ "accept, SO_RCVTIMEO", "fails", call_accept, NULL, prepare_accept_timeout, -1, EAGAIN },
	{ "send, SO_SNDTIMEO", "fails", call_send, NULL, prepare_send_timeout, -1, EAGAIN },
	{ "sigtimedwait", "fails", call_sigtimedwait, NULL, NULL, -1, EAGAIN },
	{ "sigwaitinfo", "fails", call_sigwaitinfo, feed_signal, NULL, SIGUSR1, 0 },
	{ "semtimedop", "fails", call_semtimedop, NULL, prepare_semaphores, -1, EAGAIN },
	{ "semop", "fails", call_semop, feed_semop, prepare_semaphores, 0, 0 },
	{ "io_getevents", "fails", call_io_getevents, NULL, prepare_aio, 0, 0 },
	{ "io_uring_enter", "fails", call_io_uring_enter, NULL, prepare_uring, -1, ETIME },

	{ "recv, MSG_WAITALL", "short", call_recv_all, feed_halves, prepare_socket, 64, 0 },
	{ "write, full pipe", "short", call_write_large, feed_large, prepare_pipe, LARGE, 0 },
	{ "write, full socket", "short", call_write_large, feed_large, prepare_socket, LARGE, 0 },
};
#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

static void *feeder(void *arg)
{
	struct row *row = arg;

	for (;;) {
		/* Data that is fed in pieces comes faster, so that a call ends in a few time-outs. */
		sleep_ns(row->feed == feed_large ? timeout_ns / 8 : timeout_ns);
		row->feed(row);
	}
	return NULL;
}

/* Up to 0.4 ms of CPU time, and often less than a period of the profiler's clock. */
static void burn(struct row *row)
{
	int64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + rand_r(&row->seed) % 400000;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

/* How early a time-out may be: with short ones, timers that go by the kernel's ticks are allowed for. */
static int64_t slack_ns(void)
{
	return timeout_ns > 20000000 ? 2000000 : timeout_ns / 2;
}

static void *caller(void *arg)
{
	struct row *row = arg;

	for (;;) {
		int64_t start, took;
		long result;

		if (burns)
			burn(row);
		start = now_ns();
		errno = 0;
		result = row->call(row);
		took = now_ns() - start;
		row->last_errno = errno;
		row->last_result = result;
		row->calls++;
		row->waited_ns += took;
		if (result == -1 && row->last_errno == EINTR)
			row->interrupted++;
		else if (strcmp(row->sort, "short") == 0 && result > 0 && result < row->wanted)
			row->partial++;
		else if (row->wanted == ANY ? result == -1 : result != row->wanted)
			row->wrong++;
		else if (result == -1 && row->last_errno != row->wanted_errno)
			row->wrong++;
		else if (row->feed == NULL && took < timeout_ns - slack_ns())
			row->early++;
	}
	return NULL;
}

/* Stops and lets go every thread of the parent, as a careless tracer would. */
static void tickle(pid_t process)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", process);
	for (;;) {
		DIR *tasks = opendir(path);
		struct dirent *entry;

		while (tasks && (entry = readdir(tasks)) != NULL) {
			int tid = atoi(entry->d_name);

			if (tid == 0 || ptrace(PTRACE_SEIZE, tid, 0, 0) != 0)
				continue;
			ptrace(PTRACE_INTERRUPT, tid, 0, 0);
			waitpid(tid, NULL, __WALL);
			ptrace(PTRACE_DETACH, tid, 0, 0);
		}
		if (tasks == NULL || getppid() != process)
			_exit(0);
		closedir(tasks);
		sleep_ns(50000000);
	}
}

static bool start(struct row *row)
{
	sem_init(&row->semaphore, 0, 0);
	if (row->prepare && !row->prepare(row)) {
		row->absent = true;
		row->last_errno = errno;
		return true;
	}
	/* The caller first: a feeder may send it a signal. */
	return pthread_create(&row->thread, NULL, caller, row) == 0 &&
	       (!row->feed || pthread_create(&row->feeder, NULL, feeder, row) == 0);
}

static bool report(const struct row *row)
{
	bool good = row->interrupted == 0 && row->early == 0 && row->wrong == 0;

	if (row->absent) {
		printf("%-26s %-9s absent here: %s\n", row->name, row->sort, strerror(row->last_errno));
		return true;
	}
	printf("%-26s %-9s %5u calls %4u EINTR %4u early %4u partial %4u wrong  %s", row->name, row->sort,
	       row->calls, row->interrupted, row->early, row->partial, row->wrong, good ? "good" : "BAD");
	if (burns && row->calls)
		printf(" %.0f us each", (double)row->waited_ns / row->calls / 1e3);
	if (row->wrong)
		printf(" (last: %ld, %s)", row->last_result, strerror(row->last_errno));
	printf("\n");
	if (row->calls == 0)
		printf("%s: was never seen to end\n", row->name);
	return good && row->calls > 0;
}

int main(int argc, char **argv)
{
	double seconds = argument(argc, argv, 1, 4);
	sigset_t blocked;
	unsigned bad = 0;
	pid_t child = 0;

	timeout_ns = argument(argc, argv, 2, 400) * 1000000;
	bounded(120 + seconds);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	sigaddset(&blocked, SIGUSR2);
	sigaddset(&blocked, SIGCHLD); /* a child that ends while the thread that forked it is held: docs/engines.md */
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	if (mkdtemp(scratch_dir) == NULL)
		return 2;
	burns = argument_is(argc, argv, 3, "burn");
	if (argument_is(argc, argv, 3, "self-test") && (child = fork()) == 0)
		tickle(getppid());
	for (unsigned i = 0; i < N_ROWS; i++)
		if (!start(&rows[i]))
			return 2;
	ready();
	for (int64_t begin = now_ns(); burns ? lasts(begin, seconds) : now_ns() < begin + seconds * NS_PER_S;)
		sleep_ns(10000000);
	for (unsigned i = 0; i < N_ROWS; i++)
		bad += !report(&rows[i]);
	if (child > 0)
		kill(child, SIGKILL);
	for (unsigned i = 0; i < N_ROWS; i++) {
		if (rows[i].prepare == prepare_semaphores && !rows[i].absent)
			semctl(rows[i].fd[0], 0, IPC_RMID);
		if (rows[i].prepare == prepare_messages && !rows[i].absent)
			msgctl(rows[i].fd[0], IPC_RMID, NULL);
	}
	if (chdir(scratch_dir) == 0) {
		unlink("fifo");
		for (unsigned i = 0; i < N_ROWS; i++) {
			char name[16];

			snprintf(name, sizeof(name), "%d", (int)(rows[i].name[0] + rows[i].name[1]));
			unlink(name);
		}
		rmdir(scratch_dir);
	}
	printf("bad rows %u of %zu\n", bad, N_ROWS);
	fflush(stdout);
	_exit(bad ? 1 : 0); /* its threads are still asleep in their calls */
}
