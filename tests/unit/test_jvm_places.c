/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of a hand-made virtual machine are described some time after they were walked: what is gone by then has no other name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <unistd.h>

#include "fake_jvm.h"
#include "runtime/hotspot/jvm.h"

#define GONE "[Java code that is gone]"

#define PAGE 4096

struct rig {
	struct fake_jvm fake;
	struct sf_jvm *jvm;
	uint64_t method, other, code;
	/* what happens while a frame is described: after so many reads, 0: nothing */
	unsigned replaced_after;
	bool keeps;                        /* a page that was read is kept for later reads, unless they are anew */
	bool is_kept[FAKE_SIZE / PAGE];
	uint8_t kept[FAKE_SIZE];
};

/* A Method is its address: another one has the same with another ConstMethod. */
static void replace(struct rig *rig)
{
	const uint64_t at = rig->fake.hotspot.fields[SF_HS_METHOD_CONST].at;
	uint64_t constant;

	assert_true(sf_read_u64(&rig->fake.memory, rig->other + at, &constant));
	fake_put(&rig->fake, rig->method + at, constant, 8);
}

/* The code that is there is another method's, and its inlined method, whose class was unloaded, has become another one. */
static void replace_code(struct rig *rig)
{
	struct sf_blob blob;

	assert_true(sf_hotspot_blob(&rig->fake.hotspot, &rig->fake.memory, rig->code, &blob));
	fake_put(&rig->fake, blob.address + rig->fake.hotspot.fields[SF_HS_NM_COMPILE_ID].at, blob.compile_id + 1, 4);
	replace(rig);
}

/* Memory as a reader has it that keeps pages. */
static bool read_and_replace(const struct sf_reader *reader, void *ret, uint64_t address, size_t size)
{
	struct rig *rig = reader->arg;
	const uint64_t at = address - FAKE_BASE;
	const uint8_t *from = rig->fake.bytes;

	if (address < FAKE_BASE || size > FAKE_SIZE || at > FAKE_SIZE - size)
		return false;
	for (uint64_t page = at / PAGE; rig->keeps && page <= (at + size - 1) / PAGE; page++) {
		if (!rig->is_kept[page])
			memcpy(rig->kept + page * PAGE, rig->fake.bytes + page * PAGE, PAGE);
		rig->is_kept[page] = true;
	}
	if (rig->keeps && !reader->anew)
		from = rig->kept;
	memcpy(ret, from + at, size);
	if (rig->replaced_after && --rig->replaced_after == 0)
		replace_code(rig);
	return true;
}

static int make(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	char note[SF_HOTSPOT_NOTE];
	struct sf_error err = { 0 };
	int fd;

	assert_non_null(rig);
	assert_true(fake_jvm_make(&rig->fake, note, &err));
	rig->fake.memory = (struct sf_reader){ .read = read_and_replace, .arg = rig };
	fd = fake_library(&rig->fake);
	rig->jvm = sf_jvm_attach(&rig->fake.memory, fd, 0, &err);
	if (!rig->jvm)
		fail_msg("%s", err.text);
	close(fd);
	rig->method = fake_method(&rig->fake, "a/B", "work", "(I)V", "B.java", 8);
	rig->other = fake_method(&rig->fake, "a/C", "other", "()V", "C.java", 8);
	rig->code = fake_code(&rig->fake, &(struct fake_code){
		.name = "nmethod", .size = 192, .frame_size = 4, .frame_complete = 28, .entry = 16, .compile_id = 42, .level = 4,
		.method = fake_method(&rig->fake, "a/B", "compiled", "()V", "B.java", 8),
		.pc = 48, .inlined = rig->method, .inlined_bci = 1 });
	*state = rig;
	return 0;
}

static int destroy(void **state)
{
	struct rig *rig = *state;

	sf_jvm_destroy(rig->jvm);
	free(rig);
	return 0;
}

/* A frame of the interpreter, as a walk finds it now. */
static struct sf_frame walked(const struct rig *rig, int32_t bci)
{
	struct sf_method method;

	assert_true(sf_hotspot_method(&rig->fake.hotspot, &rig->fake.memory, rig->method, &method));
	return (struct sf_frame){ .kind = SF_KIND_INTERPRETED, .token = rig->method, .id = sf_method_id(&method), .bci = bci };
}

static const struct sf_location *describe(struct rig *rig, const struct sf_frame *frame)
{
	const struct sf_location *functions = NULL;

	assert_int_equal(sf_jvm_functions(rig->jvm, sf_jvm_place(rig->jvm, frame), &functions), 1);
	return functions;
}

static void a_method_has_its_name_and_line(void **state)
{
	struct rig *rig = *state;
	const struct sf_frame frame = walked(rig, 2);

	assert_string_equal(describe(rig, &frame)->function, "a.B.work(int)");
	assert_int_equal(describe(rig, &frame)->line, 102);
	assert_int_equal(sf_jvm_place(rig->jvm, &frame), sf_jvm_place(rig->jvm, &frame));
}

/* Its class was unloaded since the walk, and another one's method has come to its place. */
static void a_method_that_was_replaced_has_no_name(void **state)
{
	struct rig *rig = *state;
	const struct sf_frame frame = walked(rig, 2);
	struct sf_frame next;

	replace(rig);
	assert_string_equal(describe(rig, &frame)->function, GONE);
	next = walked(rig, 2);
	assert_string_equal(describe(rig, &next)->function, "a.C.other()");
	assert_string_equal(describe(rig, &frame)->function, GONE);
}

/*
 * All structures of another class have come to where those of the first one were. Only its name is another one. Frames of both are
 * there while they run.
 */
static void a_class_of_the_same_shape_has_its_own_name(void **state)
{
	struct rig *rig = *state;
	struct sf_frame frame = walked(rig, 2);
	const struct sf_hotspot *hotspot = &rig->fake.hotspot;
	uint64_t pool, holder, other_pool, other_holder, symbol, other;
	struct sf_method method;

	assert_true(sf_hotspot_method(hotspot, &rig->fake.memory, rig->method, &method));
	pool = method.pool;
	assert_true(sf_hotspot_method(hotspot, &rig->fake.memory, rig->other, &method));
	other_pool = method.pool;
	assert_true(sf_hotspot_get(hotspot, &rig->fake.memory, SF_HS_POOL_HOLDER, pool, &holder) &&
		    sf_hotspot_get(hotspot, &rig->fake.memory, SF_HS_POOL_HOLDER, other_pool, &other_holder) &&
		    sf_hotspot_get(hotspot, &rig->fake.memory, SF_HS_CLASS_NAME, holder, &symbol) &&
		    sf_hotspot_get(hotspot, &rig->fake.memory, SF_HS_CLASS_NAME, other_holder, &other));
	for (unsigned i = 0; i < 2; i++) {
		fake_put(&rig->fake, holder + hotspot->fields[SF_HS_CLASS_NAME].at, symbol, 8);
		assert_string_equal(describe(rig, &frame)->function, "a.B.work(int)");
		fake_put(&rig->fake, holder + hotspot->fields[SF_HS_CLASS_NAME].at, other, 8);
		assert_string_equal(describe(rig, &frame)->function, "a.C.work(int)");
		frame.bci++;
	}
}

/* The frame of the interpreter, or that of compiled code into which its method was inlined. */
static struct sf_frame frame_of(const struct rig *rig, bool compiled)
{
	struct sf_blob blob;

	if (!compiled)
		return walked(rig, 2);
	assert_true(sf_hotspot_blob(&rig->fake.hotspot, &rig->fake.memory, rig->code, &blob));
	return (struct sf_frame){ .kind = SF_KIND_C2, .token = blob.address, .id = blob.compile_id, .pc = rig->code + 48 };
}

/* All that is known of it is right, or it is gone. True: it is gone. */
static bool is_right(struct rig *rig, const struct sf_frame *frame, bool compiled)
{
	const struct sf_location *functions = NULL;
	const size_t n = sf_jvm_functions(rig->jvm, sf_jvm_place(rig->jvm, frame), &functions);

	if (n == 1 && strcmp(functions[0].function, GONE) == 0)
		return true;
	assert_int_equal(n, compiled ? 2 : 1);
	assert_string_equal(functions[0].function, "a.B.work(int)");
	assert_int_equal(functions[0].line, compiled ? 101 : 102);
	if (compiled)
		assert_string_equal(functions[1].function, "a.B.compiled()");
	return false;
}

/* It is replaced after any of the reads that describe it. */
static void what_is_replaced_meanwhile_has_no_other_name(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		unsigned n = 0, gone = 0;
		void *made;
		bool all = false;

		while (!all) {
			struct rig *rig;
			struct sf_frame frame;

			assert_int_equal(make(&made), 0);
			rig = made;
			frame = frame_of(rig, i & 1);
			rig->keeps = i & 2;
			rig->replaced_after = ++n;
			gone += is_right(rig, &frame, i & 1);
			all = rig->replaced_after > 0; /* it has been described by fewer reads */
			destroy(&made);
		}
		assert_true(gone > 5 && n > gone);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_method_has_its_name_and_line, make, destroy),
		cmocka_unit_test_setup_teardown(a_method_that_was_replaced_has_no_name, make, destroy),
		cmocka_unit_test_setup_teardown(a_class_of_the_same_shape_has_its_own_name, make, destroy),
		cmocka_unit_test(what_is_replaced_meanwhile_has_no_other_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
