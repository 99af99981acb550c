/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_tables.h"

#include <elf.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* An exported variable. */
static void export(struct fake_jvm *jvm, enum sf_hotspot_export which, uint64_t value)
{
	jvm->exports.at[which] = fake_alloc(jvm, 8);
	fake_put(jvm, jvm->exports.at[which], value, 8);
}

static void make_structs(struct fake_jvm *jvm)
{
	uint64_t start = fake_alloc(jvm, 48 * (FAKE_FIELDS + 1)), next = start;

	for (unsigned i = 0; i < jvm->layout.n_fields; i++) {
		struct fake_field *field = &jvm->layout.fields[i];

		if (field->is_static)
			field->address = fake_alloc(jvm, 8);
		if (jvm->left_out && strcmp(jvm->left_out, field->name) == 0)
			continue;
		fake_put(jvm, next, fake_string(jvm, field->type), 8);
		fake_put(jvm, next + 8, fake_string(jvm, field->name), 8);
		fake_put(jvm, next + 16, field->text[0] ? fake_string(jvm, field->text) : 0, 8);
		fake_put(jvm, next + 24, field->is_static, 4);
		fake_put(jvm, next + 32, field->offset, 8);
		fake_put(jvm, next + 40, field->address, 8);
		next += 48;
	}
	export(jvm, SF_HE_STRUCTS, start);
	export(jvm, SF_HE_STRUCT_TYPE, 0);
	export(jvm, SF_HE_STRUCT_FIELD, 8);
	export(jvm, SF_HE_STRUCT_TEXT, 16);
	export(jvm, SF_HE_STRUCT_STATIC, 24);
	export(jvm, SF_HE_STRUCT_OFFSET, 32);
	export(jvm, SF_HE_STRUCT_ADDRESS, 40);
	export(jvm, SF_HE_STRUCT_STRIDE, 48);
}

static void make_sizes(struct fake_jvm *jvm)
{
	uint64_t start = fake_alloc(jvm, 40 * (FAKE_VALUES + 1)), next = start;

	for (unsigned i = 0; i < jvm->layout.n_values; i++) {
		if (!jvm->layout.values[i].is_size)
			continue;
		fake_put(jvm, next, fake_string(jvm, jvm->layout.values[i].name), 8);
		fake_put(jvm, next + 32, jvm->layout.values[i].value, 8);
		next += 40;
	}
	export(jvm, SF_HE_TYPES, start);
	export(jvm, SF_HE_TYPE_NAME, 0);
	export(jvm, SF_HE_TYPE_SIZE, 32);
	export(jvm, SF_HE_TYPE_STRIDE, 40);
}

static void make_numbers(struct fake_jvm *jvm)
{
	uint64_t start = fake_alloc(jvm, 16 * (FAKE_VALUES + 1)), next = start;

	for (unsigned i = 0; i < jvm->layout.n_values; i++) {
		if (jvm->layout.values[i].is_size)
			continue;
		fake_put(jvm, next, fake_string(jvm, jvm->layout.values[i].name), 8);
		fake_put(jvm, next + 8, jvm->layout.values[i].value, 4);
		next += 16;
	}
	export(jvm, SF_HE_INTS, start);
	export(jvm, SF_HE_INT_NAME, 0);
	export(jvm, SF_HE_INT_VALUE, 8);
	export(jvm, SF_HE_INT_STRIDE, 16);
	export(jvm, SF_HE_LONGS, fake_alloc(jvm, 16));
	export(jvm, SF_HE_LONG_NAME, 0);
	export(jvm, SF_HE_LONG_VALUE, 8);
	export(jvm, SF_HE_LONG_STRIDE, 16);
}

void fake_tables_make(struct fake_jvm *jvm)
{
	make_structs(jvm);
	make_sizes(jvm);
	make_numbers(jvm);
}

/* --- the library that the tables are in --- */

#define NAME_SIZE 48

static const char *const names[SF_HE_N] = {
#define X(name, symbol) "gHotSpotVM" symbol,
	SF_HOTSPOT_EXPORTS(X)
#undef X
};

struct library {
	Elf64_Ehdr header;
	Elf64_Shdr sections[3];         /* none, .dynsym, .dynstr */
	Elf64_Sym symbols[SF_HE_N + 1];
	char names[SF_HE_N + 1][NAME_SIZE];
};

int fake_library(const struct fake_jvm *jvm)
{
	struct library library = {
		.header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			    .e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = EV_CURRENT, .e_ehsize = sizeof(Elf64_Ehdr),
			    .e_shoff = offsetof(struct library, sections), .e_shentsize = sizeof(Elf64_Shdr),
			    .e_shnum = 3, .e_shstrndx = 2 },
	};
	const int fd = memfd_create("libjvm", MFD_CLOEXEC);

	library.sections[1] = (Elf64_Shdr){ .sh_type = SHT_DYNSYM, .sh_offset = offsetof(struct library, symbols),
					    .sh_size = sizeof(library.symbols), .sh_link = 2, .sh_entsize = sizeof(Elf64_Sym) };
	library.sections[2] = (Elf64_Shdr){ .sh_type = SHT_STRTAB, .sh_offset = offsetof(struct library, names),
					    .sh_size = sizeof(library.names) };
	for (unsigned i = 0; i < SF_HE_N; i++) {
		snprintf(library.names[i + 1], NAME_SIZE, "%s", names[i]);
		library.symbols[i + 1] = (Elf64_Sym){ .st_name = (i + 1) * NAME_SIZE, .st_shndx = 1,
						      .st_value = jvm->exports.at[i] };
	}
	if (fd < 0 || write(fd, &library, sizeof(library)) != sizeof(library))
		abort();
	return fd;
}
