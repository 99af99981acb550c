/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes a still of a thread of another process into a buffer: registers and a copy of the stack. Held threads are held
 * for just that long. Sleeping threads are not touched at all.
 *
 * From the request to the release the rules of frozen code hold: nothing here allocates or locks.
 *
 * A thread can leave its stack for another one and come back, as it does for a signal's handler on an alternate stack.
 * Then a word of the stack that it is on points to the stack that it left. That word is at the same address each time: at the
 * top of the alternate stack, of Go's g0, of the like. A lead is the address of such a word.
 *
 * The frame pointer may point there, too: then that register is the lead.
 *
 * A walk that ends because the other stack was not copied finds the lead. From then on, copies follow it while the thread
 * stands. The walking thread finds leads, and the holding thread follows them.
 */
#ifndef SF_CAPTURE_PTRACE_STACK_COPY_H
#define SF_CAPTURE_PTRACE_STACK_COPY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "capture/ptrace/saved.h"
#include "frozen/still.h"
#include "os/hold.h"
#include "os/pages.h"
#include "os/task.h"
#include "target/memory.h"

/* --- leads --- */

#define SF_MAX_OTHER_STACKS 3

#define SF_LEAD_FP 1 /* instead of an address: the frame pointer */

/* Zeroed memory has no leads. */
struct sf_stack_leads {
	_Atomic uint64_t at[SF_MAX_OTHER_STACKS]; /* 0: none */
	uint32_t n_found;                         /* the walking thread's */
};

/*
 * The size and parts of a copy: bytes of the stack that the thread is on, and leads to others. A plain struct, made
 * from the shared fields. Signal-safe.
 */
struct sf_copy_plan {
	uint32_t size;
	uint64_t root_sp;   /* of the thread's first frame, where a walk of this stack came to it: no more is needed; 0: not known */
	uint32_t n_leads;
	uint64_t leads[SF_MAX_OTHER_STACKS];
};

struct sf_copy_plan sf_stack_leads_plan(struct sf_stack_leads *leads, uint32_t size);

/*
 * A walk could not read `unread`, which is in none of the still's windows: finds the word in them that points there, or
 * a little below. False: there is none, or it is known.
 */
bool sf_stack_leads_find(struct sf_stack_leads *leads, const struct sf_still *still, uint64_t unread);

/* --- copies --- */

/* A piece of another stack of the thread; its bytes lie behind those of the pieces before it. */
struct sf_stack_piece {
	uint64_t start;
	uint32_t size;
	uint32_t more;           /* 1: it was cut */
};

/*
 * A still as it lies in a buffer. The stack's bytes follow, then those of other stacks, and then the addresses of the kernel's
 * frames, and those that the kernel found in user mode (sf_still.chain): each from a multiple of 8 on.
 */
struct sf_stack_copy {
	int32_t  pid, tid;
	int32_t  syscall;
	uint8_t  state;
	uint8_t  flags;          /* enum sf_still_flags */
	uint8_t  cause;          /* enum sf_cause */
	bool     longest;        /* the engine cannot take a longer one */
	bool     is_only;        /* of a moment that does not come again: no later copy takes its place */
	uint32_t room;           /* of such a copy, and of one that follows leads: bytes that it had room for, though it may end before, at a page that was never touched */
	bool     follows_leads;  /* the engine copies other stacks, too, by the thread's leads */
	uint64_t args[6];
	uint64_t time_ns;
	uint64_t taken_ns;       /* when it was complete, or later: set by the caller */
	uint64_t switches;       /* of a sleeping one: as in struct sf_task_run, 0: unknown */
	uint64_t stack_start;
	uint32_t stack_size;
	uint32_t stack_more;     /* 1: the copy was cut, the stack goes on */
	uint32_t n_kernel;       /* addresses of kernel frames (sf_stack_copy_kernel) */
	uint32_t n_chain;        /* behind them */
	uint32_t n_others;
	struct sf_stack_piece others[SF_MAX_OTHER_STACKS];
	struct sf_regs regs;
	uint8_t  stack[];
};

#define SF_COPY_FIRST (64u << 10)   /* bytes of stack to copy from a thread not seen before */
#define SF_COPY_MAX (4u << 20)
#define SF_COPY_MAX_ROOM (SF_COPY_MAX * 2) /* of SF_COPY_MAX bytes, and a quarter of that and a little of each other stack */

/* The room for the bytes that are wanted, in a buffer behind the struct. Signal-safe. */
uint32_t sf_copy_plan_room(const struct sf_copy_plan *plan);

/*
 * The registers and stacks of a held thread, as far as they are wanted. The caller releases it, and
 * sets state and time. False when it was killed meanwhile. Signal-safe.
 */
bool sf_copy_held(struct sf_held *held, int32_t pid, const struct sf_copy_plan *plan, struct sf_pages *pages,
		  struct sf_stack_copy *ret);

/* Whether a held thread stands in the call of the look, or before it, to make it again. */
bool sf_copy_is_at(const struct sf_stack_copy *copy, const struct sf_task_look *look);

/* The kernel's frames, behind the stacks; and the bytes behind the struct. */
const uint64_t *sf_stack_copy_kernel(const struct sf_stack_copy *copy);
uint32_t sf_stack_copy_tail(const struct sf_stack_copy *copy);

/* Of a thread that stays in the kernel, whatever it does: without a stack. */
void sf_copy_none(int32_t pid, int32_t tid, struct sf_stack_copy *ret);

enum sf_copy_result { SF_COPY_DONE, SF_COPY_GONE, SF_COPY_MOVED, SF_COPY_NOT_PLACED };

/*
 * The same of a thread that sleeps, without touching it. The registers come from /proc, and an unchanged switch count
 * proves that the thread slept throughout. `look` was read before.
 */
enum sf_copy_result sf_copy_blocked(const struct sf_task *task, const struct sf_task_look *look,
			    const struct sf_copy_plan *plan, struct sf_pages *pages, struct sf_stack_copy *ret);

/* The same of a thread that was on no CPU when `source` was asked for what the kernel has saved of it. */
enum sf_copy_result sf_copy_saved(const struct sf_saved_source *source, const struct sf_saved *saved,
				  const struct sf_copy_plan *plan, struct sf_pages *pages, struct sf_stack_copy *ret);

/* A still that was copied, and what belongs to it while it is walked. */
struct sf_copied_still {
	struct sf_still still;
	struct sf_window others[SF_MAX_OTHER_STACKS];
	uint64_t unread;         /* where the walk ended in another stack (sf_reader.unread) */
};

/*
 * The still in a buffer, for walking. Its stacks are the copied ones; all other memory is read from the process, through
 * `memory`, which serves one still at a time.
 */
void sf_stack_copy_still(const struct sf_stack_copy *copy, const struct sf_arch *arch,
		    struct sf_memory *memory, struct sf_copied_still *ret);

/* The number of bytes to copy next time, where the walk needed `used` bytes. */
uint32_t sf_copy_next(uint32_t want, uint64_t used);

/* The same, where `copied` bytes were too short: four times as many, or `want` if that is more; at most SF_COPY_MAX. */
uint32_t sf_copy_more(uint32_t want, uint32_t copied);

/*
 * The same, where a walk could not read `unread`, and the copy had no room for it. A copy ends at the first of the pages
 * that were never touched if these are all that it has room for, as amid a large array. So its end is not always that
 * of the stack. 0: the copy had room for that address, or no copy has.
 */
uint32_t sf_copy_up_to(const struct sf_stack_copy *copy, uint64_t unread);

#endif
