/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Java virtual machine whose memory is garbage here and there: its tables, its code, its
 * methods, its threads. An input is
 *
 * 	1 byte	  bit 0: attach again after the garbage is in
 * 	          pc, sp, fp, r13, r15, rbx, rax: 4 bytes each, from the start of its memory
 * 	          the rest: patches of 3 bytes address, 1 byte size (up to 15), as many bytes
 *
 * What is missing is zero.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fake_use.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const unsigned registers[] = { 7, 6, 13, 15, 3, 0 };

struct input {
	const uint8_t *bytes;
	size_t size;
};

static uint64_t take(struct input *input, size_t size)
{
	const size_t n = size < input->size ? size : input->size;
	uint64_t value = 0;

	memcpy(&value, input->bytes, n);
	input->bytes += n;
	input->size -= n;
	return value;
}

/* The machine without garbage, made once, with a method that is compiled and one that is not. */
static const struct fake_jvm *good(uint64_t *method_ret)
{
	static struct fake_jvm jvm;
	static uint64_t method;
	char note[SF_HOTSPOT_NOTE];

	if (!method) {
		if (!fake_jvm_make(&jvm, note, NULL))
			abort();
		method = fake_jvm_fill(&jvm);
	}
	*method_ret = method;
	return &jvm;
}

static void spoil(struct fake_jvm *jvm, struct input *input)
{
	while (input->size) {
		uint32_t address = (uint32_t)take(input, 3) % (FAKE_SIZE - 16);
		unsigned n = take(input, 1) & 15;

		for (unsigned i = 0; i < n; i++)
			jvm->bytes[address + i] = (uint8_t)take(input, 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fake_jvm jvm;
	struct input input = { data, size };
	char note[SF_HOTSPOT_NOTE];
	uint64_t method;
	bool again;

	fake_jvm_copy(&jvm, good(&method));
	again = take(&input, 1) & 1;
	jvm.still.regs.pc = FAKE_BASE + take(&input, 4);
	for (size_t i = 0; i < sizeof(registers) / sizeof(registers[0]); i++)
		sf_reg_set(&jvm.still.regs, registers[i], FAKE_BASE + take(&input, 4));
	spoil(&jvm, &input);
	if (again && !sf_hotspot_attach(&jvm.memory, &jvm.exports, &jvm.hotspot, note, NULL))
		return 0;
	fake_jvm_use(&jvm, method);
	return 0;
}
