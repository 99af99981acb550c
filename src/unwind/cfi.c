/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries are read in the order of the file, each once, and their rows go straight to the
 * collector: memory does not grow with the section. CIEs are decoded when an FDE first needs
 * them and kept in a small direct-mapped cache; linkers leave few of them, next to their FDEs.
 */
#include "unwind/cfi.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "unwind/cfa.h"

/*
 * Initial instructions are run once per cache miss, so a hostile file with a long list and
 * alternating CIEs would cost the square of its size. Real ones are below 40 bytes.
 */
#define MAX_INITIAL 1024

#define N_CACHED 64

struct cached {
	bool used, good;
	uint64_t offset;
	struct sf_cie cie;
};

struct parser {
	const struct sf_cfi *cfi;
	const struct sf_arch *arch;
	struct sf_rows *rows;
	bool no_memory;
	struct cached cache[N_CACHED];
};

/* One entry: its place, and its bytes behind the id. */
struct entry {
	uint64_t offset;       /* of its length field */
	uint64_t next;         /* of the next entry's; the section's size behind the last */
	uint64_t id_offset;
	uint64_t id;
	bool is_cie;
	bool empty;            /* length 0 */
	struct sf_bytes bytes;
};

static uint64_t offset_of(const struct sf_cfi *cfi, const uint8_t *at)
{
	return (uint64_t)(at - cfi->bytes);
}

/*
 * The length that starts an entry; *id_size becomes the size of its id. In .eh_frame
 * the id has 4 bytes even behind a 64-bit length. 0xfffffff0 and up are reserved (section 7.4).
 */
static bool read_length(const struct sf_cfi *cfi, struct sf_bytes *bytes, uint64_t *length,
			size_t *id_size)
{
	*length = sf_bytes_u32(bytes);
	*id_size = 4;
	if (*length == 0xffffffff) {
		*length = sf_bytes_number(bytes, 8);
		*id_size = cfi->eh ? 4 : 8;
	} else if (*length >= 0xfffffff0) {
		return false;
	}
	return !bytes->bad && *length <= sf_bytes_left(bytes);
}

static bool is_cie_id(const struct sf_cfi *cfi, uint64_t id, size_t id_size)
{
	if (cfi->eh)
		return id == 0;
	return id == (id_size == 8 ? DW_CIE_ID_64 : DW_CIE_ID_32);
}

/* The entry at `offset`; false if none fits there. */
static bool read_entry(const struct sf_cfi *cfi, uint64_t offset, struct entry *ret)
{
	struct sf_bytes bytes = { .at = cfi->bytes + offset, .end = cfi->bytes + cfi->size };
	uint64_t length;
	size_t id_size;

	if (!read_length(cfi, &bytes, &length, &id_size))
		return false;
	ret->offset = offset;
	ret->empty = length == 0;
	ret->next = offset_of(cfi, bytes.at) + length;
	bytes.end = bytes.at + length;
	ret->id_offset = offset_of(cfi, bytes.at);
	ret->id = sf_bytes_number(&bytes, id_size);
	ret->is_cie = is_cie_id(cfi, ret->id, id_size);
	ret->bytes = bytes;
	return true;
}

/*
 * What one letter of an augmentation string behind "z" means. False when the letter is unknown:
 * what comes behind it cannot be read then.
 */
static bool read_letter(char letter, struct sf_bytes *data, struct sf_cie *cie)
{
	switch (letter) {
	case 'R': /* encoding of the FDEs' addresses */
		cie->encoding = sf_bytes_u8(data);
		return true;
	case 'P': /* personality routine: an encoding, and a pointer so encoded */
		return sf_pointer_skip(&cie->pointers, data, sf_bytes_u8(data));
	case 'L': /* encoding of the FDEs' language-specific data */
		sf_bytes_u8(data);
		return true;
	case 'S': /* a signal frame */
		cie->flags |= SF_RULES_SIGNAL;
		return true;
	case 'B': /* aarch64: signed with the B key */
	case 'G': /* aarch64: memory tagging in use */
		return true;
	}
	return false;
}

static bool read_letters(const char *letters, struct sf_bytes *data, struct sf_cie *cie)
{
	for (; *letters; letters++) {
		if (!read_letter(*letters, data, cie))
			break;
	}
	/* An unknown letter matters only if one that we need hides behind it. */
	return !data->bad && !strpbrk(letters, "RS");
}

/*
 * The augmentation's data, if the string says that there is any. Without "z" nobody knows how long
 * it would be, so then only the empty string, and "S", "B" and "G" without data, make sense.
 */
static bool read_augmentation(const char *string, struct sf_bytes *bytes, struct sf_cie *cie)
{
	struct sf_bytes data;
	uint64_t size;

	if (string[0] != 'z') {
		if (strspn(string, "SBG") != strlen(string))
			return false;
		return read_letters(string, bytes, cie);
	}
	cie->has_augmentation_data = true;
	size = sf_bytes_uleb(bytes);
	data.at = sf_bytes_take(bytes, size);
	if (!data.at)
		return false;
	data.end = data.at + size;
	data.bad = false;
	return read_letters(string + 1, &data, cie);
}

static bool is_version(uint8_t version)
{
	return version == 1 || version == 3 || version == 4 || version == 5;
}

/* Versions 4 and 5 say how large addresses and segment selectors are. */
static bool read_sizes(uint8_t version, struct sf_bytes *bytes, struct sf_cie *cie)
{
	if (version < 4)
		return true;
	cie->pointers.address_size = sf_bytes_u8(bytes);
	cie->segment_size = sf_bytes_u8(bytes);
	return (cie->pointers.address_size == 4 || cie->pointers.address_size == 8) &&
	       cie->segment_size <= 8;
}

static bool decode_cie(struct sf_bytes bytes, struct sf_cie *cie)
{
	uint8_t version = sf_bytes_u8(&bytes);
	const char *augmentation = sf_bytes_string(&bytes);

	if (!is_version(version) || !augmentation)
		return false;
	if (strncmp(augmentation, "eh", 2) == 0) {
		/* gcc 2: an address of exception data, in front of everything else. */
		sf_bytes_take(&bytes, cie->pointers.address_size);
		augmentation += 2;
	}
	if (!read_sizes(version, &bytes, cie))
		return false;
	cie->code_align = sf_bytes_uleb(&bytes);
	cie->data_align = sf_bytes_sleb(&bytes);
	cie->return_column = version == 1 ? sf_bytes_u8(&bytes) : sf_bytes_uleb(&bytes);
	if (!read_augmentation(augmentation, &bytes, cie))
		return false;
	cie->program = bytes;
	return !bytes.bad && sf_bytes_left(&bytes) <= MAX_INITIAL;
}

static bool load_cie(struct parser *parser, uint64_t offset, struct sf_cie *ret)
{
	const struct sf_cfi *cfi = parser->cfi;
	enum sf_cfa_result result;
	struct entry entry;

	*ret = (struct sf_cie){
		.encoding = DW_EH_PE_absptr,
		.pointers = {
			.start = cfi->bytes, .address = cfi->address,
			.text = cfi->text, .data = cfi->data, .address_size = 8,
		},
	};
	if (offset >= cfi->size || !read_entry(cfi, offset, &entry) || entry.empty ||
	    !entry.is_cie || !decode_cie(entry.bytes, ret))
		return false;
	result = sf_cfa_start(parser->arch, ret, parser->rows);
	parser->no_memory = result == SF_CFA_NO_MEMORY;
	return result == SF_CFA_DONE;
}

/* The CIE at `offset`, or NULL if there is no good one. Valid until the next call. */
static const struct sf_cie *find_cie(struct parser *parser, uint64_t offset)
{
	struct cached *cached = &parser->cache[(offset ^ offset >> 6) / 4 % N_CACHED];

	if (!cached->used || cached->offset != offset) {
		cached->good = load_cie(parser, offset, &cached->cie);
		cached->offset = offset;
		cached->used = true;
	}
	return cached->good ? &cached->cie : NULL;
}

/* The range of an FDE; leaves the cursor at its instructions. */
static bool read_range(const struct sf_cie *cie, struct sf_bytes *bytes, uint64_t *start,
		       uint64_t *end)
{
	uint64_t size;

	sf_bytes_take(bytes, cie->segment_size);
	if (!sf_pointer_read(&cie->pointers, bytes, cie->encoding, start) ||
	    !sf_pointer_value(&cie->pointers, bytes, cie->encoding, &size))
		return false;
	if (cie->has_augmentation_data)
		sf_bytes_take(bytes, sf_bytes_uleb(bytes));
	return !bytes->bad && !__builtin_add_overflow(*start, size, end);
}

static void read_fde(struct parser *parser, const struct entry *entry)
{
	uint64_t cie_offset = parser->cfi->eh ? entry->id_offset - entry->id : entry->id;
	const struct sf_cie *cie = find_cie(parser, cie_offset);
	struct sf_bytes bytes = entry->bytes;
	enum sf_cfa_result result;
	uint64_t start, end;

	if (!cie || !read_range(cie, &bytes, &start, &end) ||
	    !sf_rows_begin(parser->rows, start, end))
		return;
	result = sf_cfa_run(parser->arch, cie, parser->rows, bytes, start, end);
	if (result == SF_CFA_NO_MEMORY || !sf_rows_end(parser->rows, result == SF_CFA_DONE))
		parser->no_memory = true;
}

static void read_entries(struct parser *parser)
{
	const struct sf_cfi *cfi = parser->cfi;
	struct entry entry;

	for (uint64_t offset = 0; offset < cfi->size && !parser->no_memory; offset = entry.next) {
		if (!read_entry(cfi, offset, &entry) || (entry.empty && cfi->ends_at_zero))
			return;
		if (!entry.empty && !entry.bytes.bad && !entry.is_cie)
			read_fde(parser, &entry);
	}
}

bool sf_cfi_read(const struct sf_cfi *cfi, const struct sf_arch *arch, struct sf_rows *rows,
		 struct sf_error *err)
{
	SF_CLEANUP(free) struct parser *parser = calloc(1, sizeof(*parser));

	if (!parser)
		return sf_fail_memory(err);
	parser->cfi = cfi;
	parser->arch = arch;
	parser->rows = rows;
	read_entries(parser);
	if (parser->no_memory || !sf_rows_settle(rows))
		return sf_fail_memory(err);
	return true;
}
