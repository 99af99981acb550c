/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stepper for programs of .NET's NativeAOT compiler. Signal-safe. Their rules are wrong in two places, and one return
 * address is none:
 *
 * - Rules of managed code describe the prologue only (UnixNativeCodeManager.cpp, which follows epilogues for the same
 *   reason). Where a thread stands in an epilogue, its instructions are followed.
 * - The routine that throws for a hardware fault (RhpThrowHwEx: nativeaot/Runtime/amd64/ExceptionHandling.S) was not
 *   called: the handler of SIGSEGV makes the thread go on there. It aligns the stack and saves the registers of the
 *   fault, first among them its place and stack pointer. Its rules take a word of the frame that has faulted for a
 *   return address.
 * - To suspend a thread the runtime replaces a return address by that of a routine of its own (RhpGcProbeHijack:
 *   nativeaot/Runtime/amd64/GcProbe.S). The original is in the runtime's structure of the thread, among its thread-local
 *   variables, which are not found from a stack. So the walk ends there.
 */
#include "frozen/unwind/walk.h"

#include "frozen/frozen.h"

#define WORD 8

/*
 * mov %rsp,%rax; and $-16,%rsp; xor %rdx,%rdx; push r15, r14, r13, r12, rdx (0), rbx, rdx, rbp, rax (rsp), rsi (the
 * place of the fault)
 */
static const uint8_t saves_fault[] = {
	0x48, 0x89, 0xe0, 0x48, 0x83, 0xe4, 0xf0, 0x48, 0x31, 0xd2,
	0x41, 0x57, 0x41, 0x56, 0x41, 0x55, 0x41, 0x54, 0x52, 0x53, 0x52, 0x55, 0x50, 0x56,
};
#define RAX 0
#define RSI 4
#define MAX_TAKE 8                  /* bytes of the instruction that follows: it takes the rest of the frame */
#define SAVED_AT (-88)              /* of what was saved, from the CFA that the rules give */
#define FP_AT (-72)                 /* rbp, among it */

/* Registers by their words in what was saved. */
static const struct {
	uint8_t word, reg;
} words[] = { { 1, 7 }, { 2, 6 }, { 4, 3 }, { 6, 12 }, { 7, 13 }, { 8, 14 }, { 9, 15 } };

/* Frozen code does not call memcmp(), which the compiler does where it takes a comparison for a rare one. */
static bool is_saves_fault(const uint8_t *bytes)
{
	for (size_t i = 0; i < sizeof(saves_fault); i++) {
		if (bytes[i] != saves_fault[i])
			return false;
	}
	return true;
}

static bool begins_so(const struct sf_cursor *cursor, uint64_t body)
{
	const struct sf_reader code = sf_reader_outside(&cursor->still->memory);
	uint8_t bytes[sizeof(saves_fault) + MAX_TAKE];

	return sf_read(&code, bytes, body - sizeof(bytes), sizeof(bytes)) &&
	       (is_saves_fault(bytes) || is_saves_fault(bytes + 1));
}

/* Only one routine saves rbp there: so the code of few others is read. */
static bool is_fault_routine(const struct sf_cursor *cursor, const struct sf_region *region, const struct sf_row_range *row)
{
	const struct sf_arch *arch = cursor->still->arch;
	const struct sf_rule *cfa = &row->rules->cfa;

	for (unsigned i = 0; i < arch->n_saved; i++) {
		const struct sf_rule *rule = &row->rules->saved[i];

		if (arch->saved[i] == arch->fp && (rule->how != SF_HOW_AT_CFA || rule->value != FP_AT))
			return false;
	}
	return cfa->how == SF_HOW_REGISTER_PLUS && cfa->reg == arch->sp && cfa->value > -SAVED_AT &&
	       begins_so(cursor, row->start + region->bias);
}

/* To the instruction that has faulted. */
static enum sf_step step_to_fault(struct sf_cursor *cursor, const struct sf_row_range *row, enum sf_end *why)
{
	const struct sf_reader *memory = &cursor->still->memory;
	const uint64_t at = cursor->regs.r[cursor->still->arch->sp] + (uint64_t)(row->rules->cfa.value + SAVED_AT);
	uint64_t saved[10];

	*why = sf_why_unread(memory, at, sizeof(saved));
	if (!sf_read(memory, saved, at, sizeof(saved)))
		return SF_STEP_FAILED;
	*why = SF_END_STUCK;
	if (saved[1] < at)
		return SF_STEP_FAILED;
	cursor->regs.known = 0;
	cursor->regs.pc = saved[0];
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		sf_reg_set(&cursor->regs, words[i].reg, saved[words[i].word]);
	cursor->exact = true;
	cursor->via = SF_VIA_RUNTIME;
	return SF_STEP_TAKEN;
}

/* Whether the thread stands where that routine is still saving: its registers are those of the fault, but for rax and sp. */
static bool is_saving(const struct sf_cursor *cursor, uint64_t *sp_ret)
{
	enum { N = sizeof(saves_fault) };
	const struct sf_reader code = sf_reader_outside(&cursor->still->memory);
	uint8_t bytes[2 * N];

	if (!sf_reg_known(&cursor->regs, RSI) || !sf_reg_known(&cursor->regs, RAX) ||
	    !sf_read(&code, bytes, cursor->regs.pc - N, sizeof(bytes)))
		return false;
	for (unsigned done = 0; done <= N; done++) {
		if (!is_saves_fault(bytes + N - done))
			continue;
		*sp_ret = cursor->regs.r[done ? RAX : cursor->still->arch->sp];
		return true;
	}
	return false;
}

static enum sf_step step_to_rsi(struct sf_cursor *cursor, uint64_t sp)
{
	cursor->regs.pc = cursor->regs.r[RSI];
	sf_reg_set(&cursor->regs, cursor->still->arch->sp, sp);
	cursor->via = SF_VIA_RUNTIME;
	return SF_STEP_TAKEN;
}

static enum sf_step leave_epilogue(struct sf_cursor *cursor, const struct sf_region *region, const struct sf_row_range *row)
{
	const struct sf_arch *arch = cursor->still->arch;
	const uint64_t end = row->end == UINT64_MAX ? region->end : row->end + region->bias;
	struct sf_regs regs = cursor->regs;
	uint64_t kept = UINT64_C(1) << arch->sp;

	if (!arch->follow_epilogue || !arch->follow_epilogue(&cursor->still->memory, row->start + region->bias, end, &regs) ||
	    !sf_read_u64(&cursor->still->memory, regs.r[arch->sp], &regs.pc))
		return SF_STEP_NOT_MINE;
	for (unsigned i = 0; i < arch->n_saved; i++)
		kept |= UINT64_C(1) << arch->saved[i];
	regs.known &= kept;
	regs.r[arch->sp] += WORD;
	cursor->regs = regs;
	cursor->exact = false;
	cursor->via = SF_VIA_RUNTIME;
	return SF_STEP_TAKEN;
}

/* No call is before that routine. Other return addresses at a function's start are behind a call that does not return. */
static bool is_hijacked(const struct sf_cursor *cursor, const struct sf_region *region)
{
	const struct sf_reader code = sf_reader_outside(&cursor->still->memory);
	uint64_t target;

	return !cursor->exact && sf_table_starts_row(region->table, cursor->regs.pc - region->bias) &&
	       !cursor->still->arch->is_behind_call(&code, cursor->regs.pc, &target);
}

enum sf_step sf_step_nativeaot(struct sf_cursor *cursor, const struct sf_region *region, enum sf_end *why)
{
	struct sf_row_range row;
	uint64_t sp;

	if (is_hijacked(cursor, region)) {
		cursor->trace->frames[cursor->trace->n_frames - 1].flags |= SF_FRAME_EXACT;
		*why = SF_END_RUNTIME;
		return SF_STEP_FAILED;
	}
	if (!sf_table_range(region->table, cursor->regs.pc - region->bias - !cursor->exact, &row))
		return SF_STEP_NOT_MINE;
	if (row.rules->flags & SF_RULES_PROLOGUE)
		return cursor->exact ? leave_epilogue(cursor, region, &row) : SF_STEP_NOT_MINE;
	if (cursor->exact && is_saving(cursor, &sp))
		return step_to_rsi(cursor, sp);
	return is_fault_routine(cursor, region, &row) ? step_to_fault(cursor, &row, why) : SF_STEP_NOT_MINE;
}
