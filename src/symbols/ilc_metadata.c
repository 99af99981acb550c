/* SPDX-License-Identifier: Apache-2.0 */
/* Reads records of ILC's metadata, field by field, in the order of SchemaDef.cs. */
#include "symbols/ilc_metadata.h"

#define SIGNATURE 0xdeaddffdu        /* NativeMetadataReader.cs */
#define MAX_LIST 65536u              /* handles of one record; a type of the class library has some 2,000 methods at most */

bool sf_ilc_metadata_open(const struct sf_ilc_module *module, struct sf_ilc_metadata *ret)
{
	struct sf_bytes bytes;

	*ret = (struct sf_ilc_metadata){ module->tables[SF_ILC_METADATA], module->offset_bits };
	bytes = sf_ilc_at(&ret->bytes, 0);
	return sf_bytes_u32(&bytes) == SIGNATURE;
}

struct sf_ilc_handle sf_ilc_handle_of(const struct sf_ilc_metadata *metadata, uint32_t value)
{
	return (struct sf_ilc_handle){ value >> metadata->offset_bits, value & ((1u << metadata->offset_bits) - 1) };
}

/* In records the type is in the lower bits, so that small offsets have few bytes. */
struct sf_ilc_handle sf_ilc_handle(const struct sf_ilc_metadata *metadata, struct sf_bytes *bytes)
{
	const uint32_t value = sf_ilc_number(bytes);
	const unsigned type_bits = 32 - metadata->offset_bits;

	return (struct sf_ilc_handle){ value & ((1u << type_bits) - 1), value >> type_bits };
}

struct sf_piece sf_ilc_string(const struct sf_ilc_metadata *metadata, uint32_t offset)
{
	struct sf_bytes bytes = sf_ilc_at(&metadata->bytes, offset);
	const uint32_t n = offset ? sf_ilc_number(&bytes) : 0;
	const uint8_t *at = n ? sf_bytes_take(&bytes, n) : NULL;

	return at ? (struct sf_piece){ (const char *)at, strnlen((const char *)at, n) } : (struct sf_piece){ "", 0 };
}

uint32_t sf_ilc_list(struct sf_bytes *bytes)
{
	const uint32_t n = sf_ilc_number(bytes);

	bytes->bad |= n > MAX_LIST;
	return bytes->bad ? 0 : n;
}

void sf_ilc_skip_list(struct sf_bytes *bytes)
{
	for (uint32_t n = sf_ilc_list(bytes); n && !bytes->bad; n--)
		sf_ilc_number(bytes);
}

bool sf_ilc_type_definition(const struct sf_ilc_metadata *metadata, uint32_t offset, struct sf_ilc_type_definition *ret)
{
	struct sf_bytes bytes = sf_ilc_at(&metadata->bytes, offset);
	const uint8_t *start = bytes.at;

	*ret = (struct sf_ilc_type_definition){ 0 };
	sf_ilc_number(&bytes);       /* flags */
	sf_ilc_number(&bytes);       /* the base type */
	ret->name_space = sf_ilc_number(&bytes);
	ret->name = sf_ilc_number(&bytes);
	sf_ilc_number(&bytes);       /* size */
	sf_ilc_number(&bytes);       /* alignment */
	ret->enclosing = sf_ilc_number(&bytes);
	ret->nested = bytes;
	sf_ilc_skip_list(&bytes);
	ret->methods = bytes;
	for (unsigned i = 0; i < 4; i++) /* methods, fields, properties, events */
		sf_ilc_skip_list(&bytes);
	ret->parameters = bytes;
	ret->size = (size_t)(bytes.at - start);
	return !bytes.bad;
}

bool sf_ilc_method_record(const struct sf_ilc_metadata *metadata, uint32_t offset, struct sf_ilc_method_record *ret)
{
	struct sf_bytes bytes = sf_ilc_at(&metadata->bytes, offset);

	*ret = (struct sf_ilc_method_record){ 0 };
	sf_ilc_number(&bytes);       /* flags */
	sf_ilc_number(&bytes);       /* flags of the implementation */
	ret->name = sf_ilc_number(&bytes);
	ret->signature = sf_ilc_number(&bytes);
	sf_ilc_skip_list(&bytes);    /* the parameters' own records */
	ret->parameters = bytes;
	return !bytes.bad;
}
