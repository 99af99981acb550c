/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a function is left, from its code behind pc: struct sf_exit. Signal-safe. The instructions are followed from pc
 * on, one way after another: where there is a choice, first on behind it, and later to where it jumps. Their effects on
 * sp are added up. At a return, sp points to the return address; so it does where a function begins, by a jump, too. So
 * the sum says where that is now. The first way that shows this counts.
 */
#include <string.h>

#include "frozen/arch_x86_64.h"
#include "frozen/code_x86_64.h"
#include "frozen/reader.h"

#include "frozen/frozen.h"

#define MAX_INSTRUCTIONS 6144 /* on all ways. An inverse transform of 32 by 32 for VP9 has 1,542, and musl's printf has 24 jumps in 300. So many take 65 us */
#define MAX_WAYS 64
#define MAX_OPEN 32
#define MAX_PLACE (1 << 28) /* bytes from sp: numbers in code that is none may be larger */
#define RBX 3 /* its DWARF number */

/* One way through the code, and what its instructions did since pc. Walks may be on the program's own stack, so it is small. */
struct way {
	uint64_t pc;
	int32_t taken;       /* from sp */
	int32_t saved_fp;    /* bytes above sp at the start; below 0: not saved */
	int32_t pushed_fp;   /* what was taken when fp had been pushed */
	int32_t copied, copy; /* what was taken when a word was pushed that had lain so many bytes above sp at the start */
	int32_t kept_sp;
	bool has_pushed_fp;
	bool has_copied;
	bool has_stored_fp;  /* at sp, as a record's first half */
	bool has_called;     /* a call may not come back: what follows may be another function */
	bool has_jumped;
	bool has_lost_sp;    /* it was set to something unknown, as alloca does */
	bool has_loaded_sp;  /* sp is the old one, which lay `kept_sp` bytes above sp at the start. `taken` and `saved_fp` count from there */
};

struct search {
	const struct sf_reader *reader;
	uint8_t code[SF_X86_CHUNK];
	uint64_t code_start;
	size_t code_size;
	uint64_t start;
	struct way open[MAX_OPEN];
	int32_t begun[MAX_WAYS]; /* where ways that began at a jump's target did, from `start` */
	unsigned n_open, n_begun;
	bool has_guess;
	struct sf_exit guess;
};

enum progress { GOES_ON, FOUND, ENDS };

static enum progress found(struct sf_exit *ret, struct sf_exit exit)
{
	*ret = exit;
	return FOUND;
}

static bool is_near(int32_t place)
{
	return place > -MAX_PLACE && place < MAX_PLACE;
}

static struct sf_exit exit_by_sp(const struct way *way, int32_t size)
{
	const bool is_saved = way->saved_fp >= 0 && way->saved_fp < size;

	return (struct sf_exit){
		.is_kept = way->has_loaded_sp, .kept_sp = way->kept_sp,
		.size = size, .saved_fp = is_saved ? way->saved_fp : -1,
	};
}

/* sp points to the return address here. */
static enum progress returns(const struct way *way, struct sf_exit *ret)
{
	*ret = exit_by_sp(way, -way->taken);
	return !way->has_lost_sp && way->taken <= 0 ? FOUND : ENDS;
}

/* A frame is made: the function begins, perhaps another one, to which this one jumps, behind a copy of the return address. */
static enum progress begins(const struct way *way, struct sf_exit *ret)
{
	const int32_t before = way->taken - 8;

	if (way->has_stored_fp) /* a record for the next function: this one has its own */
		return found(ret, (struct sf_exit){ .is_by_fp = true });
	if (way->has_called || way->has_lost_sp || way->has_loaded_sp)
		return ENDS;
	if (!way->has_pushed_fp && way->taken == 0 && !way->has_jumped) /* behind push %rbp */
		return found(ret, (struct sf_exit){ .size = 8, .saved_fp = 0 });
	if (!way->has_pushed_fp || way->pushed_fp != way->taken)
		return ENDS;
	if (way->has_copied && way->copied == before) {
		*ret = exit_by_sp(way, way->copy);
		return way->copy >= 0 ? FOUND : ENDS;
	}
	*ret = exit_by_sp(way, -before);
	return before <= 0 ? FOUND : ENDS;
}

/*
 * Code that aligns its stack keeps its old sp there, as that of libvpx and dav1d does. An old sp that lies below pc's sp was
 * pushed behind pc.
 */
static enum progress loads_sp(struct way *way, int32_t place)
{
	const int32_t at = place - way->taken;

	if (way->has_lost_sp || way->has_loaded_sp || at < 0 || way->saved_fp >= 0)
		return ENDS;
	way->has_loaded_sp = true;
	way->kept_sp = at;
	way->taken = 0;
	way->has_pushed_fp = way->has_copied = false;
	return GOES_ON;
}

/* SBCL: the caller has stored its frame pointer where fp points, and the function puts its return address behind it. */
static enum progress completes(const struct way *way, struct sf_exit *ret)
{
	*ret = (struct sf_exit){ .is_half = true, .size = -way->taken, .saved_fp = -1 };
	return !way->has_called && !way->has_lost_sp && !way->has_loaded_sp && way->taken <= 0 ? FOUND : ENDS;
}

/* Where a way begins that was not gone so far. */
static bool is_new(struct search *search, uint64_t pc)
{
	const int64_t distance = (int64_t)(pc - search->start);

	for (unsigned i = 0; i < search->n_begun; i++) {
		if (search->begun[i] == distance)
			return false;
	}
	if (search->n_begun == MAX_WAYS || distance != (int32_t)distance)
		return false;
	search->begun[search->n_begun++] = (int32_t)distance;
	return true;
}

static void branch(struct search *search, const struct way *way, uint64_t target)
{
	if (search->n_open < MAX_OPEN && is_new(search, target)) {
		search->open[search->n_open] = *way;
		search->open[search->n_open].has_jumped = true;
		search->open[search->n_open++].pc = target;
	}
}

/* A jump to an unknown place goes to another function, or to one of the cases of a switch. */
static enum progress jump(struct search *search, struct way *way, const struct sf_x86_instruction *now, uint64_t next)
{
	uint64_t target = next + (uint64_t)(int64_t)now->distance;

	if (now->is_slot && !sf_read_u64(search->reader, target, &target))
		return ENDS;
	if (now->has_target || now->is_slot) {
		way->pc = target;
		way->has_jumped = true;
		return is_new(search, target) ? GOES_ON : ENDS;
	}
	if (now->value && !search->has_guess && returns(way, &search->guess) == FOUND) {
		search->has_guess = search->guess.is_guess = true;
		search->guess.jump = next;
	}
	return ENDS;
}

size_t sf_x86_read_code(const struct sf_reader *reader, uint64_t pc, uint8_t code[SF_X86_CHUNK])
{
	size_t n = 0;

	if (sf_read(reader, code, pc, SF_X86_CHUNK))
		return SF_X86_CHUNK;
	for (size_t more = SF_X86_CHUNK / 2; more; more /= 2)
		n += sf_read(reader, code + n, pc + n, more) ? more : 0;
	return n;
}

/* The code at pc, of which `wanted` bytes are at hand if there are so many. */
static const uint8_t *code_at(struct search *search, uint64_t pc, size_t wanted, size_t *size_ret)
{
	const uint64_t at = pc - search->code_start;
	const bool is_there = at < search->code_size && search->code_size - at >= wanted;

	if (!is_there) {
		search->code_start = pc;
		search->code_size = sf_x86_read_code(search->reader, pc, search->code);
	}
	*size_ret = is_there ? search->code_size - at : search->code_size;
	return search->code + (is_there ? at : 0);
}

static bool decode(struct search *search, uint64_t pc, struct sf_x86_instruction *ret)
{
	size_t size;
	const uint8_t *code = code_at(search, pc, SF_X86_MAX_SIZE, &size);

	return sf_x86_decode(code, size, ret);
}

static bool pops_return(struct search *search, uint64_t pc)
{
	size_t size;
	const uint8_t *code = code_at(search, pc, SF_X86_GIVES_BACK, &size);

	return sf_x86_pops_return(code, size);
}

static bool holds_return(struct search *search, uint64_t pc, struct sf_exit *ret)
{
	size_t size;
	const uint8_t *code = code_at(search, pc, SF_X86_GIVES_BACK, &size);

	return sf_x86_holds_return(code, size, ret);
}

/* pop %rsp, where the frame pointer leads to the old sp: libjpeg-turbo's functions align their frame pointer with their stack. */
static bool pops_sp(const struct sf_reader *reader, uint64_t pc)
{
	uint8_t code;

	return sf_read(reader, &code, pc, sizeof(code)) && code == 0x5c;
}

static enum progress follow(struct search *search, struct way *way, const struct sf_x86_instruction *now, struct sf_exit *ret)
{
	const uint64_t next = way->pc + now->size;

	if (!is_near(now->value) || !is_near(way->taken))
		return ENDS;
	switch (now->effect) {
	case SF_X86_PLAIN:
		break;
	case SF_X86_STORE_FP:
		way->has_stored_fp = true;
		break;
	case SF_X86_PUSH_FP:
		way->taken += 8;
		way->has_pushed_fp = true;
		way->pushed_fp = way->taken;
		break;
	case SF_X86_PUSH_COPY:
		way->copy = now->value - way->taken;
		way->taken += 8;
		way->has_copied = true;
		way->copied = way->taken;
		break;
	case SF_X86_PUSH:
		if (now->value == -8 && pops_return(search, way->pc))
			return returns(way, ret);
		way->taken += now->value;
		break;
	case SF_X86_POP_FP:
		way->saved_fp = -way->taken;
		way->taken -= 8;
		break;
	case SF_X86_LOAD_FP:
		way->saved_fp = now->value - way->taken;
		break;
	case SF_X86_SET_FP:
		return begins(way, ret);
	case SF_X86_TO_FP:
		return found(ret, (struct sf_exit){ .is_by_fp = true, .is_ahead = pops_sp(search->reader, next) });
	case SF_X86_LEAVE:
	case SF_X86_RESTORE_FP: /* in V8's code, before it jumps to another function in place of a return */
		return found(ret, (struct sf_exit){ .is_by_fp = true });
	case SF_X86_POP_RETURN:
		return completes(way, ret);
	case SF_X86_RETURN:
		return returns(way, ret);
	case SF_X86_CALL:
		way->has_called = true;
		break;
	case SF_X86_BRANCH:
		branch(search, way, next + (uint64_t)(int64_t)now->distance);
		break;
	case SF_X86_JUMP:
		return jump(search, way, now, next);
	case SF_X86_LOAD_SP:
		way->pc = next;
		return loads_sp(way, now->value);
	case SF_X86_OTHER_SP:
		way->has_lost_sp = true;
		break;
	}
	way->pc = next;
	return GOES_ON;
}

/* Code that makes a record for the function that it calls next, without the return address, as SBCL's does. */
static const uint8_t makes_record[] = { 0x48, 0x89, 0x2c, 0x24, 0x48, 0x8b, 0xec }; /* mov %rbp, (%rsp); mov %rsp, %rbp */
#define RECORD_HALF 4 /* bytes of the first instruction */
#define TO_CALL 32    /* bytes from there to the call */

/*
 * Places in SBCL's code at which sums do not lead to the record: the code around pc, of which so many bytes lie before pc, and
 * the exit there. At most RECORD_HALF bytes lie from pc on.
 */
static const struct {
	uint8_t code[9], size, before;
	struct sf_exit exit;
} places[] = {
	/* push -8(%rbx); ret: several values are returned. The frame pointer is the caller's already. */
	{ { 0xff, 0x73, 0xf8, 0xc3 }, 4, 0, { .is_by_fp = true, .behind = RBX } },
	/* push 8(%rbp); here jmp *-3(%rax): another function is called in place of a return. It gets this one's record. */
	{ { 0xff, 0x75, 0x08, 0xff, 0x60, 0xfd }, 6, 3, { .is_by_fp = true } },
	/* mov %rbp, (%r9); mov %r9, %rbp; here call *-3(%rax): arguments lie on the stack, behind the next function's record. */
	{ { 0x49, 0x89, 0x29, 0x49, 0x8b, 0xe9, 0xff, 0x50, 0xfd }, 9, 6, { .is_by_fp = true, .is_ahead = true } },
};

/* Whether pc is one of them: `code` is what lies there. */
static bool is_such_a_place(const uint8_t *code, struct sf_exit *ret)
{
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		unsigned same = 0;

		while (same < places[i].size && (code - places[i].before)[same] == places[i].code[same])
			same++;
		*ret = places[i].exit;
		if (same == places[i].size)
			return true;
	}
	return false;
}

/* Whether the instructions from `code` on end at `end`, and none of them leaves this code. */
static bool is_straight(const uint8_t *code, const uint8_t *end)
{
	struct sf_x86_instruction next = { 0 };

	while (code < end && next.effect != SF_X86_CALL && next.effect != SF_X86_JUMP && next.effect != SF_X86_RETURN &&
	       sf_x86_decode(code, (size_t)(end - code), &next))
		code += next.size;
	return code == end && next.effect != SF_X86_CALL;
}

/* Whether pc is behind both instructions, and before the call; or between them; or at one of the places above. */
static bool is_in_record(const struct sf_reader *reader, uint64_t pc, struct sf_exit *ret)
{
	uint8_t code[TO_CALL + RECORD_HALF];
	const uint8_t *end = code + TO_CALL;

	if (!sf_read(reader, code, pc - TO_CALL, sizeof(code)))
		return false;
	if (is_such_a_place(end, ret))
		return true;
	*ret = (struct sf_exit){ .is_by_fp = true };
	if (memcmp(end - RECORD_HALF, makes_record, sizeof(makes_record)) == 0)
		return true;
	ret->is_ahead = true;
	for (const uint8_t *at = code; at + sizeof(makes_record) <= end; at++) {
		if (memcmp(at, makes_record, sizeof(makes_record)) == 0 && is_straight(at, end))
			return true;
	}
	return false;
}

/* At a call of a function that completes its record: that has been made. */
static bool is_at_such_a_call(struct search *search, uint64_t pc, struct sf_exit *ret)
{
	static const uint8_t completes_record[] = { 0x8f, 0x45, 0x08 }; /* pop 8(%rbp) */
	uint8_t code[sizeof(completes_record)];
	struct sf_x86_instruction now;

	*ret = (struct sf_exit){ .is_by_fp = true, .is_ahead = true };
	return decode(search, pc, &now) && now.effect == SF_X86_CALL && now.has_target &&
	       sf_read(search->reader, code, pc + now.size + (uint64_t)(int64_t)now.distance, sizeof(code)) &&
	       memcmp(code, completes_record, sizeof(code)) == 0;
}

bool sf_x86_find_exit(const struct sf_reader *reader, uint64_t pc, struct sf_exit *ret)
{
	struct search search = { .reader = reader, .start = pc, .n_open = 1 };
	unsigned left = MAX_INSTRUCTIONS;
	struct sf_x86_instruction now;

	if (is_in_record(reader, pc, ret) || is_at_such_a_call(&search, pc, ret) || holds_return(&search, pc, ret))
		return true;
	search.open[0] = (struct way){ .pc = pc, .saved_fp = -1 };
	while (search.n_open && left) {
		struct way way = search.open[--search.n_open];
		enum progress progress = GOES_ON;

		for (; left && progress == GOES_ON && decode(&search, way.pc, &now); left--)
			progress = follow(&search, &way, &now, ret);
		if (progress == FOUND)
			return true;
	}
	*ret = search.guess;
	return search.has_guess;
}
