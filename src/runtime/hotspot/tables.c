/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the symbols by which libjvm describes its structures, and reads the tables behind them. The tables are hostile input.
 *
 * Four tables, each an array of entries that ends with one whose name is NULL; where the columns
 * of an entry are, and how long it is, are exported beside them.
 */
#include "runtime/hotspot/tables.h"

#include <string.h>

#include "elf/file.h"
#include "runtime/hotspot/limits.h"

#define MAX_ENTRIES 16384
#define MAX_STRIDE 256
#define NAME_SIZE 96
#define PAGE 4096u
#define PREFIX "gHotSpotVM"
#define MAX_SYMBOLS (1 << 20) /* a libjvm has some thousands: the file is the target's, sections may overlap */

/* --- the symbols, in the file --- */

static const char *const export_names[SF_HE_N] = {
#define X(name, symbol) symbol,
	SF_HOTSPOT_EXPORTS(X)
#undef X
};

static void note_symbol(const char *name, uint64_t address, struct sf_hotspot_exports *ret)
{
	if (!name || strncmp(name, PREFIX, strlen(PREFIX)) != 0)
		return;
	for (size_t i = 0; i < SF_HE_N; i++) {
		if (strcmp(name + strlen(PREFIX), export_names[i]) == 0)
			ret->at[i] = address;
	}
}

static void note_symbols(Elf *elf, Elf_Scn *section, uint64_t bias, int *left,
			 struct sf_hotspot_exports *ret)
{
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Shdr header;
	GElf_Sym symbol;

	if (!data || !gelf_getshdr(section, &header))
		return;
	for (int i = 0; *left > 0 && gelf_getsym(data, i, &symbol); i++, --*left) {
		if (symbol.st_shndx != SHN_UNDEF)
			note_symbol(elf_strptr(elf, header.sh_link, symbol.st_name),
				    bias + symbol.st_value, ret);
	}
}

bool sf_hotspot_exports(int fd, uint64_t bias, struct sf_hotspot_exports *ret,
			struct sf_error *err)
{
	Elf_Scn *section = NULL;
	int left = MAX_SYMBOLS;
	struct sf_elf file;
	GElf_Shdr header;

	*ret = (struct sf_hotspot_exports){ 0 };
	if (!sf_elf_open(fd, &file, err))
		return false;
	while (left > 0 && (section = elf_nextscn(file.elf, section))) {
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_DYNSYM)
			note_symbols(file.elf, section, bias, &left, ret);
	}
	sf_elf_close(&file);
	for (size_t i = 0; i < SF_HE_N; i++) {
		if (!ret->at[i])
			return sf_fail(err, SF_E_UNSUPPORTED, "its libjvm does not export " PREFIX
				       "%s: it is no HotSpot", export_names[i]);
	}
	return true;
}

/* --- the tables, in the process --- */

bool sf_hotspot_read_string(const struct sf_reader *memory, uint64_t address, char *ret,
			    size_t size)
{
	size_t n = 0;

	while (address && n < size - 1) {
		size_t room = PAGE - (size_t)((address + n) % PAGE), want = size - 1 - n;
		char *end;

		if (want > room)
			want = room;
		if (want > 64)
			want = 64;
		if (!sf_read(memory, ret + n, address + n, want))
			break;
		end = memchr(ret + n, 0, want);
		if (end)
			return true;
		n += want;
	}
	ret[n] = 0;
	return n > 0;
}

struct entry {
	const struct sf_reader *memory;
	uint64_t columns[SF_HE_N];    /* values of the exported variables */
	uint8_t bytes[MAX_STRIDE];
	uint64_t stride;
};

static uint64_t column(const struct entry *entry, enum sf_hotspot_export which, unsigned width)
{
	uint64_t at = entry->columns[which], value = 0;

	if (at <= entry->stride - width)
		memcpy(&value, entry->bytes + at, width);
	return value;
}

static bool column_text(const struct entry *entry, enum sf_hotspot_export which,
			char ret[NAME_SIZE])
{
	ret[0] = 0;
	return sf_hotspot_read_string(entry->memory, column(entry, which, 8), ret, NAME_SIZE);
}

/* Whether `name` is one of the words that `list` has between bars. */
static bool is_listed(const char *list, const char *name)
{
	const size_t n = strlen(name);

	for (const char *word = list; word; word++) {
		if (strncmp(word, name, n) == 0 && (word[n] == 0 || word[n] == '|'))
			return true;
		word = strchr(word, '|');
		if (!word)
			break;
	}
	return false;
}

/*
 * The names of integer types in the tables, and their widths (negative: signed). Other types, pointers
 * above all, have the expected width.
 */
static const struct {
	const char *names;
	int width;
} types[] = {
	{ "int|jint|int32_t|pid_t", -4 },
	{ "uint|juint|u4|uint32_t|unsigned int|unsigned|const uint", 4 },
	{ "short|jshort|int16_t", -2 },
	{ "u2|jushort|uint16_t|unsigned short", 2 },
	{ "u1|bool|unsigned char|uint8_t", 1 },
};

static struct sf_hotspot_field make_field(const struct entry *entry, int width)
{
	char text[NAME_SIZE];

	column_text(entry, SF_HE_STRUCT_TEXT, text);
	/* The level of compilation is an int or a byte: its first byte tells. */
	for (size_t i = 0; text[0] && width != 1 && i < sizeof(types) / sizeof(types[0]); i++) {
		if (is_listed(types[i].names, text))
			width = types[i].width;
	}
	return (struct sf_hotspot_field){
		.at = column(entry, SF_HE_STRUCT_STATIC, 4) ?
			      column(entry, SF_HE_STRUCT_ADDRESS, 8) :
			      column(entry, SF_HE_STRUCT_OFFSET, 8),
		.width = (uint8_t)(width < 0 ? -width : width),
		.is_signed = width < 0,
		.is_static = column(entry, SF_HE_STRUCT_STATIC, 4) != 0,
	};
}

static const struct {
	const char *types, *fields;
	int width;
} wanted_fields[SF_HS_N_FIELDS] = {
#define X(name, types, fields, width) { types, fields, width },
	SF_HOTSPOT_FIELDS(X)
#undef X
};

static void note_field(const struct entry *entry, struct sf_hotspot *ret)
{
	char type[NAME_SIZE], name[NAME_SIZE];

	if (!column_text(entry, SF_HE_STRUCT_TYPE, type) ||
	    !column_text(entry, SF_HE_STRUCT_FIELD, name))
		return;
	for (size_t i = 0; i < SF_HS_N_FIELDS; i++) {
		if (!ret->fields[i].width && is_listed(wanted_fields[i].types, type) &&
		    is_listed(wanted_fields[i].fields, name))
			ret->fields[i] = make_field(entry, wanted_fields[i].width);
	}
}

static void note_size(const struct entry *entry, struct sf_hotspot *ret)
{
	static const char *const wanted[SF_HS_N_SIZES] = {
#define X(name, types) types,
		SF_HOTSPOT_SIZES(X)
#undef X
	};
	uint64_t size = column(entry, SF_HE_TYPE_SIZE, 8);
	char name[NAME_SIZE];

	if (!column_text(entry, SF_HE_TYPE_NAME, name) || size > UINT32_MAX)
		return;
	for (size_t i = 0; i < SF_HS_N_SIZES; i++) {
		if (is_listed(wanted[i], name))
			ret->sizes[i] = (uint32_t)size;
	}
}

static const struct {
	const char *names;
	int64_t otherwise;
} wanted_numbers[SF_HS_N_NUMBERS] = {
#define X(name, constants, otherwise) { constants, otherwise },
	SF_HOTSPOT_NUMBERS(X)
#undef X
};

static void note_number(const char *name, int64_t value, struct sf_hotspot *ret)
{
	for (size_t i = 0; i < SF_HS_N_NUMBERS; i++) {
		if (is_listed(wanted_numbers[i].names, name))
			ret->numbers[i] = value;
	}
}

static void note_int(const struct entry *entry, struct sf_hotspot *ret)
{
	char name[NAME_SIZE];

	if (column_text(entry, SF_HE_INT_NAME, name))
		note_number(name, (int32_t)column(entry, SF_HE_INT_VALUE, 4), ret);
}

static void note_long(const struct entry *entry, struct sf_hotspot *ret)
{
	char name[NAME_SIZE];

	if (column_text(entry, SF_HE_LONG_NAME, name))
		note_number(name, (int64_t)column(entry, SF_HE_LONG_VALUE, 8), ret);
}

static const struct table {
	enum sf_hotspot_export start, name, stride;
	void (*note)(const struct entry *entry, struct sf_hotspot *ret);
} tables[] = {
	{ SF_HE_STRUCTS, SF_HE_STRUCT_TYPE, SF_HE_STRUCT_STRIDE, note_field },
	{ SF_HE_TYPES, SF_HE_TYPE_NAME, SF_HE_TYPE_STRIDE, note_size },
	{ SF_HE_INTS, SF_HE_INT_NAME, SF_HE_INT_STRIDE, note_int },
	{ SF_HE_LONGS, SF_HE_LONG_NAME, SF_HE_LONG_STRIDE, note_long },
};

static bool read_table(struct entry *entry, const struct table *table, struct sf_hotspot *ret)
{
	uint64_t at = entry->columns[table->start];

	entry->stride = entry->columns[table->stride];
	if (!at || entry->stride < 16 || entry->stride > MAX_STRIDE)
		return false;
	for (unsigned i = 0; i < MAX_ENTRIES; i++, at += entry->stride) {
		if (!sf_read(entry->memory, entry->bytes, at, entry->stride))
			return false;
		if (!column(entry, table->name, 8))
			return true;
		table->note(entry, ret);
	}
	return false;
}

bool sf_hotspot_read_tables(const struct sf_reader *memory,
			    const struct sf_hotspot_exports *exports, struct sf_hotspot *ret,
			    struct sf_error *err)
{
	struct entry entry = { .memory = memory };

	for (size_t i = 0; i < SF_HE_N; i++) {
		if (!sf_read_u64(memory, exports->at[i], &entry.columns[i]))
			return sf_fail(err, SF_E_GONE, "the tables of its libjvm cannot be read");
	}
	for (size_t i = 0; i < SF_HS_N_NUMBERS; i++)
		ret->numbers[i] = wanted_numbers[i].otherwise;
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		if (!read_table(&entry, &tables[i], ret))
			return sf_fail(err, SF_E_GONE, "a table of its libjvm makes no sense");
	}
	sf_hotspot_limit(ret);
	return true;
}
