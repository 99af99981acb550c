/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stepper for inferred callers: it steps out of a frame whose rule needs the frame pointer, when
 * the frame pointer is not known. Signal-safe. For a blocked thread that was not interrupted, the
 * kernel shows only the pc, the stack pointer and the arguments of the system call.
 *
 * The function's rows and its first bytes show three things: it began with
 * `push %rbp ... mov %rsp, %rbp`, the address where it starts, and the stack bytes that it has taken
 * since. Its return address is above those bytes, at an aligned position. It points behind a call whose
 * target is this function: its first byte, or a PLT stub that jumps there. Such a word proves the
 * frame, unless an earlier call left it.
 *
 * - A word in the function's own frame is such a leftover. It is below the start of the search.
 *
 * - If the whole size of the frame is known, there is only one possible position.
 *
 * - Otherwise three conditions must hold. There is no other such word. The rules of the caller's frame
 *   lead, with the registers that the inferred frame saved, to an address behind a call again. And no
 *   return address of another call below the word could belong to the frame as well.
 *
 * An indirect call may have any target. It counts only at the one position where the return address
 * must be, and only if the rules can step out of the caller's frame. In this way main, the first
 * functions of threads, and callbacks are walked. The same holds for a signal's trampoline, which the
 * kernel stores for a handler, and for a call of another function that jumps to this one. Without a
 * proof the walk ends, because a register is not known.
 */
#include <stddef.h>

#include "frozen/unwind/walk.h"

#include "frozen/frozen.h"

#define MAX_ROWS 256           /* of the function, from pc back to its start */
#define MAX_STACK (64u << 10)  /* bytes to look at */
#define MAX_CALLS 512          /* words that point into code to look at */
#define STACK_ALIGN 16         /* of the CFA: System V psABI, 3.2.2 */
#define CHUNK 64               /* words of stack read at once */

/* A search: the facts about the function, and the caller that was found. */
struct search {
	const struct sf_cursor *cursor;
	const struct sf_region *region;
	struct sf_reader outside;       /* for code, and the slots of a PLT */
	const struct sf_rules *rules;   /* of the frame */
	struct sf_prologue prologue;
	uint64_t first_cfa;             /* the lowest that it can be */
	unsigned n_calls;               /* words looked at */
	unsigned n_found;
	struct sf_cursor caller;        /* the one found last */
};

static bool is_at_cfa(const struct sf_rule *rule, int32_t offset)
{
	return rule->how == SF_HOW_AT_CFA && rule->value == offset;
}

/* The CFA is `reg` + offset, the return address just below it. */
static bool is_cfa(const struct sf_rules *rules, unsigned reg, int32_t offset)
{
	return rules->flags == 0 && rules->cfa.how == SF_HOW_REGISTER_PLUS &&
	       rules->cfa.reg == reg && rules->cfa.value == offset && is_at_cfa(&rules->ra, -8);
}

static bool keeps_all(const struct sf_rules *rules, const struct sf_arch *arch)
{
	for (unsigned i = 0; i < arch->n_saved; i++) {
		if (rules->saved[i].how != SF_HOW_SAME)
			return false;
	}
	return true;
}

static bool saves_fp(const struct sf_rules *rules, const struct sf_arch *arch)
{
	for (unsigned i = 0; i < arch->n_saved; i++) {
		if (arch->saved[i] == arch->fp)
			return is_at_cfa(&rules->saved[i], -16);
	}
	return false;
}

/* A row of the body: with the frame pointer, or behind a return that took it back. */
static bool is_body(const struct sf_rules *rules, const struct sf_arch *arch)
{
	return saves_fp(rules, arch) && (is_cfa(rules, arch->fp, 16) || is_cfa(rules, arch->sp, 8));
}

/*
 * Back through the function's rows from `address` to those of its start: nothing pushed, then the
 * frame pointer pushed, then set. *pushed_ret and *framed_ret are behind these.
 */
static bool find_framed(const struct sf_table *table, const struct sf_arch *arch, uint64_t address,
			uint64_t *pushed_ret, uint64_t *framed_ret)
{
	struct sf_row_range row, entry;

	for (unsigned i = 0; i < MAX_ROWS; i++) {
		if (!sf_table_range(table, address, &row))
			return false;
		if (!is_body(row.rules, arch))
			break;
		address = row.start - 1;
	}
	*pushed_ret = row.start;
	*framed_ret = row.end;
	return is_cfa(row.rules, arch->sp, 16) && saves_fp(row.rules, arch) &&
	       sf_table_range(table, row.start - 1, &entry) && is_cfa(entry.rules, arch->sp, 8) &&
	       keeps_all(entry.rules, arch);
}

/* Whether all that the rules say is saved lies in what the prologue took, or above. */
static bool has_room(const struct sf_prologue *prologue, const struct sf_rules *rules,
		     const struct sf_arch *arch)
{
	for (unsigned i = 0; i < arch->n_saved; i++) {
		if (rules->saved[i].how == SF_HOW_AT_CFA &&
		    rules->saved[i].value < -16 - (int64_t)prologue->size)
			return false;
	}
	return true;
}

/* Where the frame can end at first. Where the stack is not aligned there is more of it. */
static void find_first_cfa(struct search *search)
{
	const struct sf_arch *arch = search->cursor->still->arch;
	struct sf_prologue *prologue = &search->prologue;
	const uint64_t cfa = search->cursor->regs.r[arch->sp] + prologue->size + 16;

	search->first_cfa = (cfa + STACK_ALIGN - 1) & ~(uint64_t)(STACK_ALIGN - 1);
	if (search->first_cfa != cfa || !has_room(prologue, search->rules, arch))
		prologue->is_fixed = false;
}

static bool start_search(struct search *search, const struct sf_cursor *cursor,
			 const struct sf_region *region)
{
	const struct sf_arch *arch = cursor->still->arch;
	const uint64_t pc = cursor->regs.pc, address = pc - region->bias - !cursor->exact;
	const struct sf_rules *rules = sf_table_find(region->table, address);
	uint64_t pushed, framed;

	*search = (struct search){
		.cursor = cursor,
		.region = region,
		.outside = sf_reader_outside(&cursor->still->memory),
		.rules = rules,
	};
	/*
	 * Where a thread stands in a page fault, its function may be about to return: sp is above.
	 */
	if (cursor->exact && cursor->still->syscall < 0)
		return false;
	if (!rules || !is_cfa(rules, arch->fp, 16) ||
	    !find_framed(region->table, arch, address, &pushed, &framed) ||
	    !arch->prologue(&search->outside, pushed + region->bias, framed + region->bias, pc,
			    &search->prologue))
		return false;
	find_first_cfa(search);
	return search->first_cfa > cursor->regs.r[arch->sp];
}

/* The relation of the call instruction before pc to the function. */
enum call {
	NO_CALL,
	CALLS_IT,   /* itself, or through a PLT stub that jumps there */
	CALLS_ANY,  /* it may: indirect, by a jump, the kernel of a signal's handler */
	CALLS_OTHER,
};

/* `certain`: only this word can be the return address, so more conditions must hold. */
static enum call call_before(const struct search *search, uint64_t pc, bool certain)
{
	const struct sf_still *still = search->cursor->still;
	const struct sf_reader *outside = &search->outside;
	const uint64_t start = search->prologue.start;
	uint64_t target, slot, value;

	if (!sf_frame_region(still, pc, false))
		return NO_CALL;
	if (certain && still->arch->is_sigreturn(outside, pc))
		return CALLS_ANY;
	if (!still->arch->is_behind_call(outside, pc, &target))
		return NO_CALL;
	if (target == start)
		return CALLS_IT;
	if (target == 0)
		return CALLS_ANY;
	if (still->arch->jump_slot(outside, target, &slot) &&
	    sf_read_u64(outside, slot, &value) && value == start)
		return CALLS_IT;
	return certain && still->arch->jumps_to(outside, target, start) ? CALLS_ANY : CALLS_OTHER;
}

/* The caller, if the CFA is this. */
static bool step_with(const struct search *search, uint64_t cfa, struct sf_cursor *ret)
{
	enum sf_end why;

	*ret = *search->cursor;
	sf_reg_set(&ret->regs, ret->still->arch->fp, cfa - (uint64_t)search->rules->cfa.value);
	return sf_step_rows(ret, search->region, &why) == SF_STEP_TAKEN;
}

enum verdict { WRONG, UNKNOWN, RIGHT };

/* The caller's caller: behind a call, or in a signal's trampoline. */
static bool can_be_caller(const struct sf_cursor *cursor)
{
	const struct sf_still *still = cursor->still;
	const struct sf_reader code = sf_reader_outside(&still->memory);
	uint64_t target;

	return sf_frame_region(still, cursor->regs.pc, false) &&
	       (still->arch->is_behind_call(&code, cursor->regs.pc, &target) ||
		still->arch->is_sigreturn(&code, cursor->regs.pc));
}

/* A frame pointer that the caller needs, and that is none of a frame above. */
static bool is_lost(const struct sf_cursor *caller, const struct sf_rules *rules)
{
	const struct sf_arch *arch = caller->still->arch;
	const uint64_t fp = caller->regs.r[arch->fp];

	return is_cfa(rules, arch->fp, 16) && sf_reg_known(&caller->regs, arch->fp) &&
	       (fp < caller->regs.r[arch->sp] || fp % STACK_ALIGN != 0);
}

/* A signal's trampoline: whether what it returns to is code. */
static enum verdict judge_trampoline(const struct sf_cursor *caller, const struct sf_region *region)
{
	struct sf_cursor next = *caller;
	enum sf_end why;

	return sf_step_sigreturn(&next, region, &why) == SF_STEP_TAKEN &&
	       sf_frame_region(next.still, next.regs.pc, true) ? RIGHT : WRONG;
}

/* Whether the caller's own frame can be left. That it has no return address (0) says little. */
static enum verdict judge(const struct sf_cursor *caller)
{
	const struct sf_region *region = sf_frame_region(caller->still, caller->regs.pc, false);
	const struct sf_rules *rules =
		region && region->table ?
			sf_table_find(region->table, caller->regs.pc - region->bias - 1) :
			NULL;
	struct sf_cursor next = *caller;
	enum sf_end why;

	if (sf_is_sigreturn(caller->still, caller->regs.pc))
		return judge_trampoline(caller, region);
	if (!rules)
		return UNKNOWN;
	if (is_lost(caller, rules))
		return WRONG;
	switch (sf_step_rows(&next, region, &why)) {
	case SF_STEP_ROOT:
		return rules->ra.how == SF_HOW_UNDEFINED ? RIGHT : UNKNOWN;
	case SF_STEP_NOT_MINE:
		return UNKNOWN;
	case SF_STEP_FAILED:
		return why == SF_END_REGISTER || why == SF_END_COPY ? UNKNOWN : WRONG;
	case SF_STEP_TAKEN:
		break;
	}
	return can_be_caller(&next) ? RIGHT : WRONG;
}

/*
 * A call of another function, in a frame whose rules lead to a caller. It may well be the real caller
 * (its target jumped here), and the word that was proven further up may be a leftover. At the lowest
 * possible position of the frame's end, no further condition is checked.
 */
static bool is_rival(const struct search *search, uint64_t cfa)
{
	struct sf_cursor caller;

	return cfa == search->first_cfa ||
	       (search->n_found == 0 && step_with(search, cfa, &caller) && judge(&caller) == RIGHT);
}

static bool is_certain(const struct search *search, uint64_t cfa)
{
	return cfa == search->first_cfa && search->prologue.is_fixed;
}

/* A word of the stack as the return address. False: the search is over. */
static bool check_word(struct search *search, uint64_t cfa, uint64_t pc)
{
	const bool certain = is_certain(search, cfa);
	struct sf_cursor caller;
	enum verdict verdict;
	enum call call;

	if (!sf_code_map_find(search->cursor->still->map, pc - 1))
		return true;
	if (search->n_calls++ == MAX_CALLS) {
		search->n_found = 0;
		return false;
	}
	call = call_before(search, pc, certain);
	if (call == NO_CALL)
		return true;
	if (call == CALLS_OTHER || (call == CALLS_ANY && !certain))
		return !is_rival(search, cfa);
	if (!step_with(search, cfa, &caller))
		return true;
	verdict = judge(&caller);
	if (verdict == WRONG || (verdict == UNKNOWN && (call == CALLS_ANY || !certain)))
		return call == CALLS_IT;
	search->caller = caller;
	search->n_found++;
	return !certain && search->n_found < 2;
}

/* Every place above where the frame can end, in pieces, as far as the stack can be read. */
static void search_stack(struct search *search)
{
	const struct sf_reader *memory = &search->cursor->still->memory;
	const uint64_t end = search->first_cfa + MAX_STACK;
	uint64_t words[CHUNK];

	for (uint64_t cfa = search->first_cfa; cfa < end; cfa += sizeof(words)) {
		unsigned n = CHUNK;

		while (n != 0 && !sf_read(memory, words, cfa - 8, n * sizeof(words[0])))
			n /= 2;
		for (unsigned i = 0; i < n; i += STACK_ALIGN / sizeof(words[0])) {
			if (!check_word(search, cfa + i * sizeof(words[0]), words[i]))
				return;
		}
		if (n < CHUNK)
			return;
	}
}

enum sf_step sf_step_inferred(struct sf_cursor *cursor, const struct sf_region *region,
			      enum sf_end *why)
{
	struct search search;

	*why = SF_END_REGISTER;
	if (!region || !region->table || !cursor->still->arch->prologue ||
	    !start_search(&search, cursor, region))
		return SF_STEP_FAILED;
	search_stack(&search);
	if (search.n_found != 1)
		return SF_STEP_FAILED;
	*cursor = search.caller;
	cursor->via = SF_VIA_INFERRED;
	return SF_STEP_TAKEN;
}
