/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows the chain (chain.h), and finds what it lacks.
 *
 * The kernel has no proof of a frame, and does not see a function that has made none. So only Go's code is believed, whose functions
 * keep the frame pointer, and only return addresses behind a call.
 *
 * The chain lacks the function that called systemstack: that function's record has the return address into its own caller. So the
 * function is the one that is called there. Below morestack the chain lacks two functions: the one whose stack grows, which has made no
 * record yet, and its caller. newstack, which morestack calls, keeps the return address into that caller in its frame (morebuf).
 */
#include "frozen/unwind/chain.h"

#include "frozen/frozen.h"

#define WORD 8
#define MAX_SEARCHED 4096           /* bytes of a stack in which a return address is looked for */
#define ALIGNMENT 32                /* of Go's functions (Go: cmd/link/internal/amd64, funcAlign); what is found is proven in other ways */
#define INSIDE 2                    /* a return address in a function's first line, other than goexit's */
#define MAX_FUNCTION 16384          /* bytes of code in which a call is looked for */

/* --- along the chain --- */

static const uint64_t *chain_end(const struct sf_still *still)
{
	return still->chain + still->n_chain;
}

/* The cursor's own address: the walk goes on behind it. */
static bool find_in_chain(struct sf_cursor *cursor)
{
	const struct sf_still *still = cursor->still;

	cursor->chain = still->chain;
	while (cursor->chain && cursor->chain < chain_end(still)) {
		if (*cursor->chain++ == cursor->regs.pc)
			return true;
	}
	cursor->chain = NULL;
	return false;
}

static bool next_of_chain(const struct sf_cursor *cursor, uint64_t *ret)
{
	if (!cursor->chain || cursor->chain == chain_end(cursor->still))
		return false;
	*ret = *cursor->chain;
	return true;
}

/* With no register known. */
static enum sf_step take(struct sf_cursor *cursor, uint64_t pc)
{
	cursor->regs.pc = pc;
	cursor->regs.known = 0;
	cursor->passed = 0;
	cursor->exact = false;
	cursor->via = SF_VIA_CHAIN;
	return SF_STEP_TAKEN;
}

static bool is_in_go(const struct sf_still *still, uint64_t pc)
{
	const struct sf_region *region = sf_frame_region(still, pc, false);

	return region && region->table && region->table->header->flags & SF_TABLE_GO;
}

/* The first frame of a goroutine is behind no call, and its address was stored there by hand: the caller of its first function. */
enum sf_step sf_step_chain(struct sf_cursor *cursor, const struct sf_region *region, enum sf_end *why)
{
	const struct sf_reader code = sf_reader_outside(&cursor->still->memory);
	const uint64_t lacking = cursor->lacking;
	uint64_t pc, target;

	(void)region;
	if (!cursor->chain)
		return SF_STEP_NOT_MINE;
	cursor->lacking = 0;
	if (lacking)
		return take(cursor, lacking);
	*why = SF_END_OTHER_STACK;
	if (!next_of_chain(cursor, &pc) || !is_in_go(cursor->still, pc) ||
	    !(cursor->still->arch->is_behind_call(&code, pc, &target) || sf_is_goexit(cursor->still, pc)))
		return SF_STEP_FAILED;
	cursor->chain++;
	return take(cursor, pc);
}

enum sf_step sf_chain_follow(struct sf_cursor *cursor, enum sf_end *why)
{
	cursor->trace->lacks_chain = *why == SF_END_OTHER_STACK && !cursor->still->chain;
	return *why == SF_END_OTHER_STACK && find_in_chain(cursor) ? sf_step_chain(cursor, NULL, why) : SF_STEP_FAILED;
}

/* --- what it lacks --- */

static bool begins_function(const struct sf_row_range *row)
{
	return row->start % ALIGNMENT == 0 && row->rules->cfa.value == WORD;
}

/* The function at `address`: of its code as much as is searched. Addresses are as in the file. */
static void find_in_table(const struct sf_table *table, uint64_t address, uint64_t *start_ret, uint64_t *end_ret)
{
	struct sf_row_range row;

	*start_ret = *end_ret = address;
	while (address - *start_ret < MAX_FUNCTION && sf_table_range(table, *start_ret, &row)) {
		*start_ret = row.start;
		if (begins_function(&row) || row.start == 0)
			break;
		*start_ret -= 1;
	}
	while (*end_ret - address < MAX_FUNCTION && sf_table_range(table, *end_ret, &row) &&
	       (row.start <= address || !begins_function(&row)))
		*end_ret = row.end;
	if (*end_ret - address > MAX_FUNCTION)
		*end_ret = address + MAX_FUNCTION;
}

/* Where the code of the function at `address` begins and ends, as far as is searched. False: no file has rules for it. */
static bool find_function(const struct sf_still *still, uint64_t address, uint64_t *start_ret, uint64_t *end_ret)
{
	const struct sf_region *region = sf_frame_region(still, address, true);

	if (!region || !region->table)
		return false;
	find_in_table(region->table, address - region->bias, start_ret, end_ret);
	*start_ret += region->bias;
	*end_ret += region->bias;
	return true;
}

/*
 * Where the function at `address` called the one that begins at `here`. Where its code has several calls of that, which of them it was
 * is not known: then the function is shown at its start. `or_jumps`: also calls of code that only jumps there.
 */
static bool find_call_in(const struct sf_still *still, uint64_t address, uint64_t here, bool or_jumps, uint64_t *ret)
{
	const struct sf_reader code = sf_reader_outside(&still->memory);
	uint64_t start, end;

	if (!still->arch->find_call || !find_function(still, address, &start, &end))
		return false;
	*ret = still->arch->find_call(&code, start, end, here, or_jumps);
	if (*ret && still->arch->find_call(&code, *ret, end, here, or_jumps))
		*ret = start + INSIDE;
	return *ret;
}

/* The function that called this one made its record before. So the next address of the chain is in its own caller, behind the call of it. */
static bool find_called_there(const struct sf_cursor *cursor, uint64_t here, uint64_t next, uint64_t *ret)
{
	const struct sf_reader code = sf_reader_outside(&cursor->still->memory);
	uint64_t target;

	return cursor->still->arch->is_behind_call(&code, next, &target) && target && find_call_in(cursor->still, target, here, false, ret);
}

/*
 * A goroutine's first function was called by nobody. Its record is read, later than the sample was taken: if it has the return address
 * of then, it is that function's still. Below it is the return address of whatever call the function is in now.
 */
static bool find_first_function(const struct sf_cursor *cursor, uint64_t here, uint64_t fp, uint64_t next, uint64_t *ret)
{
	struct sf_still late = *cursor->still;
	struct sf_cursor from = *cursor, inside;
	uint64_t address, target;

	late.memory = sf_reader_outside(&cursor->still->memory);
	from.still = &late;
	if (!sf_is_goexit(&late, next) || !sf_read_u64(&late.memory, fp + WORD, &address) || address != next)
		return false;
	for (uint64_t below = WORD; below <= MAX_SEARCHED; below += WORD) {
		if (!sf_go_stand_behind_call(&from, fp - below, fp, &target, &inside))
			continue;
		address = inside.regs.pc;
		if (sf_go_steps_to_record(&inside, fp) && find_call_in(&late, address, here, false, ret))
			return true;
	}
	return false;
}

/* Whether a call that returns to `pc`, with the stack pointer `sp`, was made by a function whose record is at `fp`. */
static bool has_record(const struct sf_still *still, uint64_t pc, uint64_t sp, uint64_t fp)
{
	const struct sf_region *region = sf_frame_region(still, pc, true);
	struct sf_row_range row;

	return region && region->table && sf_table_range(region->table, pc - region->bias - 1, &row) &&
	       row.rules->cfa.how == SF_HOW_REGISTER_PLUS && row.rules->cfa.reg == still->arch->sp &&
	       sp + (uint64_t)row.rules->cfa.value == fp + 2 * WORD;
}

/*
 * For morestack, which begins at `here`. The function whose stack grows was called by the one that has its record at `fp` and its own
 * return address at `next`. Searches the frame of newstack for the return address of that call: *into_ret. It is in the function that is
 * called at `next`, or behind a stack pointer (Go: runtime/runtime2.go, gobuf) from which the record is reached. *pc_ret: where the
 * function whose stack grows called morestack.
 */
static bool find_grown(const struct sf_cursor *cursor, uint64_t here, uint64_t fp, uint64_t next, uint64_t *pc_ret, uint64_t *into_ret)
{
	const struct sf_still *still = cursor->still;
	const struct sf_reader code = sf_reader_outside(&still->memory);
	const uint64_t top = cursor->regs.r[still->arch->sp], from = cursor->trace->frames[cursor->trace->n_frames - 2].sp;
	uint64_t caller = 0, start, end = 0, called, before = 0;

	if (!still->arch->is_behind_call(&code, next, &caller) || (caller && !find_function(still, caller, &start, &end)))
		return false;
	for (uint64_t at = from; at < top && at - from < MAX_SEARCHED && sf_read_u64(&still->memory, at, into_ret); at += WORD) {
		if (((*into_ret > caller && *into_ret <= end) || has_record(still, *into_ret, before, fp)) &&
		    still->arch->is_behind_call(&code, *into_ret, &called) && called && find_call_in(still, called, here, true, pc_ret))
			return true;
		before = *into_ret;
	}
	return false;
}

/* systemstack calls through a register; morestack calls newstack. */
static bool find_lacking(struct sf_cursor *cursor, const struct sf_region *region, uint64_t fp, uint64_t *pc_ret)
{
	const struct sf_reader code = sf_reader_outside(&cursor->still->memory);
	struct sf_row_range row;
	uint64_t target, next, here;

	if (cursor->exact || cursor->trace->n_frames < 2 || !next_of_chain(cursor, &next) ||
	    !cursor->still->arch->is_behind_call(&code, cursor->regs.pc, &target) ||
	    !sf_table_range(region->table, cursor->regs.pc - region->bias - 1, &row))
		return false;
	here = row.start + region->bias;
	return target ? find_grown(cursor, here, fp, next, pc_ret, &cursor->lacking)
		      : find_called_there(cursor, here, next, pc_ret) || find_first_function(cursor, here, fp, next, pc_ret);
}

enum sf_step sf_chain_cross(struct sf_cursor *cursor, const struct sf_region *region, uint64_t fp)
{
	uint64_t pc;

	cursor->trace->lacks_chain = !cursor->still->chain;
	if (find_in_chain(cursor) && find_lacking(cursor, region, fp, &pc))
		return take(cursor, pc);
	cursor->chain = NULL;
	cursor->lacking = 0;
	return SF_STEP_FAILED;
}
