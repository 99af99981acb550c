/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the methods of a program by ILC.
 *
 * The stack-trace map is a number of entries, and the entries (StackTraceMethodMappingNode.cs, StackTraceData.cs). Each has
 * what differs from the entry before it: a byte says what that is.
 */
#include "symbols/ilc_methods.h"

#include <stdlib.h>

#include "base/search.h"

#define MAX_METHODS ((size_t)1 << 20) /* a program of 5 MB has 13,000 */

#define MAX_DATA ((uint64_t)256 << 20) /* bytes of a segment */

/* Bits of the first byte of an entry. */
enum {
	NEW_OWNER = 1,
	NEW_NAME = 2,
	NEW_SIGNATURE = 4,           /* and it is not generic */
	NEW_GENERIC_SIGNATURE = 8,
	HIDDEN = 16,                 /* from the traces of exceptions */
};

/* Of a piece of code with unwind information (UnixNativeCodeManager.cpp: unwindBlockFlags): not 0 for a funclet. */
#define FUNCLET_BITS 3

/* Where the number at the cursor leads, which is relative to its own place. */
static uint64_t read_relative(const struct sf_section *table, struct sf_bytes *bytes)
{
	const uint64_t at = table->address + (uint64_t)(bytes->at - table->bytes);

	return at + (uint64_t)(int64_t)(int32_t)sf_bytes_u32(bytes);
}

/* Reads the next entry over the one before. */
static void read_entry(const struct sf_ilc_methods *methods, struct sf_bytes *bytes, struct sf_ilc_method *method)
{
	const uint8_t what = sf_bytes_u8(bytes);

	bytes->bad |= what & ~(NEW_OWNER | NEW_NAME | NEW_SIGNATURE | NEW_GENERIC_SIGNATURE | HIDDEN);
	if (what & NEW_OWNER)
		method->owner = sf_ilc_handle_of(&methods->metadata, sf_bytes_u32(bytes));
	if (what & NEW_NAME)
		method->name = sf_ilc_number(bytes);
	if (what & (NEW_SIGNATURE | NEW_GENERIC_SIGNATURE)) {
		method->signature = sf_ilc_number(bytes);
		method->arguments = what & NEW_GENERIC_SIGNATURE ? sf_ilc_number(bytes) : 0;
	}
	method->start = read_relative(&methods->module.tables[SF_ILC_STACK_TRACE], bytes);
}

/* *good_ret becomes false where the table has a mistake. */
static bool add_traced(struct sf_ilc_methods *methods, bool *good_ret)
{
	struct sf_bytes bytes = sf_ilc_at(&methods->module.tables[SF_ILC_STACK_TRACE], 0);
	const uint32_t n = sf_bytes_left(&bytes) ? sf_bytes_u32(&bytes) : 0;
	struct sf_ilc_method method = { 0 };

	*good_ret = n <= MAX_METHODS;
	for (uint32_t i = 0; i < n && *good_ret; i++) {
		read_entry(methods, &bytes, &method);
		*good_ret = !bytes.bad && sf_ilc_is_code(&methods->module, method.start);
		/* What is hidden may have no owner, and then no name. */
		if (*good_ret && method.owner.offset && !sf_vec_push(&methods->items, method))
			return false;
	}
	*good_ret &= !sf_bytes_left(&bytes);
	return true;
}

/* The bytes around a piece's own data: of the segment, which has those of all. False: they are not there. */
static bool need_data(struct sf_elf *elf, uint64_t address, struct sf_section *data)
{
	GElf_Phdr header;

	if (!data->size && sf_elf_find_loaded(elf, address, 0, &header) && header.p_filesz && header.p_filesz <= MAX_DATA) {
		data->bytes = sf_elf_read(elf, header.p_offset, header.p_filesz);
		data->size = data->bytes ? header.p_filesz : 0;
		data->address = header.p_vaddr;
	}
	return address - data->address < data->size;
}

/* Adds the piece of code of an FDE, if it is a funclet: flags, where the method's own data is, how far its code is before. */
static bool add_funclet(struct sf_ilc_methods *methods, const struct sf_section *data, const struct sf_fde *fde)
{
	struct sf_bytes bytes = sf_ilc_at(data, fde->lsda - data->address);
	uint64_t method;

	if (!(sf_bytes_u8(&bytes) & FUNCLET_BITS))
		return true;
	sf_bytes_u32(&bytes);
	method = fde->start - (uint64_t)(int64_t)(int32_t)sf_bytes_u32(&bytes);
	return bytes.bad || !sf_ilc_is_code(&methods->module, method) || methods->funclets.n >= MAX_METHODS ||
	       sf_vec_push(&methods->funclets, (struct sf_ilc_funclet){ fde->start, method });
}

static bool add_funclets(struct sf_ilc_methods *methods, struct sf_elf *elf)
{
	struct sf_cfi_cursor cursor = { 0 };
	uint64_t cie_offset = UINT64_MAX; /* no entry is there */
	struct sf_section data = { 0 };
	struct sf_cfi cfi;
	struct sf_cie cie;
	struct sf_fde fde;
	bool good = false;

	if (!sf_elf_eh_frame(elf, &cfi))
		return true;
	while (sf_cfi_next(&cfi, &cursor)) {
		if (cursor.cie != cie_offset)
			good = sf_cie_read(&cfi, cursor.cie, &cie);
		cie_offset = cursor.cie;
		if (!good || !sf_fde_read(&cursor, &cie, &fde) || !fde.lsda || !sf_ilc_is_code(&methods->module, fde.start))
			continue;
		if (need_data(elf, fde.lsda, &data) && !add_funclet(methods, &data, &fde))
			return false;
	}
	return true;
}

static int by_start(const void *a_arg, const void *b_arg)
{
	const struct sf_ilc_method *a = a_arg, *b = b_arg;

	return sf_order(a->start, b->start);
}

/* Of one start: any order, but always the same one. */
static int by_start_and_owner(const void *a_arg, const void *b_arg)
{
	const struct sf_ilc_method *a = a_arg, *b = b_arg;
	const int order = by_start(a, b);

	return order ? order : sf_order(a->owner.offset, b->owner.offset);
}

static int funclets_by_start(const void *a_arg, const void *b_arg)
{
	const struct sf_ilc_funclet *a = a_arg, *b = b_arg;

	return sf_order(a->start, b->start);
}

/* Code that several methods share keeps one. */
static void sort(struct sf_ilc_methods *methods)
{
	size_t n = 0;

	if (methods->items.n)
		qsort(methods->items.items, methods->items.n, sizeof(*methods->items.items), by_start_and_owner);
	for (size_t i = 0; i < methods->items.n; i++) {
		if (!n || methods->items.items[i].start != methods->items.items[n - 1].start)
			methods->items.items[n++] = methods->items.items[i];
	}
	methods->items.n = n;
	if (methods->funclets.n)
		qsort(methods->funclets.items, methods->funclets.n, sizeof(*methods->funclets.items), funclets_by_start);
}

bool sf_ilc_methods_read(struct sf_elf *elf, struct sf_ilc_methods *ret)
{
	bool good;

	*ret = (struct sf_ilc_methods){ 0 };
	if (!sf_ilc_module_open(elf, &ret->module) || !sf_ilc_metadata_open(&ret->module, &ret->metadata))
		return true;
	if (!add_traced(ret, &good))
		return false;
	if (!good) {
		sf_ilc_methods_deinit(ret);
		return true;
	}
	if (!sf_ilc_methods_add_invoked(ret) || !add_funclets(ret, elf))
		return false;
	sort(ret);
	return true;
}

void sf_ilc_methods_deinit(struct sf_ilc_methods *methods)
{
	sf_vec_deinit(&methods->items);
	sf_vec_deinit(&methods->funclets);
}

/* The method's start, for that of a funclet; any other stays as it is. */
static uint64_t start_of_method(const struct sf_ilc_methods *methods, uint64_t start)
{
	const struct sf_ilc_funclet wanted = { .start = start }, *found = NULL;

	if (methods->funclets.n)
		found = bsearch(&wanted, methods->funclets.items, methods->funclets.n, sizeof(wanted), funclets_by_start);
	return found ? found->method : start;
}

const struct sf_ilc_method *sf_ilc_methods_find(const struct sf_ilc_methods *methods, uint64_t start)
{
	const struct sf_ilc_method wanted = { .start = start_of_method(methods, start) };

	return methods->items.n ? bsearch(&wanted, methods->items.items, methods->items.n, sizeof(wanted), by_start) : NULL;
}
