/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that hangs: two threads that wait for each other's lock, and a main thread that
 * joins them. The use case of `stillframe dump`.
 *
 * lock_wait [KIND]
 *   mutex      (default)
 *   recursive, robust    mutexes of these kinds
 *   inherits   mutexes by priority inheritance: left-first waits, and the kernel refuses right-first, which sleeps for ever
 *   write      read-write locks, both for writing
 *   read       read-write locks, each had for writing and wanted for reading
 *   readers    read-write locks, each had for reading and wanted for writing: nobody knows who has one
 *   timed      mutexes; one thread waits with a time-out
 *   itself     each thread waits for the mutex that it has itself
 *   join       one thread waits for a mutex of the other, which waits for its end
 *   semaphore  nobody has one
 *   forged     mutexes; the owner that one of them tells is a thread of another process
 */
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/prctl.h>

#include "program.h"

struct lock {
	pthread_mutex_t mutex;
	pthread_rwlock_t rwlock;
	sem_t semaphore;
};

static struct lock left, right;
static pthread_barrier_t both;
static const char *kind = "mutex";
static pthread_t first, second;

static bool is(const char *name)
{
	return strcmp(kind, name) == 0;
}

static void make(struct lock *lock)
{
	pthread_mutexattr_t how;

	pthread_mutexattr_init(&how);
	if (is("recursive"))
		pthread_mutexattr_settype(&how, PTHREAD_MUTEX_RECURSIVE);
	if (is("robust"))
		pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST);
	if (is("inherits"))
		pthread_mutexattr_setprotocol(&how, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&lock->mutex, &how);
	pthread_rwlock_init(&lock->rwlock, NULL);
	sem_init(&lock->semaphore, 0, 1);
}

static void take(struct lock *lock)
{
	if (is("readers"))
		pthread_rwlock_rdlock(&lock->rwlock);
	else if (is("write") || is("read"))
		pthread_rwlock_wrlock(&lock->rwlock);
	else if (is("semaphore"))
		sem_wait(&lock->semaphore);
	else
		pthread_mutex_lock(&lock->mutex);
}

static void lock_timed(pthread_mutex_t *mutex)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 100;
	pthread_mutex_timedlock(mutex, &until);
}

static NOINLINE void wait_for_lock(struct lock *lock)
{
	if (is("read"))
		pthread_rwlock_rdlock(&lock->rwlock);
	else if (is("write") || is("readers"))
		pthread_rwlock_wrlock(&lock->rwlock);
	else if (is("timed") && lock == &left)
		lock_timed(&lock->mutex);
	else if (is("join") && lock == &left)
		pthread_join(first, NULL);
	else
		take(lock);
	NO_TAIL_CALL();
}

/* The kernel refuses both where two CPUs close a circle of two at once (task_blocks_on_rt_mutex): one has to wait already. */
static void wait_until_left_first_waits(void)
{
	while (!(__atomic_load_n(&right.mutex.__data.__lock, __ATOMIC_SEQ_CST) & (int)FUTEX_WAITERS) ||
	       !is_asleep(left.mutex.__data.__owner))
		sleep_ns(100000);
}

static NOINLINE void *take_left_then_right(void *arg)
{
	prctl(PR_SET_NAME, "left-first");
	take(&left);
	pthread_barrier_wait(&both);
	wait_for_lock(is("itself") ? &left : &right);
	return arg;
}

static NOINLINE void *take_right_then_left(void *arg)
{
	prctl(PR_SET_NAME, "right-first");
	take(&right);
	pthread_barrier_wait(&both);
	if (is("inherits"))
		wait_until_left_first_waits();
	wait_for_lock(is("itself") ? &right : &left);
	return arg;
}

int main(int argc, char **argv)
{
	bounded(120);
	if (argc > 1)
		kind = argv[1];
	make(&left);
	make(&right);
	pthread_barrier_init(&both, NULL, 3);
	if (pthread_create(&first, NULL, take_left_then_right, NULL) != 0 ||
	    pthread_create(&second, NULL, take_right_then_left, NULL) != 0)
		return 2;
	pthread_barrier_wait(&both);
	sleep_ns(100000000);
	if (is("forged"))
		left.mutex.__data.__owner = getppid();
	ready();
	if (!is("join"))
		pthread_join(first, NULL);
	pthread_join(second, NULL);
	return 0;
}
