/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glibc's locks (nptl: struct __pthread_mutex_s, struct __pthread_rwlock_arch_t), the same since glibc 2.25 on 64-bit
 * machines.
 */
#include "target/libc_locks.h"

#include <linux/futex.h>
#include <string.h>

#include "os/process.h"

#define LOCKED_WITH_WAITERS 2u   /* the word of a mutex that is neither robust nor by the kernel's priority inheritance */
#define KIND_BITS 0x3ffu         /* all bits of a mutex's kind that libc uses */
#define RW_WRITE_PHASE 1u        /* bits of a read-write lock's first word */
#define RW_WRITE_LOCKED 2u

struct mutex {
	uint32_t word, count, owner, users, kind;
};

struct rwlock {
	uint32_t readers, writers, write_phase, writer_word, pad[2], writer;
};

/* The futex that a thread waits for. */
struct wait {
	int32_t  pid;
	uint64_t address;
	uint32_t expected;       /* the value at which the kernel let the thread wait */
	bool     inherits;       /* by priority inheritance: the kernel's rule says what the word means */
	bool     is_private;     /* only the process's own threads can wake it, and not the kernel when a thread ends */
};

/* A mutex's word is its first one. */
static bool find_mutex(const struct wait *wait, struct sf_lock_wait *ret)
{
	struct mutex mutex;

	if (sf_process_read(wait->pid, &mutex, wait->address, sizeof(mutex)) != sizeof(mutex) || mutex.kind & ~KIND_BITS)
		return false;
	ret->kind = "mutex";
	ret->address = wait->address;
	if (wait->inherits || mutex.word & FUTEX_WAITERS)
		ret->owner = (int32_t)(mutex.word & FUTEX_TID_MASK);
	else if (mutex.word == LOCKED_WITH_WAITERS && wait->expected == LOCKED_WITH_WAITERS)
		ret->owner = (int32_t)mutex.owner;
	else
		return false;
	return wait->inherits || ret->owner == (int32_t)mutex.owner;
}

/* Whether a lock that a writer has lies there. */
static bool is_written(const struct wait *wait, uint64_t address, struct sf_lock_wait *ret)
{
	struct rwlock lock;

	if (sf_process_read(wait->pid, &lock, address, sizeof(lock)) != sizeof(lock) ||
	    !(lock.readers & RW_WRITE_LOCKED) || !(lock.readers & RW_WRITE_PHASE) || !lock.writer)
		return false;
	ret->address = address;
	ret->owner = (int32_t)lock.writer;
	return true;
}

/* Readers wait for the third word, writers for this or for the fourth. If both could be, none is proved. */
static bool find_rwlock(const struct wait *wait, struct sf_lock_wait *ret)
{
	const uint64_t by_phase = wait->address - offsetof(struct rwlock, write_phase);
	const uint64_t by_writer = wait->address - offsetof(struct rwlock, writer_word);

	ret->kind = "read-write lock";
	return is_written(wait, by_phase, ret) != is_written(wait, by_writer, ret);
}

/*
 * The word is the id of the thread that is waited for. The kernel clears it when that thread ends, and wakes those who wait for
 * it by a futex that is not private (kernel: kernel/fork.c, mm_release()). musl's word is another one, and private: a number for
 * whether the thread is joinable, which may look like an id (musl: src/thread/pthread_join.c).
 */
static bool find_join(const struct wait *wait, struct sf_lock_wait *ret)
{
	uint32_t tid;

	if (wait->is_private || sf_process_read(wait->pid, &tid, wait->address, sizeof(tid)) != sizeof(tid) || !tid ||
	    tid != wait->expected)
		return false;
	ret->kind = SF_WAIT_FOR_END;
	ret->owner = (int32_t)tid;
	return true;
}

static const struct {
	const char *start;       /* of the function's name, without what libc puts before it */
	bool (*find)(const struct wait *wait, struct sf_lock_wait *ret);
} functions[] = {
	{ "pthread_mutex_", find_mutex },
	{ "pthread_rwlock_", find_rwlock },
	{ "pthread_join", find_join },
	{ "pthread_timedjoin", find_join },
	{ "pthread_clockjoin", find_join },
};

#define N_FUNCTIONS (sizeof(functions) / sizeof(*functions))

/* Its index in `functions`, or N_FUNCTIONS. */
static size_t find_function(const char *name)
{
	size_t i = 0;

	name += strspn(name, "_");
	if (strncmp(name, "GI_", 3) == 0)
		name += 3 + strspn(name + 3, "_");
	while (i < N_FUNCTIONS && strncmp(name, functions[i].start, strlen(functions[i].start)) != 0)
		i++;
	return i;
}

bool sf_libc_lock_function(const char *name)
{
	return find_function(name) < N_FUNCTIONS;
}

bool sf_libc_lock_wait(int32_t pid, const char *function, const uint64_t args[6], struct sf_lock_wait *ret)
{
	const int operation = (int)args[1] & FUTEX_CMD_MASK;
	const struct wait wait = { .pid = pid, .address = args[0], .expected = (uint32_t)args[2],
				   .inherits = operation == FUTEX_LOCK_PI || operation == FUTEX_LOCK_PI2,
				   .is_private = args[1] & FUTEX_PRIVATE_FLAG };
	const size_t i = find_function(function);

	*ret = (struct sf_lock_wait){ .timed = args[3] != 0 };
	if (i < N_FUNCTIONS && (wait.inherits || operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET) &&
	    functions[i].find(&wait, ret) && ret->owner > 0)
		return true;
	ret->kind = NULL;
	return false;
}
