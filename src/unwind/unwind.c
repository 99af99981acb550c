/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the unwind table of a file, or takes it from the cache.
 *
 * The sources in the order of their authority, and the cache around them. Each source only fills
 * what earlier ones left open (rows.h), so the order below is the whole policy.
 */
#include "unwind/unwind.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "elf/debug_file.h"
#include "unwind/cfi.h"
#include "unwind/inputs.h"
#include "unwind/rows.h"

SF_DEFINE_CLEANUP(struct sf_rows *, sf_rows_destroy)

static bool add_cfi(struct sf_inputs *inputs, struct sf_rows *rows, struct sf_error *err)
{
	for (size_t i = 0; i < inputs->n_cfi; i++) {
		if (!sf_cfi_read(&inputs->cfi[i], inputs->elf.arch, rows, err))
			return false;
	}
	return true;
}

static bool add_packed(struct sf_inputs *inputs, struct sf_rows *rows, struct sf_error *err)
{
	struct sf_elf other;
	struct sf_cfi cfi;
	bool ok;

	if (!inputs->packed.size || !sf_debug_data_unpack(&inputs->elf, &inputs->packed, &other))
		return true;
	ok = !sf_elf_debug_frame(&other, &cfi) || sf_cfi_read(&cfi, other.arch, rows, err);
	sf_elf_close(&other);
	return ok;
}

/*
 * --- procedure linkage tables ---
 *
 * A PLT entry is a jump: the stack is as the caller's call left it. A lazy entry that is not resolved yet pushes its
 * relocation's number and jumps to the section's first entry. The first entry pushes the module's own handle and jumps into the
 * dynamic linker (x86-64 psABI, section 5.2; with endbr64 in front: section 13.2). GNU ld describes .plt with an expression that
 * uses the low bits of rip. For linkers that describe nothing, each entry gets rows that are derived from its bytes (plt_steps of
 * frozen/arch.h).
 */

/* Without a link register, or once it is pushed, the return address is on the stack. */
static bool add_plt_step(const struct sf_arch *arch, struct sf_rows *rows, uint64_t start, const struct sf_plt_step *step)
{
	const bool on_stack = arch->lr == SF_NO_REG;
	struct sf_rules rules = {
		.cfa = { .how = SF_HOW_REGISTER_PLUS, .reg = arch->sp, .value = step->pushed + (on_stack ? 8 : 0) },
		.flags = SF_RULES_GUESS,
	};

	if (on_stack || step->pushed)
		rules.ra = (struct sf_rule){ .how = SF_HOW_AT_CFA, .value = -8 };
	return sf_rows_add(rows, start + step->at, &rules);
}

static bool add_plt_section(const struct sf_arch *arch, struct sf_rows *rows, const struct sf_section *section)
{
	struct sf_plt_step steps[SF_PLT_STEPS];
	uint64_t end;

	if (__builtin_add_overflow(section->address, section->size, &end) ||
	    !sf_rows_begin(rows, section->address, end))
		return true;
	for (size_t at = 0; at < section->size; at += SF_PLT_ENTRY) {
		const unsigned n = arch->plt_steps(section->bytes, section->size, at, steps);

		for (unsigned i = 0; i < n; i++) {
			if (!add_plt_step(arch, rows, section->address, &steps[i]))
				return false;
		}
	}
	return sf_rows_end(rows, true);
}

static bool add_plt(struct sf_inputs *inputs, struct sf_rows *rows, struct sf_error *err)
{
	for (size_t i = 0; i < inputs->n_plt; i++) {
		if (!add_plt_section(inputs->elf.arch, rows, &inputs->plt[i]))
			return sf_fail_memory(err);
	}
	return sf_rows_settle(rows) || sf_fail_memory(err);
}

/*
 * --- the entry point ---
 *
 * The kernel enters a program, or its dynamic linker, here: no caller is above this code. glibc's linker describes all of its
 * code but this (sysdeps/x86_64/dl-machine.h, RTLD_START). Only where no other source covers the entry point, but one covers
 * what is soon behind it: that is where the code ends. musl describes little, and C functions follow.
 */
#define ENTRY_SIZE 128
#define ENTRY_ALIGNMENT 16 /* of the function that follows */

static bool is_covered(struct sf_rows *rows, uint64_t address)
{
	return !sf_rows_begin(rows, address, address + 1);
}

/* 0: it does not end soon. */
static uint64_t entry_end(struct sf_rows *rows, uint64_t entry)
{
	for (uint64_t size = ENTRY_ALIGNMENT; size <= ENTRY_SIZE; size += ENTRY_ALIGNMENT) {
		if (is_covered(rows, entry + size))
			return entry + size;
	}
	return 0;
}

static bool add_entry(struct sf_inputs *inputs, struct sf_rows *rows, struct sf_error *err)
{
	const struct sf_arch *arch = inputs->elf.arch;
	const uint64_t entry = inputs->elf.entry;
	const struct sf_rules rules = {
		.cfa = { .how = SF_HOW_REGISTER_PLUS, .reg = arch->sp },
		.ra.how = SF_HOW_UNDEFINED,
		.flags = SF_RULES_GUESS,
	};

	if (!sf_rows_any(rows) || entry >= UINT64_MAX - ENTRY_SIZE || is_covered(rows, entry) ||
	    !sf_rows_begin(rows, entry, entry_end(rows, entry)))
		return true;
	return (sf_rows_add(rows, entry, &rules) && sf_rows_end(rows, true) && sf_rows_settle(rows)) || sf_fail_memory(err);
}

/* --- all sources --- */

/* False only when memory ran out: a file that makes no sense gives fewer rows. */
typedef bool source_fn(struct sf_inputs *inputs, struct sf_rows *rows, struct sf_error *err);

static source_fn *const sources[] = {
	add_cfi,
	add_packed,
	sf_go_tables_read,
	add_plt,
	add_entry,
};

static bool build(struct sf_inputs *inputs, const uint8_t made_from[SF_DIGEST_SIZE], void **ret,
		  size_t *size_ret, struct sf_error *err)
{
	SF_CLEANUP(sf_rows_destroy) struct sf_rows *rows = NULL;
	const struct sf_elf *elf = &inputs->elf;
	struct sf_table_header header = {
		.elf_machine = elf->arch->elf_machine,
		.flags = (uint16_t)((inputs->has_go ? SF_TABLE_GO : 0) | (inputs->managed_size ? SF_TABLE_NATIVEAOT : 0)),
	};

	if (elf->code_end - elf->code_start > UINT32_MAX)
		return sf_fail(err, SF_E_UNSUPPORTED, "code that spans more than 4 GiB (%#llx to "
						      "%#llx)", (unsigned long long)elf->code_start,
			       (unsigned long long)elf->code_end);
	rows = sf_rows_create(elf->code_start, elf->code_end);
	if (!rows)
		return sf_fail_memory(err);
	sf_rows_flag(rows, inputs->managed, inputs->managed_size, SF_RULES_PROLOGUE);
	sf_rows_lower(rows, inputs->hijack, 8);
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		if (!sources[i](inputs, rows, err))
			return false;
	}
	if (elf->no_memory)
		return sf_fail_memory(err);
	if (elf->limited)
		return sf_work_fail(elf->work, err);
	memcpy(header.made_from, made_from, sizeof(header.made_from));
	return sf_rows_pack(rows, &header, ret, size_ret, err);
}

static struct sf_cache_key key_of(const struct sf_inputs *inputs)
{
	struct sf_cache_key key = { .arch = inputs->elf.arch };

	sf_inputs_digest(inputs, key.made_from);
	return key;
}

bool sf_unwind_build(int fd, void **ret, size_t *size_ret, struct sf_error *err)
{
	struct sf_inputs inputs;
	struct sf_cache_key key;
	bool ok;

	if (!sf_inputs_open(fd, NULL, &inputs, err))
		return false;
	key = key_of(&inputs);
	ok = build(&inputs, key.made_from, ret, size_ret, err);
	sf_inputs_close(&inputs);
	return ok;
}

bool sf_unwind_key(int fd, struct sf_cache_key *ret)
{
	struct sf_inputs inputs;

	if (!sf_inputs_open(fd, NULL, &inputs, NULL))
		return false;
	*ret = key_of(&inputs);
	sf_inputs_close(&inputs);
	return true;
}

static bool get_or_build(struct sf_inputs *inputs, struct sf_cache *cache, void **ret, size_t *size_ret, struct sf_error *err)
{
	const struct sf_cache_key key = key_of(inputs);

	if (cache && sf_cache_get(cache, &key, ret, size_ret))
		return true;
	if (!build(inputs, key.made_from, ret, size_ret, err))
		return false;
	if (cache)
		sf_cache_put(cache, &key, *ret, *size_ret);
	return true;
}

static bool open_block(int fd, bool keep, struct sf_work *work, void **ret, size_t *size_ret, struct sf_error *err)
{
	struct sf_inputs inputs;
	struct sf_cache cache;
	bool ok;

	if (!sf_inputs_open(fd, work, &inputs, err))
		return false;
	keep = keep && sf_cache_open(&cache, false);
	ok = get_or_build(&inputs, keep ? &cache : NULL, ret, size_ret, err);
	if (keep)
		sf_cache_close(&cache);
	sf_inputs_close(&inputs);
	return ok;
}

bool sf_unwind_open(int fd, bool keep, struct sf_work *work, struct sf_table *ret,
		    void **block_ret, size_t *size_ret, struct sf_error *err)
{
	void *block = NULL;
	size_t size = 0;

	if (!open_block(fd, keep, work, &block, &size, err))
		return false;
	if (!sf_table_init(ret, block, size)) {
		sf_unwind_close(block, size);
		return sf_fail(err, SF_E_INPUT, "an unwind table that is not consistent");
	}
	*block_ret = block;
	*size_ret = size;
	return true;
}

void sf_unwind_close(void *block, size_t size)
{
	if (block)
		munmap(block, size);
}

void sf_image_load_table(struct sf_image *image)
{
	struct sf_error err = { 0 };
	/* A copy of memory has gaps, other ones each time: its table is of no use to others. */
	const bool keep = !image->from_memory;

	if (sf_unwind_open(image->fd, keep, image->work, &image->table, &image->table_block,
			   &image->table_size, &err))
		return;
	memset(&image->table, 0, sizeof(image->table));
	if (!image->note[0])
		snprintf(image->note, sizeof(image->note), "no unwind table: %.150s", err.text);
}

void sf_image_unload_table(struct sf_image *image)
{
	if (image->table_block)
		sf_unwind_close(image->table_block, image->table_size);
}
