/* SPDX-License-Identifier: Apache-2.0 */
/*
 * While a thread is held nothing allocates and nothing takes a lock: threads do little but malloc, free, dlopen and
 * dlclose, so they are often held with the allocator's or the loader's lock. Malloc and its kin and
 * pthread_mutex_lock abort when they are called in a handler of ours, or by the sampler between taking and
 * releasing a thread. Thousands of samples with each walk; none may be late.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "frozen/raw.h"
#include "handler_rig.h"

#define SAMPLES 8000 /* with each walk ... */
#define PER_LIBRARY 64 /* ... at most so many for each time that a library is opened */
#define N_THREADS SF_RIG_SLOTS /* each is asked in its own slot, so all at once */
#define RING (1u << 20)
#define MS UINT64_C(1000000)
#define LIBRARY "librt.so.1" /* there with every glibc, and nobody's dependency any more */

/* In this thread. Of the executable: using it allocates nothing. */
static _Thread_local volatile int frozen;

static void check_thawed(void)
{
	static const char text[] = "the allocator or a lock was called while a thread was held\n";

	if (!frozen)
		return;
	frozen = 0;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(1);
	abort();
}

/* --- what is replaced --- */

#include "replaced_allocator.h"

static int (*real_lock)(pthread_mutex_t *mutex);

/* Before it is found there is one thread only. */
REPLACEMENT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	check_thawed();
	return real_lock ? real_lock(mutex) : 0;
}

static void find_real_lock(void)
{
	void *found = dlsym(RTLD_NEXT, "pthread_mutex_lock");

	memcpy(&real_lock, &found, sizeof(found));
}

/* --- the threads --- */

static _Atomic bool ends;
static _Atomic int32_t tids[N_THREADS];
static _Atomic uint32_t n_opened;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void allocate(void)
{
	void *blocks[64];

	for (unsigned i = 0; i < 64; i++)
		blocks[i] = malloc(16 + i * 37);
	blocks[0] = realloc(blocks[0], 5000);
	for (unsigned i = 0; i < 64; i++)
		free(blocks[i]);
	pthread_mutex_lock(&mutex);
	free(calloc(3, 100));
	pthread_mutex_unlock(&mutex);
}

static void load(void)
{
	void *library = dlopen(LIBRARY, RTLD_NOW);

	n_opened += library != NULL;
	if (library)
		dlclose(library);
}

static void *work(void *arg)
{
	const unsigned number = (unsigned)(uintptr_t)arg;
	struct sf_thread_entry *entry = sf_rig_enter(number + 1, 0);

	tids[number] = (int32_t)sf_raw0(SYS_gettid);
	for (unsigned i = 0; !ends; i++) {
		allocate();
		if (i % N_THREADS == number)
			load();
		if (i % 8 == 0)
			sched_yield(); /* who is asked next need not wait for our time slice to end */
	}
	sf_rig_leave(entry);
	return NULL;
}

/* In front of ours, which does not know of it. */
static void handle(int signal, siginfo_t *info, void *context)
{
	frozen++;
	sf_handler_enter(signal, info, context);
	frozen--;
}

static bool install(void)
{
	struct sigaction action = { .sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_RESTART };

	sigfillset(&action.sa_mask);
	return sigaction(SF_RIG_SIGNAL, &action, NULL) == 0;
}

/* --- the sampler --- */

static bool ask(int32_t tid, uint32_t slot, uint32_t generation)
{
	siginfo_t info = { .si_signo = SF_RIG_SIGNAL, .si_code = SI_QUEUE };

	info.si_pid = sf_handler.config.pid;
	info.si_value.sival_ptr =
		(void *)(uintptr_t)sf_handler_value(sf_handler.config.cookie, slot, generation);
	return sf_raw4(SYS_rt_tgsigqueueinfo, sf_handler.config.pid, tid, SF_RIG_SIGNAL, &info) == 0;
}

/* Until the slot is free again: by ourselves, or by a thread that has walked itself. */
static void serve(const struct sf_slot *slot)
{
	while (sf_slot_state(atomic_load(&slot->word)) != SF_SLOT_FREE) {
		const uint32_t heard = sf_wake_up_count(&sf_handler.link.wake_up);
		unsigned n;

		frozen = 1;
		sf_rig_judge();
		n = sf_handler_serve(&sf_handler, sf_rig_workspace());
		frozen = 0;
		if (n == 0 && sf_handler.link.mode == SF_MODE_SAMPLER)
			sf_wake_up_wait(&sf_handler.link.wake_up, heard, sf_raw_now_ns() + MS);
		else if (n == 0)
			sched_yield();
	}
}

static void serve_all(void)
{
	for (unsigned i = 0; i < SF_RIG_SLOTS; i++)
		serve(&sf_handler.link.slots[i]);
	sf_rig_drain();
}

/* Threads that are asked all the time do little else. */
static void wait_for_a_library(void)
{
	const uint32_t before = n_opened;

	while (n_opened == before)
		sched_yield();
}

static void sample_often(void)
{
	for (unsigned i = 0; i < SAMPLES; i++) {
		const unsigned number = i % SF_RIG_SLOTS;
		uint32_t generation;

		serve(&sf_handler.link.slots[number]);
		if (!sf_slot_request(&sf_handler.link.slots[number], &generation) ||
		    !ask(tids[number], number, generation))
			abort();
		if (i % PER_LIBRARY == 0) {
			serve_all();
			wait_for_a_library();
		}
	}
	serve_all();
}

static int run(const char *name, enum sf_handler_mode mode)
{
	pthread_t threads[N_THREADS];
	uint64_t n_lost = 0;

	ends = false;
	n_opened = 0;
	memset(tids, 0, sizeof(tids));
	if (!sf_rig_start(mode, RING) || !install())
		return 1;
	for (uintptr_t i = 0; i < N_THREADS; i++) {
		if (pthread_create(&threads[i], NULL, work, (void *)i) != 0)
			return 1;
		while (!tids[i])
			sched_yield();
	}
	sample_often();
	ends = true;
	for (unsigned i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	sf_rig_drain();
	for (unsigned i = 0; i < SF_N_LOSSES; i++)
		n_lost += sf_rig_sums[0].n_losses[i];
	printf("%s: %llu samples, %llu lost, %llu frames, libraries opened %u times\n", name,
	       (unsigned long long)sf_rig_sums[0].n_samples, (unsigned long long)n_lost,
	       (unsigned long long)sf_rig_sums[0].n_frames, n_opened);
	/* A sampler that is kept from running for 50 ms loses one; more are no accident. */
	return sf_rig_sums[0].n_samples + n_lost == SAMPLES && n_lost < SAMPLES / 1000 &&
	       sf_rig_sums[0].n_frames > SAMPLES && n_opened >= SAMPLES / PER_LIBRARY ? 0 : 1;
}

/* Whether the replacements do abort: else this test could not fail. */
static bool is_caught(void (*forbidden)(void))
{
	const pid_t child = fork();
	int status;

	if (child == 0) {
		frozen = 1;
		forbidden();
		_exit(0);
	}
	return child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
	       WTERMSIG(status) == SIGABRT;
}

static void just_allocate(void)
{
	void *volatile p = malloc(1);
	(void)p;
}

static void just_lock(void)
{
	pthread_mutex_lock(&mutex);
}

int main(void)
{
	int failed;

	find_real_lock();
	if (!is_caught(just_allocate) || !is_caught(just_lock)) {
		fprintf(stderr, "the allocator and the lock could not be replaced\n");
		return 1;
	}
	alarm(600); /* a hang is a failure, too */
	failed = run("sampler", SF_MODE_SAMPLER);
	sf_rig_stop();
	return failed | run("handler", SF_MODE_HANDLER);
}
