/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the encoded pointers (DW_EH_PE_*) of .eh_frame and .eh_frame_hdr. */
#include "elf/cfi_entries.h"

#include <dwarf.h>

#define FORMAT_MASK 0x0f
#define BASE_MASK 0x70

bool sf_pointer_value(const struct sf_pointers *pointers, struct sf_bytes *bytes, uint8_t encoding,
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

static uint64_t address_of(const struct sf_pointers *pointers, const uint8_t *at)
{
	return pointers->address + (uint64_t)(at - pointers->start);
}

/* Moves on to the next multiple of the address size (DW_EH_PE_aligned). */
static void align(const struct sf_pointers *pointers, struct sf_bytes *bytes)
{
	uint64_t past = address_of(pointers, bytes->at) % pointers->address_size;

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
		*ret = address_of(pointers, at);
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
		return sf_pointer_value(pointers, bytes, encoding, ret);
	align(pointers, bytes);
	return sf_pointer_value(pointers, bytes, DW_EH_PE_absptr, ret);
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

bool sf_pointer_skip(const struct sf_pointers *pointers, struct sf_bytes *bytes, uint8_t encoding)
{
	uint64_t unused;

	if (encoding == DW_EH_PE_omit)
		return true;
	return read_field(pointers, bytes, encoding & (uint8_t)~DW_EH_PE_indirect, &unused);
}
