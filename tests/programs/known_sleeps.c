/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sleeps of known kinds and lengths, each in a function of its own. For each it prints its name and how long the thread
 * was neither on a CPU nor waiting for one, by the clock and the kernel's counts, in nanoseconds; and who is to wake
 * it. Each thread keeps to one CPU: Linux 6.12 and later may give a thread that has just gone to sleep to another CPU, and
 * count the sleep as a wait for a CPU then.
 *
 * known_sleeps FILE            each kind some times; FILE is written, and read again from the disk
 * known_sleeps mix SECONDS     threads that work, sleep for long and for short, and wait for each other
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "../unit/apart.h"
#include "program.h"

#define TIMES 6
#define FILE_BYTES (8u << 20)
#define N_MIX 4

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint32_t word;
static int ends[2];
static sem_t next, locked;        /* the waker is to do the next kind; it has the mutex */
static volatile bool is_over;

static void counts(uint64_t *cpu_ns, uint64_t *wait_ns)
{
	unsigned long long cpu = 0, wait = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", (int)gettid());
	file = fopen(path, "r");
	if (!file || fscanf(file, "%llu %llu", &cpu, &wait) != 2)
		exit(2);
	fclose(file);
	*cpu_ns = cpu;
	*wait_ns = wait;
}

/* --- what sleeps --- */

static NOINLINE void in_nanosleep(void)
{
	sleep_ns(30000000);
	NO_TAIL_CALL();
}

static NOINLINE void in_futex(void)
{
	while (__atomic_load_n(&word, __ATOMIC_SEQ_CST) == 0)
		syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	NO_TAIL_CALL();
}

static NOINLINE void in_pipe(void)
{
	char byte;

	if (read(ends[0], &byte, 1) != 1)
		exit(2);
	NO_TAIL_CALL();
}

static NOINLINE void in_mutex(void)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	NO_TAIL_CALL();
}

static int file = -1;
static char *bytes;

static NOINLINE void in_fsync(void)
{
	if (pwrite(file, bytes, FILE_BYTES, 0) != FILE_BYTES || fsync(file) != 0)
		exit(2);
	NO_TAIL_CALL();
}

static NOINLINE void in_fault(void)
{
	const volatile char *mapping;

	mapping = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, file, 0);
	madvise((void *)mapping, FILE_BYTES, MADV_RANDOM);
	for (size_t at = 0; at < FILE_BYTES; at += FILE_BYTES / 64)
		KEEP(mapping[at]);
	munmap((void *)mapping, FILE_BYTES);
}

/* --- who wakes them --- */

/* On a busy machine the first thread may get a CPU only after more than the 25 ms, and would not sleep at all then. */
static void wait_until_it_sleeps(void)
{
	while (!is_asleep(getpid()))
		sleep_ns(100000);
}

/* Makes the kinds that wait for another thread sleep for 25 ms, one after the other. */
static void *wake(void *arg)
{
	run_apart(1);
	prctl(PR_SET_NAME, "alarm_clock");
	for (int done = 0;; done++) {
		while (sem_wait(&next) != 0)
			;
		if (is_over)
			return arg;
		if (done % 3 == 2) {
			pthread_mutex_lock(&mutex);
			sem_post(&locked);
		}
		wait_until_it_sleeps();
		sleep_ns(25000000);
		if (done % 3 == 0) {
			__atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
			syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		} else if (done % 3 == 1) {
			if (write(ends[1], "x", 1) != 1)
				exit(2);
		} else {
			pthread_mutex_unlock(&mutex);
		}
	}
}

/*
 * The time for which the thread has slept, ever, but for a constant. The clock and the counts are of one moment: it was
 * not interrupted between.
 */
static int64_t slept_ns(void)
{
	uint64_t cpu_ns, wait_ns;
	int64_t before_ns, after_ns;

	do {
		before_ns = now_ns();
		counts(&cpu_ns, &wait_ns);
		after_ns = now_ns();
	} while (after_ns > before_ns + 300000);
	return after_ns - (int64_t)cpu_ns - (int64_t)wait_ns;
}

static void timed(const char *name, void (*sleeps)(void))
{
	const int64_t before_ns = slept_ns();

	sleeps();
	printf("%s %lld\n", name, (long long)(slept_ns() - before_ns));
}

static void each_kind(const char *path)
{
	pthread_t waker;

	bytes = calloc(1, FILE_BYTES);
	file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (pipe(ends) != 0 || !bytes || file < 0)
		exit(2);
	pthread_create(&waker, NULL, wake, NULL);
	run_apart(0);
	for (int i = 0; i < TIMES; i++) {
		timed("nanosleep", in_nanosleep);
		word = 0;
		sem_post(&next);
		timed("futex", in_futex);
		sem_post(&next);
		timed("pipe", in_pipe);
		sem_post(&next);
		while (sem_wait(&locked) != 0)
			;
		timed("mutex", in_mutex);
		timed("fsync", in_fsync);
		posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED); /* which sleeps where the kernel's own threads wait for CPUs */
		timed("fault", in_fault);
	}
	is_over = true;
	sem_post(&next);
	pthread_join(waker, NULL);
	printf("word %p\nmutex_at %p\n", (void *)&word, (void *)&mutex);
}

/* --- a mix --- */

static double seconds;
static pthread_mutex_t common = PTHREAD_MUTEX_INITIALIZER;

static void spin_ns(int64_t ns)
{
	const int64_t end_ns = now_ns() + ns;

	while (now_ns() < end_ns)
		;
}

static void *mixed(void *arg)
{
	int64_t start_ns;
	uint64_t cpu_ns, wait_ns;

	run_apart((unsigned)(size_t)arg);
	start_ns = now_ns();
	while (now_ns() < start_ns + seconds * NS_PER_S) {
		spin_ns(400000);
		sleep_ns(300000);
		pthread_mutex_lock(&common);
		sleep_ns(1500000);
		pthread_mutex_unlock(&common);
		sleep_ns(4000000);
	}
	spin_ns(30000000);
	sleep_ns(200000000); /* the counts of a thread that has ended are lost: they are read in this time */
	counts(&cpu_ns, &wait_ns);
	printf("thread %d %lld %llu %llu\n", (int)gettid(), (long long)(now_ns() - start_ns), (unsigned long long)cpu_ns,
	       (unsigned long long)wait_ns);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[N_MIX];

	bounded(120);
	if (argc < 2)
		return 2;
	if (strcmp(argv[1], "mix") != 0) {
		each_kind(argv[1]);
		return 0;
	}
	seconds = argc > 2 ? atof(argv[2]) : 2;
	for (int i = 0; i < N_MIX; i++)
		pthread_create(&threads[i], NULL, mixed, (void *)(size_t)i);
	for (int i = 0; i < N_MIX; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
