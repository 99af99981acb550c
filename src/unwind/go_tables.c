/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes unwind rows from the tables of Go's runtime (elf/go_tables.h). Programs that were linked with -s have no .debug_frame. For
 * each function a list says how far sp is below its place at the entry, from which pc on. The linker makes .debug_frame from the
 * same list, and the rows are the same.
 */
#include "elf/go_tables.h"
#include "unwind/inputs.h"

#define WORD 8

struct tables {
	struct sf_go_tables go;
	size_t left; /* elements of lists that may be read: many functions may have one list, but no program so many */
};

/* Seven bits from each byte, the lowest ones first. False: the section ends, or the number is no such one. */
static bool take_number(const struct sf_section *section, uint64_t *at, uint32_t *ret)
{
	uint32_t byte, value = 0;

	for (unsigned shift = 0; shift < 32 && *at < section->size; shift += 7) {
		byte = section->bytes[(*at)++];
		value |= (byte & 127) << shift;
		*ret = value;
		if (byte < 128)
			return true;
	}
	return false;
}

/* A list that is being read: it holds a value from `start` up to `end`. */
struct list {
	struct tables *tables;
	uint64_t at;
	uint64_t start, end;
	int64_t value;
};

/*
 * Each element has two numbers: how the value changes (the lowest bit is the sign), and for how many bytes it holds. A change by
 * 0 ends the list, but for the first one. *ends_ret: it ended there. False: no further.
 */
static bool take_element(struct list *list, bool *ends_ret)
{
	const bool is_first = list->end == list->start;
	uint32_t change = 0, bytes;

	*ends_ret = take_number(&list->tables->go.section, &list->at, &change) && change == 0 && !is_first;
	if (*ends_ret || !list->tables->left || !take_number(&list->tables->go.section, &list->at, &bytes) || !bytes)
		return false;
	list->tables->left--;
	list->value += change & 1 ? -(int64_t)(change >> 1) - 1 : (int64_t)(change >> 1);
	list->start = list->end;
	list->end += bytes;
	return true;
}

static struct list begin_list(struct tables *tables, uint64_t offset, uint64_t start)
{
	return (struct list){ .tables = tables, .at = tables->go.lists + offset, .start = start, .end = start, .value = -1 };
}

/* Where a function's code ends, by the list of its lines. Bytes between two functions are none's. */
static uint64_t code_end(struct tables *tables, uint64_t lines, uint64_t start, uint64_t next)
{
	struct list list = begin_list(tables, lines, start);
	bool ends;

	while (list.end < next && take_element(&list, &ends))
		;
	return list.end > start && list.end < next ? list.end : next;
}

static bool add_row(const struct sf_arch *arch, struct sf_rows *rows, uint64_t address, int64_t below)
{
	const struct sf_rules rules = {
		.cfa = { .how = SF_HOW_REGISTER_PLUS, .reg = arch->sp, .value = (int32_t)below + WORD },
		.ra = { .how = SF_HOW_AT_CFA, .value = -WORD },
	};

	return sf_rows_add(rows, address, &rules);
}

/* False when memory ran out. *fits_ret: the list is one of this function. */
static bool add_list(struct list *list, const struct sf_arch *arch, struct sf_rows *rows, uint64_t end, bool *fits_ret)
{
	*fits_ret = false;
	while (list->end < end && take_element(list, fits_ret)) {
		if (list->value < 0 || list->value > INT32_MAX - WORD)
			return true;
		if (!add_row(arch, rows, list->start, list->value))
			return false;
	}
	*fits_ret |= list->end >= end;
	return true;
}

/* Functions of C that Go's linker has linked itself have no lists. */
static bool add_function(struct tables *tables, const struct sf_arch *arch, struct sf_rows *rows, uint64_t i)
{
	const uint64_t start = sf_go_entry(&tables->go, i), lists = sf_go_lists(&tables->go, i);
	const uint64_t distances = sf_go_number(&tables->go, lists, 4), lines = sf_go_number(&tables->go, lists + SF_GO_LINES, 4);
	const uint64_t end = code_end(tables, lines, start, sf_go_entry(&tables->go, i + 1));
	struct list list = begin_list(tables, distances, start);
	bool fits;

	if (!distances || !lines || !sf_rows_begin(rows, start, end))
		return true;
	return add_list(&list, arch, rows, end, &fits) && sf_rows_end(rows, fits);
}

bool sf_go_tables_read(struct sf_inputs *inputs, struct sf_rows *rows, struct sf_error *err)
{
	const struct sf_arch *arch = inputs->elf.arch;
	struct tables tables = { .left = inputs->go_tables.size };

	/* With a link register a function that calls none has its return address there. */
	if (arch->lr != SF_NO_REG || !inputs->go_tables.size || !sf_go_tables_open(&inputs->go_tables, &tables.go))
		return true;
	for (uint64_t i = 0; i < tables.go.n; i++) {
		if (!add_function(&tables, arch, rows, i))
			return sf_fail_memory(err);
	}
	return sf_rows_settle(rows) || sf_fail_memory(err);
}
