/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the entries of .eh_frame and .debug_frame (CIEs and FDEs), and their encoded pointers. Every byte is hostile input. */
#include "elf/cfi_entries.h"

#include <dwarf.h>
#include <string.h>

/*
 * A CIE is decoded once per cache miss of a caller, so a hostile file with long ones that
 * alternate would cost the square of its size. Real programs are below 40 bytes, real augmentation
 * strings below 8.
 */
#define MAX_INITIAL 1024
#define MAX_AUGMENTATION 64

#define FORMAT_MASK 0x0f
#define BASE_MASK 0x70

static bool read_value(const struct sf_pointers *pointers, struct sf_bytes *bytes, uint8_t encoding,
		      uint64_t *ret)
{
	/* Bytes of each fixed-size format; 0: none. */
	static const uint8_t sizes[FORMAT_MASK + 1] = {
		[DW_EH_PE_udata2] = 2, [DW_EH_PE_udata4] = 4, [DW_EH_PE_udata8] = 8,
		[DW_EH_PE_sdata2] = 2, [DW_EH_PE_sdata4] = 4, [DW_EH_PE_sdata8] = 8,
	};
	uint8_t format = encoding & FORMAT_MASK;
	size_t size = format == DW_EH_PE_absptr ? pointers->address_size : sizes[format];

	if (encoding == DW_EH_PE_omit)
		return false;
	if (format == DW_EH_PE_uleb128 || format == DW_EH_PE_sleb128)
		*ret = sf_bytes_leb(bytes, format == DW_EH_PE_sleb128);
	else if (size)
		*ret = sf_bytes_number(bytes, size);
	else
		return false;
	if (size && format & DW_EH_PE_signed)
		*ret = (uint64_t)sf_sign_extend(*ret, size);
	return !bytes->bad;
}

static uint64_t address_at(const struct sf_pointers *pointers, const uint8_t *at)
{
	return pointers->address + (uint64_t)(at - pointers->start);
}

/* Moves on to the next multiple of the address size (DW_EH_PE_aligned). */
static void align(const struct sf_pointers *pointers, struct sf_bytes *bytes)
{
	uint64_t past = address_at(pointers, bytes->at) % pointers->address_size;

	if (past)
		sf_bytes_take(bytes, pointers->address_size - past);
}

/*
 * Finds the base address for an encoded value at `at`. False if there is none: DW_EH_PE_funcrel makes
 * no sense for the address of the function itself.
 */
static bool find_base(const struct sf_pointers *pointers, const uint8_t *at, uint8_t encoding,
		      uint64_t *ret)
{
	switch (encoding & BASE_MASK) {
	case 0:
	case DW_EH_PE_aligned:
		*ret = 0;
		return true;
	case DW_EH_PE_pcrel:
		*ret = address_at(pointers, at);
		return true;
	case DW_EH_PE_textrel:
		*ret = pointers->text;
		return true;
	case DW_EH_PE_datarel:
		*ret = pointers->data;
		return true;
	}
	return false;
}

static bool read_field(const struct sf_pointers *pointers, struct sf_bytes *bytes,
		       uint8_t encoding, uint64_t *ret)
{
	if ((encoding & BASE_MASK) != DW_EH_PE_aligned)
		return read_value(pointers, bytes, encoding, ret);
	align(pointers, bytes);
	return read_value(pointers, bytes, DW_EH_PE_absptr, ret);
}

bool sf_pointer_read(const struct sf_pointers *pointers, struct sf_bytes *bytes, uint8_t encoding,
		     uint64_t *ret)
{
	uint64_t base, value;

	if (encoding == DW_EH_PE_omit || encoding & DW_EH_PE_indirect)
		return false;
	if (!find_base(pointers, bytes->at, encoding, &base) ||
	    !read_field(pointers, bytes, encoding, &value))
		return false;
	*ret = base + value;
	if (pointers->address_size == 4)
		*ret = (uint32_t)*ret;
	return true;
}

/* Skips a pointer, indirect ones too. False if the encoding is unknown. */
static bool skip_pointer(const struct sf_pointers *pointers, struct sf_bytes *bytes, uint8_t encoding)
{
	uint64_t unused;

	if (encoding == DW_EH_PE_omit)
		return true;
	return read_field(pointers, bytes, encoding & (uint8_t)~DW_EH_PE_indirect, &unused);
}

/* An entry: its offsets, and its bytes behind the id. */
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
 * Reads the data of one letter behind "z" in an augmentation string. False if the letter is unknown:
 * the data of the following letters cannot be read then.
 */
static bool read_letter(char letter, struct sf_bytes *data, struct sf_cie *cie)
{
	switch (letter) {
	case 'R': /* encoding of the FDEs' addresses */
		cie->encoding = sf_bytes_u8(data);
		return true;
	case 'P': /* personality routine: an encoding, and a pointer so encoded */
		return skip_pointer(&cie->pointers, data, sf_bytes_u8(data));
	case 'L': /* encoding of the FDEs' language-specific data */
		cie->data_encoding = sf_bytes_u8(data);
		return true;
	case 'S': /* a signal frame */
		cie->signal = true;
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
 * Reads the augmentation's data, if the string says that there is any. Without "z" the size of the data
 * is unknown. Then only the empty string, and "S", "B" and "G" without data, are valid.
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
	const uint8_t *start = bytes.at;
	uint8_t version = sf_bytes_u8(&bytes);
	const char *augmentation = sf_bytes_string(&bytes);

	if (!is_version(version) || !augmentation || bytes.at - start > MAX_AUGMENTATION)
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

/* The augmentation data of an FDE begins with the address of the language's data; that is 0 where it is stored as 0. */
static bool skip_augmentation(const struct sf_cie *cie, struct sf_bytes *bytes, uint64_t *lsda_ret)
{
	const uint64_t size = sf_bytes_uleb(bytes);
	const uint8_t *at = sf_bytes_take(bytes, size);
	struct sf_bytes data = sf_bytes_of(at, at ? size : 0), stored = data;
	uint64_t value;

	*lsda_ret = 0;
	if (cie->data_encoding != DW_EH_PE_omit && read_value(&cie->pointers, &stored, cie->data_encoding & FORMAT_MASK, &value) && value)
		sf_pointer_read(&cie->pointers, &data, cie->data_encoding, lsda_ret);
	return at;
}

/* The range of an FDE; leaves the cursor at its instructions. */
static bool read_range(const struct sf_cie *cie, struct sf_bytes *bytes, uint64_t *start,
		       uint64_t *end, uint64_t *lsda)
{
	uint64_t size;

	sf_bytes_take(bytes, cie->segment_size);
	if (!sf_pointer_read(&cie->pointers, bytes, cie->encoding, start) ||
	    !read_value(&cie->pointers, bytes, cie->encoding, &size))
		return false;
	*lsda = 0;
	if (cie->has_augmentation_data && !skip_augmentation(cie, bytes, lsda))
		return false;
	return !bytes->bad && !__builtin_add_overflow(*start, size, end);
}

bool sf_cie_read(const struct sf_cfi *cfi, uint64_t offset, struct sf_cie *ret)
{
	struct entry entry;

	*ret = (struct sf_cie){
		.encoding = DW_EH_PE_absptr, .data_encoding = DW_EH_PE_omit,
		.pointers = {
			.start = cfi->bytes, .address = cfi->address,
			.text = cfi->text, .data = cfi->data, .address_size = 8,
		},
	};
	return offset < cfi->size && read_entry(cfi, offset, &entry) && !entry.empty &&
	       entry.is_cie && decode_cie(entry.bytes, ret);
}

bool sf_cfi_next(const struct sf_cfi *cfi, struct sf_cfi_cursor *cursor)
{
	struct entry entry;

	while (cursor->offset < cfi->size) {
		if (!read_entry(cfi, cursor->offset, &entry) ||
		    (entry.empty && cfi->ends_at_zero))
			return false;
		cursor->offset = entry.next;
		if (entry.empty || entry.bytes.bad || entry.is_cie)
			continue;
		cursor->cie = cfi->eh ? entry.id_offset - entry.id : entry.id;
		cursor->bytes = entry.bytes;
		return true;
	}
	return false;
}

bool sf_fde_read(const struct sf_cfi_cursor *cursor, const struct sf_cie *cie, struct sf_fde *ret)
{
	struct sf_bytes bytes = cursor->bytes;
	uint64_t start, end, lsda;

	if (!read_range(cie, &bytes, &start, &end, &lsda))
		return false;
	*ret = (struct sf_fde){
		.cie = cursor->cie, .start = start, .end = end, .lsda = lsda, .program = bytes,
	};
	return true;
}
