/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the headers of the file of a .NET assembly. Offsets of fields: Microsoft, "PE Format"; the
 * CLI header: ECMA-335, II.25.3.3; the entries of the debug directory for portable PDBs: the
 * .NET runtime's "PE/COFF Specification Additions".
 */
#include "runtime/coreclr/image.h"

#include <zlib.h>

#include "base/block.h"

enum { DEBUG_DIRECTORY = 6, CLI_DIRECTORY = 14 };
enum { CODEVIEW = 2, EMBEDDED_PDB = 17 }; /* types of debug entries */

#define PORTABLE 0x504d /* the minor version of a CodeView entry for a portable PDB */
#define DEBUG_ENTRY 28
#define MAX_DEBUG_ENTRIES 16
#define MAX_PDB (256u << 20)

/* A cursor over the whole image that stands at an offset. */
static struct sf_bytes at_offset(const struct sf_clr_image *image, uint64_t offset)
{
	struct sf_bytes bytes = image->bytes;

	sf_bytes_take(&bytes, offset);
	return bytes;
}

static void open_sections(struct sf_clr_image *image, struct sf_bytes in, uint32_t n)
{
	for (uint32_t i = 0; i < n && i < SF_CLR_MAX_SECTIONS; i++) {
		struct sf_clr_section *section = &image->sections[image->n_sections];
		uint32_t size, size_in_file;

		sf_bytes_take(&in, 8);
		size = sf_bytes_u32(&in);
		section->rva = sf_bytes_u32(&in);
		size_in_file = sf_bytes_u32(&in);
		section->offset = sf_bytes_u32(&in);
		sf_bytes_take(&in, 16);
		/* Bytes of the section that are not in the file are zero in memory; no table of this file needs them. */
		section->size = image->in_memory || size < size_in_file ? size : size_in_file;
		if (!in.bad)
			image->n_sections++;
	}
}

bool sf_clr_image_open(struct sf_clr_image *ret, const void *bytes, size_t size, bool in_memory)
{
	struct sf_bytes in = sf_bytes_of(bytes, size), optional;
	uint32_t n_sections, optional_size;
	bool is_wide;

	*ret = (struct sf_clr_image){ .bytes = in, .in_memory = in_memory };
	if (sf_bytes_number(&in, 2) != 0x5a4d) /* "MZ" */
		return false;
	in = at_offset(ret, 0x3c);
	in = at_offset(ret, sf_bytes_u32(&in));
	if (sf_bytes_u32(&in) != 0x4550) /* "PE" */
		return false;
	sf_bytes_take(&in, 2); /* the machine, which differs between systems */
	n_sections = (uint32_t)sf_bytes_number(&in, 2);
	ret->stamp = sf_bytes_u32(&in);
	sf_bytes_take(&in, 8);
	optional_size = (uint32_t)sf_bytes_number(&in, 2);
	sf_bytes_take(&in, 2);
	optional = in;
	sf_bytes_take(&in, optional_size);
	if (in.bad)
		return false;
	open_sections(ret, in, n_sections);
	is_wide = sf_bytes_number(&optional, 2) == 0x20b;
	sf_bytes_take(&optional, is_wide ? 110 : 94);
	ret->directories = optional;
	return !optional.bad;
}

/* The bytes at an RVA; none, if they do not all lie in the image. */
static struct sf_bytes bytes_at(const struct sf_clr_image *image, uint32_t rva, uint32_t size)
{
	struct sf_bytes none = { 0 }, bytes;
	uint64_t offset = rva;
	const uint8_t *start;

	for (uint32_t i = 0; !image->in_memory; i++) {
		const struct sf_clr_section *section = &image->sections[i];

		if (i == image->n_sections)
			return none;
		if (rva >= section->rva && rva - section->rva < section->size &&
		    size <= section->size - (rva - section->rva)) {
			offset = (uint64_t)section->offset + (rva - section->rva);
			break;
		}
	}
	bytes = at_offset(image, offset);
	start = sf_bytes_take(&bytes, size);
	if (!start || !size || (image->fetch && !image->fetch(image->fetch_arg, start, size)))
		return none;
	return sf_bytes_of(start, size);
}

/* The bytes to which an entry of the data directory refers. */
static struct sf_bytes directory(const struct sf_clr_image *image, unsigned number)
{
	struct sf_bytes entry = image->directories;
	uint32_t rva, size;

	sf_bytes_take(&entry, (uint64_t)number * 8);
	rva = sf_bytes_u32(&entry);
	size = sf_bytes_u32(&entry);
	return bytes_at(image, rva, entry.bad ? 0 : size);
}

struct sf_bytes sf_clr_image_metadata(const struct sf_clr_image *image)
{
	struct sf_bytes header = directory(image, CLI_DIRECTORY);
	uint32_t rva, size;

	sf_bytes_take(&header, 8);
	rva = sf_bytes_u32(&header);
	size = sf_bytes_u32(&header);
	return bytes_at(image, rva, header.bad ? 0 : size);
}

struct debug_entry {
	uint32_t stamp, minor;
	struct sf_bytes data;
};

/* The first debug entry of a type; its data is empty if there is none. */
static struct debug_entry find_debug(const struct sf_clr_image *image, uint32_t type, uint32_t minor)
{
	struct sf_bytes entries = directory(image, DEBUG_DIRECTORY);

	for (unsigned i = 0; i < MAX_DEBUG_ENTRIES && sf_bytes_left(&entries) >= DEBUG_ENTRY; i++) {
		struct debug_entry entry = { 0 };
		uint32_t its_type, size, rva;

		sf_bytes_take(&entries, 4);
		entry.stamp = sf_bytes_u32(&entries);
		sf_bytes_take(&entries, 2);
		entry.minor = (uint32_t)sf_bytes_number(&entries, 2);
		its_type = sf_bytes_u32(&entries);
		size = sf_bytes_u32(&entries);
		rva = sf_bytes_u32(&entries);
		sf_bytes_take(&entries, 4);
		if (its_type == type && (!minor || entry.minor == minor)) {
			entry.data = bytes_at(image, rva, size);
			return entry;
		}
	}
	return (struct debug_entry){ 0 };
}

bool sf_clr_image_pdb_name(const struct sf_clr_image *image, struct sf_clr_pdb_name *ret)
{
	struct debug_entry entry = find_debug(image, CODEVIEW, PORTABLE);
	const uint8_t *guid;

	if (sf_bytes_u32(&entry.data) != 0x53445352) /* "RSDS" */
		return false;
	guid = sf_bytes_take(&entry.data, 16);
	sf_bytes_take(&entry.data, 4);
	ret->path = sf_bytes_string(&entry.data);
	if (!guid || !ret->path)
		return false;
	memcpy(ret->id, guid, 16);
	memcpy(ret->id + 16, &entry.stamp, 4);
	return true;
}

/* Decompresses raw deflate data (RFC 1951) of a known size; whether all of it was there. */
static bool inflate_all(struct sf_bytes in, uint8_t *ret, uint32_t size)
{
	z_stream stream = { .next_in = (z_const Bytef *)(uintptr_t)in.at,
			    .avail_in = (uInt)sf_bytes_left(&in),
			    .next_out = ret,
			    .avail_out = size };
	bool good;

	if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
		return false;
	good = inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.avail_out == 0;
	inflateEnd(&stream);
	return good;
}

uint8_t *sf_clr_image_embedded_pdb(const struct sf_clr_image *image, size_t *size_ret)
{
	struct sf_bytes data = find_debug(image, EMBEDDED_PDB, 0).data;
	uint8_t *bytes;
	uint32_t size;

	if (sf_bytes_u32(&data) != 0x4244504d) /* "MPDB" */
		return NULL;
	size = sf_bytes_u32(&data);
	/* Deflate makes at most 1,032 bytes of one. */
	if (!size || size > MAX_PDB || size / 1032 > sf_bytes_left(&data))
		return NULL;
	bytes = sf_block_new(size);
	if (!bytes || !inflate_all(data, bytes, size)) {
		sf_block_free(bytes);
		return NULL;
	}
	*size_ret = size;
	return bytes;
}
