/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of a hand-made virtual machine are described some time after they were walked: what is gone by then has no other name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_jvm.h"
#include "runtime/hotspot/jvm.h"

#define GONE "[Java code that is gone]"
#define NAME_SIZE 48

static const char *const exports[SF_HE_N] = {
#define X(name, symbol) "gHotSpotVM" symbol,
	SF_HOTSPOT_EXPORTS(X)
#undef X
};

/* A libjvm with nothing but its symbols. */
struct library {
	Elf64_Ehdr header;
	Elf64_Shdr sections[3];         /* none, .dynsym, .dynstr */
	Elf64_Sym symbols[SF_HE_N + 1];
	char names[SF_HE_N + 1][NAME_SIZE];
};

struct rig {
	struct fake_jvm fake;
	struct sf_jvm *jvm;
	uint64_t method, other;
	struct library library;
};

static void make_library(struct rig *rig)
{
	struct library *library = &rig->library;

	*library = (struct library){
		.header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT }, .e_type = ET_DYN,
			    .e_machine = EM_X86_64, .e_version = EV_CURRENT, .e_ehsize = sizeof(Elf64_Ehdr),
			    .e_shoff = offsetof(struct library, sections), .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 3, .e_shstrndx = 2 },
	};
	library->sections[1] = (Elf64_Shdr){ .sh_type = SHT_DYNSYM, .sh_offset = offsetof(struct library, symbols),
					     .sh_size = sizeof(library->symbols), .sh_link = 2, .sh_entsize = sizeof(Elf64_Sym) };
	library->sections[2] = (Elf64_Shdr){ .sh_type = SHT_STRTAB, .sh_offset = offsetof(struct library, names),
					     .sh_size = sizeof(library->names) };
	for (unsigned i = 0; i < SF_HE_N; i++) {
		snprintf(library->names[i + 1], NAME_SIZE, "%s", exports[i]);
		library->symbols[i + 1] = (Elf64_Sym){ .st_name = (i + 1) * NAME_SIZE, .st_shndx = 1,
						       .st_value = rig->fake.exports.at[i] };
	}
}

/* A Method is its address: another one has the same with another ConstMethod. */
static void replace(struct rig *rig)
{
	const uint64_t at = rig->fake.hotspot.fields[SF_HS_METHOD_CONST].at;
	uint64_t constant;

	assert_true(sf_read_u64(&rig->fake.memory, rig->other + at, &constant));
	fake_put(&rig->fake, rig->method + at, constant, 8);
}

static int make(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	const int fd = memfd_create("libjvm", MFD_CLOEXEC);
	char note[SF_HOTSPOT_NOTE];
	struct sf_error err = { 0 };

	assert_non_null(rig);
	assert_true(fake_jvm_make(&rig->fake, note, &err));
	make_library(rig);
	assert_int_equal(write(fd, &rig->library, sizeof(rig->library)), sizeof(rig->library));
	rig->jvm = sf_jvm_attach(&rig->fake.memory, fd, 0, &err);
	if (!rig->jvm)
		fail_msg("%s", err.text);
	close(fd);
	rig->method = fake_method(&rig->fake, "a/B", "work", "(I)V", "B.java", 8);
	rig->other = fake_method(&rig->fake, "a/C", "other", "()V", "C.java", 8);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_method_has_its_name_and_line, make, destroy),
		cmocka_unit_test_setup_teardown(a_method_that_was_replaced_has_no_name, make, destroy),
		cmocka_unit_test_setup_teardown(a_class_of_the_same_shape_has_its_own_name, make, destroy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
