/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the code of one segment around an address (code_segment.h). */
#include "symbols/code_segment.h"

#include <string.h>

#define MAX_STRAIGHT 4096  /* bytes of code that goes on without a jump */
#define MAX_JUMP 4096      /* bytes, forward; a longer one leads to another function */
#define MAX_FUNCTION 65536 /* bytes of a function without symbols and call frame information */
#define ALIGNMENT 16       /* of functions */
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

bool sf_code_segment_has(const struct sf_code_segment *code, uint64_t address)
{
	return address - code->base < code->size;
}

bool sf_code_segment_decode(const struct sf_code_segment *code, uint64_t address, struct sf_x86_instruction *ret)
{
	const uint64_t at = address - code->base;

	return sf_code_segment_has(code, address) && sf_x86_decode(code->bytes + at, code->size - at, ret);
}

bool sf_code_goes_on(const struct sf_code_segment *code, uint64_t from, uint64_t to)
{
	struct sf_x86_instruction now;

	if (to < from || to - from > MAX_STRAIGHT)
		return false;
	while (sf_code_segment_decode(code, from, &now)) {
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
	while (from < to && sf_code_segment_decode(code, from, &now)) {
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
static bool is_start(const uint8_t *code)
{
	return (code[-1] == INT3 && code[-2] == INT3) || memcmp(code, "\x55\x48\x89\xe5", 4) == 0;
}

uint64_t sf_code_start_by_padding(const struct sf_code_segment *code, uint64_t address)
{
	uint64_t at;

	if (!sf_code_segment_has(code, address) || code->size - (address - code->base) < 4)
		return 0;
	for (at = address & ~(uint64_t)(ALIGNMENT - 1); at >= code->base + 2 && address - at <= MAX_FUNCTION; at -= ALIGNMENT) {
		if (is_start(code->bytes + (at - code->base)))
			return sf_code_ends_before(code, at, address) ? 0 : at;
	}
	return 0;
}
