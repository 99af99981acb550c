/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the sections that a table is made from, and takes their digest. */
#include "unwind/inputs.h"

#include <string.h>

#include "elf/debug_file.h"
#include "elf/go_tables.h"

enum part {
	PART_CODE,
	PART_CFI,
	PART_PACKED,
	PART_PLT,
	PART_ENTRY,
	PART_MANAGED,
	PART_HIJACK,
	PART_GO,
};

/*
 * --- the routine of .NET's runtime to which hijacked return addresses lead (OnHijackTripThread in vm/amd64/unixasmhelpers.S) ---
 *
 * The rules that its file has for it are wrong. To suspend a thread the runtime replaces a return address on its stack by the
 * address of this routine. A return leads there, so the return address is off the stack. The routine first pushes a word into
 * its place. The original address is stored there before the thread waits, and the routine's last instruction returns to it.
 * The rules are those of a routine that was called: they take the word above for a return address, and their CFA is one word
 * too high.
 *
 * The file itself proves that. By its rules one word is between the saved registers and the return address, and the code
 * returns to the word that is behind the saved registers.
 */

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

static uint64_t find_routine(struct sf_elf *elf, const struct sf_cfi *cfi)
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

/* The start of .NET's routine for hijacked returns, which this section describes; 0: there is none. */
static uint64_t find_hijack(struct sf_elf *elf, const struct sf_cfi *cfi)
{
	const struct sf_bytes all = sf_bytes_of(cfi->bytes, cfi->size);

	return elf->arch->elf_machine == EM_X86_64 && has_its_rules(&all) ? find_routine(elf, cfi) : 0;
}

/* --- all inputs --- */

static const char *const plt_names[SF_PLT_SECTIONS] = { ".plt", ".plt.sec", ".plt.got", ".iplt" };

static void add_debug_file(struct sf_inputs *inputs)
{
	if (!sf_debug_file_open(&inputs->elf, NULL, SF_DEBUG_ROOT, &inputs->debug_file))
		inputs->debug_file = (struct sf_elf){ .fd = -1 };
	else if (sf_elf_debug_frame(&inputs->debug_file, &inputs->cfi[inputs->n_cfi]))
		inputs->n_cfi++;
	if (inputs->debug_file.elf)
		inputs->elf.n_read = inputs->debug_file.n_read;
}

/* The bytes of the section are not read: it has most of a program's code. */
static void find_managed(struct sf_inputs *inputs)
{
	GElf_Shdr header;

	if (!sf_elf_find_section(inputs->elf.elf, "__managedcode", &header))
		return;
	inputs->managed = header.sh_addr;
	inputs->managed_size = header.sh_size;
}

/* Go's linker writes .debug_frame from the same tables. */
static void find_go(struct sf_inputs *inputs, bool has_frames)
{
	struct sf_section mark;

	inputs->has_go = sf_elf_section(&inputs->elf, ".go.buildinfo", &mark);
	if (has_frames || !sf_go_section(&inputs->elf, &inputs->go_tables))
		inputs->go_tables = (struct sf_section){ 0 };
}

bool sf_inputs_open(int fd, struct sf_work *work, struct sf_inputs *ret, struct sf_error *err)
{
	size_t n_eh;

	*ret = (struct sf_inputs){ .debug_file = { .fd = -1 } };
	if (!sf_elf_open(fd, &ret->elf, err))
		return false;
	ret->elf.work = work;
	ret->n_cfi += sf_elf_eh_frame(&ret->elf, &ret->cfi[ret->n_cfi]);
	if (ret->n_cfi)
		ret->hijack = find_hijack(&ret->elf, &ret->cfi[0]);
	n_eh = ret->n_cfi;
	ret->n_cfi += sf_elf_debug_frame(&ret->elf, &ret->cfi[ret->n_cfi]);
	add_debug_file(ret);
	if (!sf_elf_section(&ret->elf, ".gnu_debugdata", &ret->packed))
		ret->packed = (struct sf_section){ 0 };
	for (size_t i = 0; i < SF_PLT_SECTIONS; i++)
		ret->n_plt += sf_elf_section(&ret->elf, plt_names[i], &ret->plt[ret->n_plt]);
	find_go(ret, ret->n_cfi > n_eh);
	find_managed(ret);
	if (ret->elf.limited || ret->debug_file.limited)
		sf_work_fail(work, err);
	else if (ret->elf.no_memory || ret->debug_file.no_memory)
		sf_fail_memory(err);
	else
		return true;
	sf_inputs_close(ret);
	return false;
}

void sf_inputs_close(struct sf_inputs *inputs)
{
	sf_elf_close(&inputs->debug_file);
	sf_elf_close(&inputs->elf);
}

/* Each part says what it is and how long, so that no two inputs give the same bytes to the digest. */
static void add_part(struct sf_digest *digest, enum part part, const uint64_t facts[4], const uint8_t *bytes,
		     size_t size)
{
	const uint64_t about[6] = { part, facts[0], facts[1], facts[2], facts[3], size };

	sf_digest_add(digest, about, sizeof(about));
	sf_digest_add(digest, bytes, size);
}

void sf_inputs_digest(const struct sf_inputs *inputs, uint8_t ret[SF_DIGEST_SIZE])
{
	const struct sf_elf *elf = &inputs->elf;
	struct sf_digest digest;

	sf_digest_begin(&digest);
	add_part(&digest, PART_CODE,
		 (const uint64_t[4]){ elf->arch->elf_machine, elf->code_start, elf->code_end, inputs->has_go }, NULL, 0);
	add_part(&digest, PART_ENTRY, (const uint64_t[4]){ elf->entry }, NULL, 0);
	add_part(&digest, PART_MANAGED, (const uint64_t[4]){ inputs->managed, inputs->managed_size }, NULL, 0);
	add_part(&digest, PART_HIJACK, (const uint64_t[4]){ inputs->hijack }, NULL, 0);
	for (size_t i = 0; i < inputs->n_cfi; i++) {
		const struct sf_cfi *cfi = &inputs->cfi[i];

		add_part(&digest, PART_CFI,
			 (const uint64_t[4]){ cfi->address, cfi->text, cfi->data,
					      (uint64_t)cfi->eh | (uint64_t)cfi->ends_at_zero << 1 },
			 cfi->bytes, cfi->size);
	}
	for (size_t i = 0; i < inputs->n_plt; i++)
		add_part(&digest, PART_PLT, (const uint64_t[4]){ inputs->plt[i].address },
			 inputs->plt[i].bytes, inputs->plt[i].size);
	add_part(&digest, PART_PACKED, (const uint64_t[4]){ 0 }, inputs->packed.bytes, inputs->packed.size);
	add_part(&digest, PART_GO, (const uint64_t[4]){ 0 }, inputs->go_tables.bytes, inputs->go_tables.size);
	sf_digest_end(&digest, ret);
}
