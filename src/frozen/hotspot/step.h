/* SPDX-License-Identifier: Apache-2.0 */
/* A step out of a frame of a Java virtual machine, while it is taken. For step*.c only. */
#ifndef SF_FROZEN_HOTSPOT_STEP_H
#define SF_FROZEN_HOTSPOT_STEP_H

#include "frozen/hotspot/hotspot.h"
#include "frozen/hotspot/metadata_cache.h"
#include "frozen/unwind/walk.h"

/* DWARF numbers of x86-64, the one processor whose frames are known here. */
enum {
	SF_X86_RAX = 0, SF_X86_RDX = 1, SF_X86_RCX = 2, SF_X86_RBX = 3, SF_X86_RSI = 4, SF_X86_RDI = 5,
	SF_X86_RBP = 6, SF_X86_RSP = 7, SF_X86_R11 = 11, SF_X86_R13 = 13, SF_X86_R15 = 15,
};

#define SF_HOTSPOT_METHOD_SLOT 24        /* bytes below the interpreter's fp: its Method */
#define SF_HOTSPOT_MAX_FRAME (1 << 20)   /* bytes that one frame may plausibly have */

struct sf_hotspot_step {
	struct sf_cursor *cursor;
	struct sf_frame *frame;          /* of the trace: the one to step from */
	const struct sf_hotspot *hotspot;
	const struct sf_reader *memory;  /* for the stack */
	struct sf_reader outside;        /* for all else: knows no end of the copy */
	uint64_t pc, sp, fp;
	bool fp_known;
	struct sf_blob blob;             /* that holds pc; not in the interpreter */
};

/* Where a step may lead. */
struct sf_hotspot_caller {
	uint64_t pc, sp, fp;
	bool fp_known;
};

/* The walk's use of the metadata cache; NULL: there is no cache. */
static inline struct sf_metadata_cache *sf_hotspot_metadata_cache(const struct sf_hotspot_step *step)
{
	return step->cursor->still->scratch[step->hotspot->runtime.slot];
}

/*
 * A frame takes some looks for pieces of code, and some dozens where its caller is found by looking. A stack that makes
 * it so for each of its frames is made up: then the walk ends.
 */
#define SF_HOTSPOT_LOOKS 1000
#define SF_HOTSPOT_LOOKS_PER_FRAME 16

/* The piece of code that holds pc. */
static inline bool sf_hotspot_find(const struct sf_hotspot_step *step, uint64_t pc,
				   struct sf_blob *ret)
{
	struct sf_cursor *cursor = step->cursor;
	const uint32_t most = SF_HOTSPOT_LOOKS + SF_HOTSPOT_LOOKS_PER_FRAME * cursor->trace->capacity;

	if (cursor->n_looks >= most)
		return false;
	cursor->n_looks++;
	return sf_metadata_cache_blob(sf_hotspot_metadata_cache(step), step->hotspot, &step->outside, pc, ret);
}

/* Whether what is there looks like a Method. */
static inline bool sf_hotspot_find_method(const struct sf_hotspot_step *step, uint64_t address,
					  struct sf_method *ret)
{
	return sf_metadata_cache_method(sf_hotspot_metadata_cache(step), step->hotspot, &step->outside, address, ret);
}

/* Whether pc is in the interpreter's code. */
static inline bool sf_hotspot_in_interpreter(const struct sf_hotspot *hotspot, uint64_t pc)
{
	return pc >= hotspot->interpreter_start && pc < hotspot->interpreter_end;
}

/* Fails, since `size` bytes of the stack at `addr` cannot be read. */
static inline enum sf_step sf_hotspot_unread(const struct sf_hotspot_step *step, uint64_t addr,
					     size_t size, enum sf_end *why)
{
	*why = sf_why_unread(step->memory, addr, size);
	return SF_STEP_FAILED;
}

/* --- step_caller.c --- */

/* Whether code of the machine can return to pc: there is code, and a call stands before it. */
bool sf_hotspot_is_return(const struct sf_hotspot_step *step, uint64_t pc);
/* The same, for routines that native code may call, too. */
bool sf_hotspot_is_any_return(const struct sf_hotspot_step *step, uint64_t pc);

/* Whether the frame above is a hand-written routine's. */
bool sf_hotspot_called_routine(const struct sf_hotspot_step *step);

/*
 * Whether a caller that was found by looking has a caller itself: stale words look like return
 * addresses, too.
 */
bool sf_hotspot_leads_on(const struct sf_hotspot_step *step,
			 const struct sf_hotspot_caller *caller);

/* The JavaThread: all of its code keeps it in r15. 0: unknown. */
static inline uint64_t sf_hotspot_java_thread(const struct sf_hotspot_step *step)
{
	const struct sf_cursor *cursor = step->cursor;

	return sf_reg_known(&cursor->regs, SF_X86_R15) ? cursor->regs.r[SF_X86_R15]
						       : cursor->still->handles[step->hotspot->runtime.slot];
}

/* The cursor goes to the caller, if it is above. */
enum sf_step sf_hotspot_take(struct sf_hotspot_step *step, const struct sf_hotspot_caller *caller,
			     enum sf_via via, enum sf_end *why);

/*
 * A caller whose return address stands at `at`, with nothing but that pushed; fp is still its
 * own.
 */
bool sf_hotspot_bare(const struct sf_hotspot_step *step, uint64_t at,
		     struct sf_hotspot_caller *ret);
/* A caller by a frame record (fp, return address) at `at`. */
bool sf_hotspot_record(const struct sf_hotspot_step *step, uint64_t at,
		       struct sf_hotspot_caller *ret);

/*
 * The frame has its full size: the return address is its last word, the caller's fp the one
 * before.
 */
enum sf_step sf_hotspot_step_by_size(struct sf_hotspot_step *step, enum sf_end *why);

/* --- the other files --- */

/*
 * Where compiled code was interrupted before it has made its frame or after it has taken it down
 * (step_prologue.c): the caller, as the instructions show. False: the frame is there.
 */
bool sf_hotspot_top_compiled(const struct sf_hotspot_step *step, struct sf_hotspot_caller *ret);

/* Whether it was interrupted between a call and the interpreter's entry: [sp] is where the call returns. */
bool sf_hotspot_in_static_call_stub(const struct sf_hotspot_step *step);

/* Whether the call before pc is one of this Method, in a way that leads to the interpreter. */
bool sf_hotspot_calls_by_stub(const struct sf_hotspot_step *step, uint64_t pc, uint64_t method);

/* The interpreter (step_interpreter.c). */
enum sf_step sf_hotspot_step_interpreter(struct sf_hotspot_step *step, enum sf_end *why);

/* step_adapter.c: between interpreted and compiled code. */
enum sf_step sf_hotspot_step_adapter(struct sf_hotspot_step *step, enum sf_end *why);

/*
 * Where a compiled frame at sp goes on (step.c): pc, or, if the method was deoptimized and its return
 * address replaced, what the frame keeps of it.
 */
uint64_t sf_hotspot_real_pc(const struct sf_hotspot_step *step, const struct sf_blob *blob, uint64_t pc,
			    uint64_t sp);

/* step_deoptimized.c: a method that is being deoptimized; the stubs of virtual threads. */
enum sf_step sf_hotspot_step_deopt(struct sf_hotspot_step *step, enum sf_end *why);
enum sf_step sf_hotspot_step_continuation(struct sf_hotspot_step *step, enum sf_end *why);

/* step_routine.c: a call into the machine, with a frame of known size once that is made. */
enum sf_step sf_hotspot_step_runtime(struct sf_hotspot_step *step, enum sf_end *why);

/* The caller of a routine, by following its code to its return (step_return.c). False: no way leads there. */
bool sf_hotspot_follow_to_return(const struct sf_hotspot_step *step, struct sf_hotspot_caller *ret);

/* By its code, else by the best evidence that the stack gives, for routines without a known frame. */
enum sf_step sf_hotspot_step_routine(struct sf_hotspot_step *step, enum sf_end *why);

#endif
