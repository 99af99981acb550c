/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stepping out of what stands between the conventions of the interpreter and of compiled code.
 * Adapters are entered with nothing but the return address pushed. On the way to the interpreter the
 * arguments are put on the stack, and the return address below them once more; the caller's own sp is
 * in r13 then. (HotSpot: cpu/x86/sharedRuntime_x86_64.cpp, gen_c2i_adapter.)
 */
#include "frozen/hotspot/step.h"

#include "frozen/frozen.h"

#define MAX_ADAPTER_BYTES 4096
#define BEFORE 512           /* bytes of stores of arguments */
#define MAX_PUSHED 1024      /* bytes of registers around calls of the collector, twice */
#define BEHIND 16            /* from taking the return address off the stack to putting it back */
#define LEA_SIZE 5
#define WORD 8

/* Offsets in the code that is looked at. */
struct move {
	unsigned sp_kept;    /* from here on the caller's sp is in r13 */
	unsigned put;        /* until here the return address is in rax only */
};

static bool is(const uint8_t *code, unsigned n, const char *bytes, unsigned size)
{
	unsigned same = 0;

	while (same < size && same < n && code[same] == (uint8_t)bytes[same])
		same++;
	return same == size;
}

/* pop rax; mov r13, rsp; or, in newer JDKs, lea r13, [rsp+8]; pop rax. Then sub rsp, n; and [rsp] = rax. */
static bool find_move(const uint8_t *code, unsigned n, unsigned at, struct move *ret)
{
	const bool newer = at >= LEA_SIZE && is(code + at - LEA_SIZE, LEA_SIZE,
						"\x4c\x8d\x6c\x24\x08", LEA_SIZE);
	unsigned next = at + 1;

	if (code[at] != 0x58)
		return false;
	if (!newer && !is(code + next, n - next, "\x4c\x8b\xec", 3) &&
	    !is(code + next, n - next, "\x49\x89\xe5", 3))
		return false;
	next += newer ? 0 : 3;
	ret->sp_kept = next;
	if (is(code + next, n - next, "\x48\x83\xec", 3))
		next += 4;
	else if (is(code + next, n - next, "\x48\x81\xec", 3))
		next += 7;
	if (next >= n) /* the instruction goes on behind what was read */
		return false;
	if (code[next] == 0x50)
		ret->put = next + 1;
	else if (is(code + next, n - next, "\x48\x89\x04\x24", 4))
		ret->put = next + 4;
	else
		return false;
	return true;
}

/* Whether pc is behind the move, and where it was. */
static bool behind_move(const struct sf_hotspot_step *step, unsigned *pc_ret, struct move *ret)
{
	const struct sf_blob *blob = &step->blob;
	const uint64_t before = step->pc - blob->code_start, behind = blob->code_end - step->pc;
	const unsigned back = before < BEFORE ? (unsigned)before : BEFORE;
	const unsigned n = back + (behind < BEHIND ? (unsigned)behind : BEHIND);
	uint8_t code[BEFORE + BEHIND];

	if (!sf_read(&step->outside, code, step->pc - back, n))
		return false;
	*pc_ret = back;
	for (unsigned i = back; i-- > 0;) {
		if (find_move(code, n, i, ret))
			return true;
	}
	return false;
}

static bool to_interpreter(const struct sf_hotspot_step *step, struct sf_hotspot_caller *ret)
{
	const struct sf_regs *regs = &step->cursor->regs;
	struct move move;
	unsigned pc;

	if (!step->cursor->exact || !behind_move(step, &pc, &move) ||
	    !sf_hotspot_bare(step, step->sp, ret))
		return false;
	ret->sp = step->sp;
	if (pc >= move.sp_kept) {
		ret->sp = regs->r[SF_X86_R13];
		if (!sf_reg_known(regs, SF_X86_R13) || ret->sp % WORD != 0)
			return false;
	}
	if (pc < move.put) {
		ret->pc = regs->r[SF_X86_RAX];
		if (!sf_reg_known(regs, SF_X86_RAX))
			return false;
	}
	return ret->sp >= step->sp && ret->sp - step->sp <= MAX_ADAPTER_BYTES &&
	       sf_hotspot_is_return(step, ret->pc);
}

/*
 * Before the move the adapter calls the barrier of some collectors, which decides whether the Method may
 * still be called. It pushes registers first (HotSpot: BarrierSetAssembler::c2i_entry_barrier;
 * Shenandoah's load barrier). The stack then holds stale words as well. The return address is the
 * word that is behind a call of the Method in rbx and has a caller's frame above it. The last such
 * call has left a copy below its arguments.
 */
static bool by_method(const struct sf_hotspot_step *step, struct sf_hotspot_caller *ret)
{
	const struct sf_regs *regs = &step->cursor->regs;

	if (!sf_reg_known(regs, SF_X86_RBX))
		return false;
	for (uint64_t at = step->sp; at - step->sp < MAX_PUSHED; at += WORD) {
		if (!sf_hotspot_bare(step, at, ret))
			return false;
		if (sf_hotspot_calls_by_stub(step, ret->pc, regs->r[SF_X86_RBX]) &&
		    sf_hotspot_leads_on(step, ret))
			return true;
	}
	return false;
}

/* By what registers and stack look like: before the move, on the way to compiled code, while the machine is called. */
static bool by_looks(const struct sf_hotspot_step *step, struct sf_hotspot_caller *ret)
{
	const struct sf_regs *regs = &step->cursor->regs;
	const uint64_t r13 = regs->r[SF_X86_R13], rax = regs->r[SF_X86_RAX];
	bool above = sf_reg_known(regs, SF_X86_R13) && r13 >= step->sp &&
		     r13 - step->sp <= MAX_ADAPTER_BYTES && r13 % WORD == 0;

	if ((sf_hotspot_bare(step, step->sp, ret) && sf_hotspot_is_return(step, ret->pc)) ||
	    (above && sf_hotspot_bare(step, r13, ret) && sf_hotspot_is_return(step, ret->pc)))
		return true;
	*ret = (struct sf_hotspot_caller){ .pc = rax, .sp = r13, .fp = step->fp, .fp_known = step->fp_known };
	return above && sf_reg_known(regs, SF_X86_RAX) && sf_hotspot_is_return(step, rax);
}

enum sf_step sf_hotspot_step_adapter(struct sf_hotspot_step *step, enum sf_end *why)
{
	struct sf_hotspot_caller caller;

	if (to_interpreter(step, &caller) || by_method(step, &caller) || by_looks(step, &caller))
		return sf_hotspot_take(step, &caller, SF_VIA_RUNTIME, why);
	return sf_hotspot_step_runtime(step, why);
}
