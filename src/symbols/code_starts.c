/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the code of one segment around an address, and follows code from known starts of functions (code_starts.h).
 *
 * A jump from one function to the inside of another one is a tail call, or goes to a part that the compiler has moved
 * away: what it leads to is a start of its own. So no function is entered but at its start, and all code between a
 * start and the next one that is reached at all is reached from that start.
 */
#include "symbols/code_starts.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "frozen/code_x86_64.h"

/* --- the code of one segment around an address --- */

#define ALIGNMENT 16       /* of functions, where the linker fills up with nops */
#define MAX_STRAIGHT 4096  /* bytes of code that goes on without a jump */
#define MAX_JUMP 4096      /* bytes, forward; a longer one leads to another function */
#define MAX_FUNCTION 65536 /* bytes of a function without symbols and call frame information */
#define INT3 0xcc

bool sf_code_segment_read(struct sf_code_segment *ret, const struct sf_elf *elf, uint64_t address)
{
	GElf_Phdr header;
	Elf_Data *data;

	*ret = (struct sf_code_segment){ 0 };
	if (elf->arch != &sf_arch_x86_64 || !sf_elf_find_loaded(elf, address, PF_X, &header))
		return false;
	data = elf_getdata_rawchunk(elf->elf, (int64_t)header.p_offset, header.p_filesz, ELF_T_BYTE);
	if (data)
		*ret = (struct sf_code_segment){ .base = header.p_vaddr, .size = data->d_size, .bytes = data->d_buf };
	return data;
}

static bool is_in_segment(const struct sf_code_segment *code, uint64_t address)
{
	return address - code->base < code->size;
}

/* False also outside the segment, and where the instruction is not known. */
static bool decode(const struct sf_code_segment *code, uint64_t address, struct sf_x86_instruction *ret)
{
	const uint64_t at = address - code->base;

	return is_in_segment(code, address) && sf_x86_decode(code->bytes + at, code->size - at, ret);
}

bool sf_code_goes_on(const struct sf_code_segment *code, uint64_t from, uint64_t to)
{
	struct sf_x86_instruction now;

	if (to < from || to - from > MAX_STRAIGHT)
		return false;
	while (decode(code, from, &now)) {
		if (to - from < now.size)
			return true;
		if (now.effect == SF_X86_RETURN || now.effect == SF_X86_JUMP)
			return false;
		from += now.size;
	}
	return false;
}

/* `end`: how far the function reaches at least, by its jumps. */
static void extend(const struct sf_x86_instruction *now, uint64_t next, uint64_t *end)
{
	const bool jumps = now->effect == SF_X86_JUMP || now->effect == SF_X86_BRANCH;

	if (jumps && now->has_target && !now->is_slot && now->distance > 0 && now->distance <= MAX_JUMP &&
	    next + (uint64_t)now->distance >= *end)
		*end = next + (uint64_t)now->distance + 1;
}

bool sf_code_ends_before(const struct sf_code_segment *code, uint64_t from, uint64_t to)
{
	struct sf_x86_instruction now;
	uint64_t end = from;

	if (to < from || to - from > MAX_FUNCTION)
		return true;
	while (from < to && decode(code, from, &now)) {
		from += now.size;
		extend(&now, from, &end);
		/* A jump to where a register points may be a switch: its cases follow. */
		if (from >= end && (now.effect == SF_X86_RETURN || (now.effect == SF_X86_JUMP && now.has_target)))
			return from <= to;
	}
	return false;
}

/*
 * lld fills up with int3 between functions. One may be a byte of an instruction. Code that keeps frame pointers begins
 * with push %rbp and mov %rsp, %rbp, and inside a function that is rarely aligned.
 */
static bool is_padded_start(const uint8_t *code)
{
	return (code[-1] == INT3 && code[-2] == INT3) || memcmp(code, "\x55\x48\x89\xe5", 4) == 0;
}

/*
 * The start of the function at `address` as linkers and compilers align functions: behind int3 instructions, or where a
 * frame pointer is set up. 0: it is not seen, or that function ends before `address`.
 */
static uint64_t start_by_padding(const struct sf_code_segment *code, uint64_t address)
{
	uint64_t at;

	if (!is_in_segment(code, address) || code->size - (address - code->base) < 4)
		return 0;
	for (at = address & ~(uint64_t)(ALIGNMENT - 1); at >= code->base + 2 && address - at <= MAX_FUNCTION; at -= ALIGNMENT) {
		if (is_padded_start(code->bytes + (at - code->base)))
			return sf_code_ends_before(code, at, address) ? 0 : at;
	}
	return 0;
}

/* --- starts from the code itself --- */

#define MAX_CODE ((uint64_t)64 << 20) /* bytes of a segment; half a second's work */
#define MAX_ROUNDS 16                 /* until jumps lead to starts only */
#define ENTRY_SIZE 64                 /* bytes of _start */

struct edge {
	uint64_t from, to;
};

struct search {
	struct sf_code_starts *of;
	SF_VEC(uint64_t) open;      /* where code goes on, not yet followed */
	SF_VEC(struct edge) jumps;
};

static bool is_reached(const struct sf_code_starts *starts, uint64_t address)
{
	const uint64_t at = address - starts->code.base;

	return starts->reached[at / 8] >> at % 8 & 1;
}

static void mark(struct sf_code_starts *starts, uint64_t address, unsigned size)
{
	for (uint64_t at = address - starts->code.base; size--; at++)
		starts->reached[at / 8] |= (uint8_t)(1u << at % 8);
}

static bool add_start(struct search *search, uint64_t address)
{
	return !is_in_segment(&search->of->code, address) ||
	       (sf_vec_push(&search->of->starts, address) && sf_vec_push(&search->open, address));
}

static bool is_nop(const uint8_t *code, unsigned size)
{
	while (size > 1 && (*code == 0x66 || *code == 0x2e)) {
		code++;
		size--;
	}
	return *code == 0x90 || (size >= 3 && code[0] == 0x0f && code[1] == 0x1f);
}

/* Behind a call: nops up to a multiple of ALIGNMENT, as behind a function whose last call does not come back. */
static bool is_filled_up(const struct sf_code_starts *starts, uint64_t address)
{
	const uint64_t first = address;
	struct sf_x86_instruction next;

	while (address % ALIGNMENT && decode(&starts->code, address, &next) &&
	       is_nop(starts->code.bytes + (address - starts->code.base), next.size))
		address += next.size;
	return address != first && address % ALIGNMENT == 0;
}

/* Follows the instruction to its targets, beside the next one; *goes_on_ret: whether that follows. */
static bool lead_on(struct search *search, uint64_t address, const struct sf_x86_instruction *now, bool *goes_on_ret)
{
	const struct sf_code_starts *starts = search->of;
	const uint64_t next = address + now->size, target = next + (uint64_t)(int64_t)now->distance;

	*goes_on_ret = now->effect != SF_X86_RETURN && now->effect != SF_X86_JUMP &&
		       !(now->effect == SF_X86_CALL && is_filled_up(starts, next));
	if (!now->has_target || !is_in_segment(&starts->code, target))
		return true;
	if (now->effect == SF_X86_CALL)
		return add_start(search, target);
	return sf_vec_push(&search->jumps, (struct edge){ address, target }) && sf_vec_push(&search->open, target);
}

static bool follow(struct search *search)
{
	struct sf_code_starts *starts = search->of;
	struct sf_x86_instruction now;

	while (search->open.n) {
		uint64_t address = search->open.items[--search->open.n];
		bool goes_on = true;

		while (goes_on && decode(&starts->code, address, &now) && !is_reached(starts, address)) {
			mark(starts, address, now.size);
			if (!lead_on(search, address, &now, &goes_on))
				return false;
			address += now.size;
		}
	}
	return true;
}

/* crt1's _start hands main's address to the C library, calls that, and halts. */
static bool add_main(struct search *search, uint64_t entry)
{
	const struct sf_code_starts *starts = search->of;
	struct sf_x86_instruction now;
	uint64_t found = 0;
	int32_t value;

	for (uint64_t at = entry; at - entry < ENTRY_SIZE && decode(&starts->code, at, &now); at += now.size) {
		const uint8_t *code = starts->code.bytes + (at - starts->code.base);

		if (now.effect == SF_X86_CALL && found)
			return code[now.size] != 0xf4 || add_start(search, found);
		if (now.size != 7)
			continue;
		memcpy(&value, code + 3, sizeof(value));
		if (!memcmp(code, "\x48\x8d\x3d", 3)) /* lea value(%rip), %rdi */
			found = at + now.size + (uint64_t)(int64_t)value;
		else if (!memcmp(code, "\x48\xc7\xc7", 3)) /* mov $value, %rdi */
			found = (uint64_t)(int64_t)value;
	}
	return true;
}

/* The caller's frame is named by the last byte of its call. */
static bool add_called(struct search *search, uint64_t address)
{
	const struct sf_code_starts *starts = search->of;
	const uint64_t call = address - 4;
	struct sf_x86_instruction now;

	if (!is_in_segment(&starts->code, address) || !decode(&starts->code, call, &now) || now.size != 5 ||
	    now.effect != SF_X86_CALL || !now.has_target)
		return true;
	return add_start(search, call + now.size + (uint64_t)(int64_t)now.distance);
}

static bool add_ranges(struct search *search, const struct sf_ranges *ranges)
{
	for (size_t i = 0; i < ranges->n; i++) {
		if (!add_start(search, ranges->items[i].start))
			return false;
	}
	return true;
}

static bool add_known(struct search *search, const struct sf_elf *elf, const struct sf_known_code *known)
{
	GElf_Ehdr header;

	if (gelf_getehdr(elf->elf, &header) && header.e_entry &&
	    (!add_start(search, header.e_entry) || !add_main(search, header.e_entry)))
		return false;
	for (size_t i = 0; i < known->n_asked; i++) {
		if (!add_called(search, known->asked[i]))
			return false;
	}
	return add_ranges(search, known->symbols) && add_ranges(search, known->functions);
}

static int compare(const void *a_arg, const void *b_arg)
{
	const uint64_t *a = a_arg, *b = b_arg;

	return sf_order(*a, *b);
}

static void sort(struct sf_code_starts *starts)
{
	size_t n = 0;

	if (starts->starts.n)
		qsort(starts->starts.items, starts->starts.n, sizeof(uint64_t), compare);
	for (size_t i = 0; i < starts->starts.n; i++) {
		if (!n || starts->starts.items[i] != starts->starts.items[n - 1])
			starts->starts.items[n++] = starts->starts.items[i];
	}
	starts->starts.n = n;
}

/* How many starts are at or before `address`. */
static size_t count_before(const struct sf_code_starts *starts, size_t n, uint64_t address)
{
	return sf_count_before(n, i, starts->starts.items[i] <= address);
}

/* One round over all jumps: those that lead into another function make a start. *n_ret: how many. */
static bool split(struct search *search, size_t *n_ret)
{
	struct sf_code_starts *starts = search->of;
	const size_t n = starts->starts.n;

	for (size_t i = 0; i < search->jumps.n; i++) {
		const struct edge *jump = &search->jumps.items[i];
		const size_t to = count_before(starts, n, jump->to);

		if (to == count_before(starts, n, jump->from) || (to && starts->starts.items[to - 1] == jump->to))
			continue;
		if (!sf_vec_push(&starts->starts, jump->to))
			return false;
	}
	*n_ret = starts->starts.n - n;
	sort(starts);
	return true;
}

static bool run(struct search *search)
{
	size_t n = 1;

	if (!follow(search))
		return false;
	sort(search->of);
	for (unsigned round = 0; n && round < MAX_ROUNDS; round++) {
		if (!split(search, &n))
			return false;
	}
	if (n) /* not told apart */
		search->of->starts.n = 0;
	return true;
}

static bool analyse(struct sf_code_starts *starts, const struct sf_elf *elf, const struct sf_known_code *known,
		    uint64_t address)
{
	struct search search = { .of = starts };
	bool done;

	sf_code_starts_deinit(starts);
	starts->is_known = true;
	if (!sf_code_segment_read(&starts->code, elf, address) || starts->code.size > MAX_CODE)
		return true;
	starts->reached = calloc(starts->code.size / 8 + SF_X86_MAX_SIZE, 1);
	done = starts->reached && add_known(&search, elf, known) && run(&search);
	sf_vec_deinit(&search.open);
	sf_vec_deinit(&search.jumps);
	return done;
}

bool sf_code_starts_find(struct sf_code_starts *starts, const struct sf_elf *elf, const struct sf_known_code *known,
			 uint64_t address, uint64_t *ret)
{
	size_t n;

	if (!(starts->is_known && is_in_segment(&starts->code, address)) && !analyse(starts, elf, known, address))
		return false;
	n = count_before(starts, starts->starts.n, address);
	if (n && is_in_segment(&starts->code, address) && is_reached(starts, address))
		*ret = starts->starts.items[n - 1];
	else
		*ret = start_by_padding(&starts->code, address);
	return true;
}

void sf_code_starts_deinit(struct sf_code_starts *starts)
{
	free(starts->reached);
	sf_vec_deinit(&starts->starts);
	*starts = (struct sf_code_starts){ 0 };
}
