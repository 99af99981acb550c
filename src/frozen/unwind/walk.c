/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walker. Signal-safe. Each pass finds the region of the pc, stores the frame, and lets the
 * steppers try to step to the caller. The walk ends when a stepper returns a reason. Each pass stores a
 * frame, so the room in the trace bounds the walk for any contents of the stack.
 */
#include <stddef.h>

#include "frozen/unwind/walk.h"

#include "frozen/frozen.h"

#define USER_BITS 56 /* of an address of a program, at the most (Linux, Documentation/arch/x86/x86_64/mm.rst) */

/* The runtime whose code this is, if it is the code of one. */
static enum sf_step step_runtime(struct sf_cursor *cursor, const struct sf_region *region,
				 enum sf_end *why)
{
	const struct sf_runtime *runtime = region ? region->runtime : NULL;

	return runtime ? runtime->ops->step(runtime, cursor, why) : SF_STEP_NOT_MINE;
}

struct stepper {
	sf_step_fn *step;
	uint32_t tables;          /* only where the region's table has one of these flags; 0: everywhere */
};

/* In the order in which they are tried. */
static const struct stepper steppers[] = {
	{ step_runtime, 0 },
	{ sf_step_switch, SF_TABLE_GO },
	{ sf_step_chain, 0 },
	{ sf_step_nativeaot, SF_TABLE_NATIVEAOT },
	{ sf_step_throw, 0 },
	{ sf_step_detour, 0 },
	{ sf_step_made_frame, 0 },
	{ sf_step_rows, 0 },
	{ sf_step_clone, 0 },
	{ sf_step_sigreturn, 0 },
	{ sf_step_first, 0 },
	{ sf_step_code, 0 },
	{ sf_step_frame_pointer, 0 },
};

/*
 * Neighbouring frames are often in the same region, so `last` is tried before the map. The code of a runtime
 * takes precedence over the mapping that it lies in.
 */
static const struct sf_region *find_region(const struct sf_cursor *cursor,
					   const struct sf_region *last)
{
	const uint64_t pc = cursor->regs.pc, address = cursor->exact ? pc : pc - 1;

	if (last && address >= last->start && address < last->end &&
	    (last->runtime || !sf_code_map_near_runtime(cursor->still->map, address)))
		return last;
	return sf_frame_region(cursor->still, pc, cursor->exact);
}

static void note_frame(const struct sf_cursor *cursor, const struct sf_region *region,
		       struct sf_frame *ret)
{
	const uint32_t image = region ? region->image : 0;

	*ret = (struct sf_frame){
		.pc = cursor->regs.pc,
		.sp = cursor->regs.r[cursor->still->arch->sp],
		.via = cursor->via,
		.flags = cursor->exact ? SF_FRAME_EXACT : 0,
		.runtime = region && region->runtime ? (uint8_t)(region->runtime->slot + 1) : 0,
		.image = image,
		.address = image ? cursor->regs.pc - region->bias : cursor->regs.pc,
	};
}

static enum sf_step try_steppers(struct sf_cursor *cursor, const struct sf_region *region, enum sf_end *why)
{
	const uint32_t flags = region && region->table ? region->table->header->flags : 0;
	enum sf_step step = SF_STEP_NOT_MINE;

	*why = SF_END_NO_RULE;
	for (size_t i = 0; step == SF_STEP_NOT_MINE && i < sizeof(steppers) / sizeof(steppers[0]); i++) {
		if (!steppers[i].tables || steppers[i].tables & flags)
			step = steppers[i].step(cursor, region, why);
	}
	if (step == SF_STEP_FAILED && *why == SF_END_REGISTER)
		step = sf_step_inferred(cursor, region, why);
	return step;
}

/* Whether rules lead out of the stack, by a register that is not yet, or no longer, what they say. Go's code does that rightly. */
static bool lead_off(const struct sf_region *region, enum sf_step step, enum sf_end why)
{
	const struct sf_table *table = region && !region->runtime ? region->table : NULL;

	return step == SF_STEP_FAILED && table && !(table->header->flags & (SF_TABLE_GO | SF_TABLE_NATIVEAOT)) &&
	       (why == SF_END_MEMORY || why == SF_END_OTHER_STACK || why == SF_END_STUCK);
}

/* The word at which rules look for the return address is 0, or leads to no code of the map. */
static bool is_no_return(const struct sf_cursor *cursor, enum sf_step step)
{
	return step == SF_STEP_ROOT ? cursor->trace->by_zero :
	       step == SF_STEP_TAKEN && cursor->via == SF_VIA_ROWS && !sf_frame_region(cursor->still, cursor->regs.pc, false);
}

/*
 * Whether a guess would hide more than it shows: that word may be code which a newer map has, and what is not in the stack may be
 * another stack. But a guess that leads to code of a runtime is better than where that would go on: further out (resume()).
 */
static bool may_lead_on(const struct sf_cursor *cursor, enum sf_step step, const struct sf_cursor *by_code)
{
	return step == SF_STEP_FAILED || (step == SF_STEP_TAKEN && !(cursor->regs.pc >> USER_BITS) &&
					  !sf_code_map_runtime(cursor->still->map, by_code->regs.pc - 1));
}

/*
 * Rules of assembly may not know of what the function took from the stack, as those of OpenSSL's bn_gather5
 * (crypto/bn/asm/x86_64-mont5.pl, 3.0) and of glibc's __mpn_addmul_1 (sysdeps/x86_64/addmul_1.S), by which printf makes decimals.
 * Then a word of its own is taken for the return address. Those of LuaJIT's lj_vm_ffi_call (emit_asm_debug() in vm_x64.dasc) count
 * from the frame pointer also before the function has set it, and at its return. Those of .NET's ResolveWorkerChainLookupAsmStub
 * (vm/amd64/virtualcallstubamd64.S) do not know of two words that were pushed before it. Where that leads to no return address, the
 * function's instructions are asked. Only those of the innermost frame: such functions call none, or are right where they call.
 * Newer code is looked for all the same (sf_trace_may_be_stale).
 */
static enum sf_step take_step(struct sf_cursor *cursor, const struct sf_region *region, enum sf_end *why)
{
	struct sf_cursor by_code;
	enum sf_end why_not;
	enum sf_step step;

	if (!cursor->exact)
		return try_steppers(cursor, region, why);
	by_code = *cursor;
	step = try_steppers(cursor, region, why);
	if ((!is_no_return(cursor, step) && !lead_off(region, step, *why)) ||
	    sf_step_code(&by_code, region, &why_not) != SF_STEP_TAKEN ||
	    (by_code.via != SF_VIA_CODE && may_lead_on(cursor, step, &by_code)))
		return step;
	cursor->trace->off_map |= step == SF_STEP_TAKEN;
	*cursor = by_code;
	cursor->trace->by_zero = false;
	return SF_STEP_TAKEN;
}

/* The walk goes on in another way where the code of a runtime begins. */
static bool is_as_far_as_wanted(const struct sf_cursor *cursor)
{
	const struct sf_still *still = cursor->still;

	return (still->flags & SF_STILL_TO_RUNTIME) &&
	       sf_code_map_runtime(still->map, cursor->regs.pc);
}

/* Steps from frame to frame until no caller can be found. */
static enum sf_end walk_on(struct sf_cursor *cursor)
{
	struct sf_trace *trace = cursor->trace;
	const struct sf_region *region = NULL;
	enum sf_end why;

	for (;;) {
		if (is_as_far_as_wanted(cursor))
			return SF_END_RUNTIME;
		region = find_region(cursor, region);
		trace->off_map |= !region;
		/* A return address in no code is none; an exact pc is where the thread stood. */
		if (!region && !cursor->exact)
			return SF_END_NO_CODE;
		if (trace->n_frames == trace->capacity)
			return SF_END_DEPTH;
		note_frame(cursor, region, &trace->frames[trace->n_frames++]);
		if (cursor->tail && sf_tail_meet(cursor->tail, cursor))
			return SF_END_ROOT;

		switch (take_step(cursor, region, &why)) {
		case SF_STEP_TAKEN:
			break;
		case SF_STEP_ROOT:
			return SF_END_ROOT;
		case SF_STEP_FAILED:
		case SF_STEP_NOT_MINE:
			return why;
		}
		if (cursor->via != SF_VIA_ROWS)
			cursor->passed = 0;
		/* Nobody called the trampoline: it is not looked up one byte before, either. */
		if (cursor->via == SF_VIA_SIGNAL)
			trace->frames[trace->n_frames - 1].flags |= SF_FRAME_EXACT;
	}
}

static bool resume(struct sf_cursor *cursor)
{
	const struct sf_code_map *map = cursor->still->map;

	for (size_t i = 0; map && i < map->n_runtimes; i++) {
		const struct sf_runtime *runtime = map->runtimes[i];

		if (runtime->ops->resume && runtime->ops->resume(runtime, cursor))
			return true;
	}
	return false;
}

/*
 * Native code in which a walk gets stuck is bridged by what a runtime has recorded of the thread. Where rules are
 * wrong, as in some routines of runtimes, a word that is 0 can be taken for the end of the stack: then a runtime may
 * know of frames above, too.
 */
static enum sf_end walk(struct sf_cursor *cursor)
{
	enum sf_end end;

	do {
		end = walk_on(cursor);
	} while ((end != SF_END_ROOT || cursor->trace->by_zero) && end != SF_END_DEPTH && end != SF_END_COPY &&
		 resume(cursor));
	return end;
}

static enum sf_end walk_from(const struct sf_still *still, struct sf_tail_walk *tail, struct sf_trace *trace)
{
	struct sf_cursor cursor = {
		.still = still, .exact = true, .via = SF_VIA_LEAF, .trace = trace, .tail = tail,
	};

	trace->n_frames = 0;
	trace->by_zero = trace->off_map = trace->lacks_chain = trace->below_sp = false;
	trace->end = SF_END_EMPTY;
	if (still->arch && sf_reg_known(&still->regs, still->arch->sp)) {
		cursor.regs = still->regs;
		cursor.passed = still->regs.known;
		trace->end = walk(&cursor);
	}
	return trace->end;
}

enum sf_end sf_walk(const struct sf_still *still, struct sf_trace *trace)
{
	return walk_from(still, NULL, trace);
}

enum sf_end sf_walk_with_tail(const struct sf_still *still, struct sf_tail_walk *tail, struct sf_trace *trace)
{
	sf_tail_begin(tail, still);
	walk_from(still, tail->tail ? tail : NULL, trace);
	sf_tail_end(tail, still, trace);
	return trace->end;
}

bool sf_trace_may_be_stale(const struct sf_trace *trace)
{
	const struct sf_frame *last = trace->n_frames ? &trace->frames[trace->n_frames - 1] : NULL;

	if (trace->off_map || trace->end == SF_END_NO_CODE || trace->end == SF_END_NO_RULE || trace->end == SF_END_STUCK)
		return true;
	if (last && last->image == 0 && !sf_kind_is_managed(last->kind))
		return true;
	for (uint32_t i = 0; i < trace->n_frames; i++) {
		if (trace->frames[i].via == SF_VIA_CODE)
			return true;
	}
	return false;
}

bool sf_trace_has_code_of_no_file(const struct sf_trace *trace)
{
	bool has = false;

	for (uint32_t i = 0; i < trace->n_frames; i++)
		has = has || (!trace->frames[i].image && !sf_kind_is_managed(trace->frames[i].kind));
	return has;
}
