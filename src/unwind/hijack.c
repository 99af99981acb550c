/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the routine of .NET's runtime to which hijacked return addresses lead (OnHijackTripThread in
 * vm/amd64/unixasmhelpers.S). The rules that its file has for it are wrong.
 *
 * To suspend a thread the runtime replaces a return address on its stack by the address of this routine. A return leads
 * there, so the return address is off the stack. The routine first pushes a word into its place. The original address
 * is stored there before the thread waits, and the routine's last instruction returns to it. The rules are those of a
 * routine that was called: they take the word above for a return address, and their CFA is one word too high.
 *
 * The file itself proves that. By its rules one word is between the saved registers and the return address, and the
 * code returns to the word that is behind the saved registers.
 */
#include <string.h>

#include "unwind/inputs.h"

/* The first instructions of its rules: nine words are pushed, by instructions of these sizes; no register is described. */
static const uint8_t pushes[] = {
	0x41, 0x0e, 16, 0x41, 0x0e, 24, 0x41, 0x0e, 32, 0x42, 0x0e, 40, 0x42, 0x0e, 48, 0x42, 0x0e, 56, 0x42, 0x0e, 64,
	0x41, 0x0e, 72, 0x41, 0x0e, 80,
};

/* push rax, rbp, rbx, r15, r14, r13, r12; pop r12, r13, r14, r15, rbx, rbp; ret */
static const uint8_t head[] = { 0x50, 0x55, 0x53, 0x41, 0x57, 0x41, 0x56, 0x41, 0x55, 0x41, 0x54 };
static const uint8_t tail[] = { 0x41, 0x5c, 0x41, 0x5d, 0x41, 0x5e, 0x41, 0x5f, 0x5b, 0x5d, 0xc3 };

#define MAX_SIZE 256u
#define MAX_CANDIDATES 16u       /* routines whose code is read; the runtime has one */

static bool has_its_code(struct sf_elf *elf, const struct sf_fde *fde)
{
	const uint64_t size = fde->end - fde->start;
	const uint8_t *code;
	GElf_Phdr segment;

	if (size < sizeof(head) + sizeof(tail) || size > MAX_SIZE ||
	    !sf_elf_find_loaded(elf, fde->start, PF_X, &segment))
		return false;
	code = sf_elf_read(elf, fde->start - segment.p_vaddr + segment.p_offset, size);
	return code && memcmp(code, head, sizeof(head)) == 0 &&
	       memcmp(code + size - sizeof(tail), tail, sizeof(tail)) == 0;
}

static bool has_its_rules(const struct sf_bytes *bytes)
{
	return memmem(bytes->at, sf_bytes_left(bytes), pushes, sizeof(pushes));
}

static uint64_t find(struct sf_elf *elf, const struct sf_cfi *cfi)
{
	struct sf_cfi_cursor cursor = { 0 };
	struct sf_cie cie;
	struct sf_fde fde;
	unsigned n = 0;

	while (n < MAX_CANDIDATES && sf_work_goes_on(cfi->work) && sf_cfi_next(cfi, &cursor)) {
		if (!has_its_rules(&cursor.bytes))
			continue;
		n++;
		if (sf_cie_read(cfi, cursor.cie, &cie) && sf_fde_read(&cursor, &cie, &fde) && has_its_code(elf, &fde))
			return fde.start;
	}
	return 0;
}

uint64_t sf_hijack_find(struct sf_elf *elf, const struct sf_cfi *cfi)
{
	const struct sf_bytes all = sf_bytes_of(cfi->bytes, cfi->size);

	return elf->arch->elf_machine == EM_X86_64 && has_its_rules(&all) ? find(elf, cfi) : 0;
}
