/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostile structures of CoreCLR: the input is all memory that there is. It is read as a description, as debug
 * information, and as code heap with headers, unwind information, stack, Thread and explicit frames, from which a walk
 * starts.
 */
#include <stdint.h>
#include <string.h>

#include "frozen/coreclr/code.h"
#include "frozen/coreclr/frames.h"
#include "frozen/unwind/walk.h"
#include "runtime/coreclr/debug_info.h"
#include "runtime/coreclr/description.h"
#include "runtime/coreclr/inlined.h"
#include "runtime/coreclr/json.h"

#define BASE 0x10000
#define N_FRAMES 64

struct memory {
	const uint8_t *bytes;
	size_t size;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool read_memory(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size)
{
	const struct memory *memory = reader->arg;

	if (addr < BASE || addr - BASE > memory->size || size > memory->size - (addr - BASE))
		return false;
	memcpy(ret, memory->bytes + (addr - BASE), size);
	return true;
}

static void ignore(void *arg, const struct sf_clr_json_value *value)
{
	uint64_t number;

	(void)arg;
	sf_clr_json_number(value, &number);
}

/* Offsets as .NET 10 has them, where walks need them. */
static void set_layout(struct sf_clr_layout *layout, uint8_t nibble_map)
{
	for (unsigned i = 0; i < SF_CLR_N_FIELDS; i++)
		layout->fields[i] = (uint16_t)(8 * (i % 6));
	layout->fields[SF_CLR_HEADER_UNWIND] = 36;
	for (unsigned i = 0; i < SF_CLR_N_FRAMES; i++)
		layout->frames[i] = i + 1;
	for (unsigned i = 0; i < SF_CLR_N_SIZES; i++)
		layout->sizes[i] = 24;
	layout->last_stub_kind = 15;
	layout->nibble_map = nibble_map;
}

static void walk(const struct sf_reader *memory, size_t size, uint64_t pc)
{
	static struct sf_frame frames[N_FRAMES];
	struct sf_code_map map = { .n_runtimes = 1 };
	struct sf_coreclr coreclr = {
		.runtime = { .ops = &sf_coreclr_ops, .start = 1, .end = UINT64_MAX },
		.n_ranges = 1, .range_map = BASE,
	};
	struct sf_clr_range range = {
		.region = { .start = BASE, .end = BASE + size, .runtime = &coreclr.runtime },
		.code = SF_CLR_CODE_JITTED, .base = BASE, .heap = BASE + 16,
	};
	struct sf_still still = { .arch = &sf_arch_x86_64, .memory = *memory, .map = &map,
				  .handles = { BASE + 8 }, .syscall = SF_SYSCALL_NONE };
	struct sf_trace trace = { .frames = frames, .capacity = N_FRAMES };

	coreclr.ranges = &range;
	map.runtimes[0] = &coreclr.runtime;
	set_layout(&coreclr.layout, 1 + (pc & 1));
	still.regs.pc = pc;
	for (unsigned i = 0; i < 16; i++)
		sf_reg_set(&still.regs, i, BASE + 64 + 8 * i);
	sf_walk(&still, &trace);
	sf_clr_is_listed(&coreclr, memory, pc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct memory bytes = { data, size };
	const struct sf_reader memory = { .read = read_memory, .arg = &bytes };
	static struct sf_clr_description description;
	struct sf_clr_inlined inlined[SF_CLR_MAX_INLINED];
	uint32_t il;

	sf_clr_json_read((const char *)data, size, ignore, NULL);
	sf_clr_describe(&memory, BASE, &description, NULL);
	sf_clr_find_il(&description, data, size, true, 100, &il);
	sf_clr_find_il(&description, data, size, false, 100, &il);
	sf_clr_find_inlined(data, size, 100, inlined);
	for (uint64_t pc = 0; pc < size && pc < 256; pc += 61)
		walk(&memory, size, BASE + pc);
	return 0;
}
