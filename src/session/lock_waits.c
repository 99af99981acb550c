/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proof of a wait: the thread is in the system call of its stack, and its switch count is the same before and after
 * the lock was read. So it waited at the moment at which the lock had this owner.
 *
 * The proof of a circle: none of its threads has run between the first of these readings and the last. So all of them
 * waited at once, and a thread that waits gives nothing back.
 */
#include "session/lock_waits.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "os/task.h"
#include "target/libc_locks.h"

#define MAX_READINGS 4      /* a thread that waits may wake now and then to look, and goes on waiting */
#define MAX_INNER 8         /* frames of libc below its function: with inlined calls it has five */

struct found {
	struct sf_dump *dump;
	struct sf_process_runtimes *runtimes;
	int32_t  *ids;      /* of each thread, in its own pid namespace */
	uint64_t *switches; /* of each thread that waits, when its lock was read */
	uint32_t *round;    /* of the search for circles, that came to this thread; 0: none yet */
};

static bool begin(struct found *found, struct sf_dump *dump)
{
	const size_t n = dump->threads.n;
	const bool inner = sf_task_inner_id(dump->pid, dump->pid) != dump->pid;

	found->ids = calloc(n, sizeof(*found->ids));
	found->switches = calloc(n, sizeof(*found->switches));
	found->round = calloc(n, sizeof(*found->round));
	if (!found->ids || !found->switches || !found->round)
		return false;
	for (size_t i = 0; i < n; i++) {
		const int32_t tid = dump->threads.items[i].seen.tid;

		found->ids[i] = inner ? sf_task_inner_id(dump->pid, tid) : tid;
	}
	return true;
}

static void end(struct found *found)
{
	free(found->ids);
	free(found->switches);
	free(found->round);
}

/* The function of libc in which the thread waits. Its innermost frames are all of libc, or of a program that contains libc. */
static const char *libc_function(const struct sf_dump *dump, const struct sf_dump_thread *thread)
{
	for (size_t i = 0; i < thread->frames.n && i < MAX_INNER; i++) {
		const struct sf_dump_frame *frame = &thread->frames.items[i];
		const char *name = sf_dump_string(dump, frame->function);

		if (!frame->image || frame->image != thread->frames.items[0].image)
			break;
		if (sf_libc_lock_function(name))
			return name;
	}
	return NULL;
}

/*
 * Whether the thread is still in the call in which its stack was read, and where the stack says: a runtime's threads wait for all
 * things by the same word each.
 */
static bool is_in_call(const struct sf_dump *dump, const struct sf_dump_thread *thread, uint64_t switches)
{
	const struct sf_dump_seen *seen = &thread->seen;
	struct sf_task task;
	struct sf_task_look look;
	bool same;

	if (seen->switches == switches)
		return true;
	if (!sf_task_open(dump->pid, seen->tid, &task))
		return false;
	same = sf_task_look(&task, &look) && look.placed && look.syscall == seen->syscall &&
	       thread->trace.n && look.sp == thread->trace.items[0].sp && look.pc == thread->trace.items[0].pc &&
	       memcmp(look.args, seen->args, 4 * sizeof(*look.args)) == 0;
	sf_task_close(&task);
	return same;
}

/* Its place, from 1; 0: the process has no such thread. */
static size_t find_thread(const struct found *found, int32_t id)
{
	for (size_t i = 0; id && i < found->dump->threads.n; i++) {
		if (found->ids[i] == id)
			return i + 1;
	}
	return 0;
}

/* The owner may be a thread that the dump does not have: one that has ended, or of another process. */
static void keep(struct found *found, size_t i, const struct sf_lock_wait *lock)
{
	struct sf_dump_thread *thread = &found->dump->threads.items[i];

	thread->lock = *lock;
	thread->owner = find_thread(found, lock->owner);
}

static bool read_lock(const struct found *found, const struct sf_dump_thread *thread, const char *function,
		      struct sf_lock_wait *ret)
{
	const struct sf_trace trace = { .frames = thread->trace.items, .n_frames = (uint32_t)thread->trace.n };
	const struct sf_dump_seen *seen = &thread->seen;
	const int32_t pid = found->dump->pid;

	if (function)
		return sf_libc_lock_wait(pid, function, seen->args, ret);
	return found->runtimes && sf_process_runtimes_lock_wait(found->runtimes, pid, seen->tid, &trace, seen->args[3] != 0, ret);
}

/* False: the thread moved meanwhile. */
static bool find_wait(struct found *found, size_t i)
{
	const struct sf_dump *dump = found->dump;
	const struct sf_dump_thread *thread = &dump->threads.items[i];
	const char *function = libc_function(dump, thread);
	struct sf_lock_wait lock = { 0 };

	if (!function && !found->runtimes)
		return true;
	found->switches[i] = sf_task_switches(dump->pid, thread->seen.tid);
	if (!is_in_call(dump, thread, found->switches[i]) || !read_lock(found, thread, function, &lock))
		return true;
	if (!found->switches[i] || sf_task_switches(dump->pid, thread->seen.tid) != found->switches[i])
		return false;
	keep(found, i, &lock);
	return true;
}

/* Both libc's locks and the runtimes' let a thread sleep in this call. */
static bool may_wait(const struct sf_dump_thread *thread)
{
	return thread->seen.loss < 0 && thread->seen.state == SF_STATE_BLOCKED && thread->seen.syscall == SYS_futex;
}

static bool has_slept_on(const struct found *found, const struct sf_dump_circle *circle)
{
	const struct sf_dump_thread *threads = found->dump->threads.items;
	size_t at = circle->first;

	for (size_t i = 0; i < circle->n; i++, at = threads[at].owner - 1) {
		if (sf_task_switches(found->dump->pid, threads[at].seen.tid) != found->switches[at])
			return false;
	}
	return true;
}

/* False: a thread of it moved. */
static bool add_circle(struct found *found, size_t first)
{
	const struct sf_dump_thread *threads = found->dump->threads.items;
	struct sf_dump_circle circle = { .first = first };
	size_t at = first;

	do {
		circle.timed |= threads[at].lock.timed;
		circle.n++;
		at = threads[at].owner - 1;
	} while (at != first);
	return has_slept_on(found, &circle) && sf_vec_push(&found->dump->circles, circle);
}

/*
 * Each thread waits for one other at most. A way that comes to a thread of itself has found a circle, one that comes to
 * an older way has not.
 */
static bool find_circles(struct found *found)
{
	const struct sf_dump_thread *threads = found->dump->threads.items;
	bool fine = true;

	for (size_t i = 0; i < found->dump->threads.n; i++) {
		size_t at = i;

		while (!found->round[at] && threads[at].owner) {
			found->round[at] = (uint32_t)i + 1;
			at = threads[at].owner - 1;
		}
		if (found->round[at] == i + 1)
			fine &= add_circle(found, at);
	}
	return fine;
}

static void forget(struct found *found)
{
	for (size_t i = 0; i < found->dump->threads.n; i++) {
		found->dump->threads.items[i].lock = (struct sf_lock_wait){ 0 };
		found->dump->threads.items[i].owner = 0;
		found->round[i] = 0;
	}
	found->dump->circles.n = 0;
}

/* False: something moved, and may be missing. */
static bool find_all(struct found *found)
{
	bool fine = true;

	forget(found);
	for (size_t i = 0; i < found->dump->threads.n; i++) {
		if (may_wait(&found->dump->threads.items[i]))
			fine &= find_wait(found, i);
	}
	return find_circles(found) && fine;
}

void sf_lock_waits_find(struct sf_dump *dump, struct sf_process_runtimes *runtimes)
{
	struct found found = { .dump = dump, .runtimes = runtimes };

	if (begin(&found, dump)) {
		for (unsigned i = 0; i < MAX_READINGS && !find_all(&found); i++)
			;
	}
	end(&found);
}
