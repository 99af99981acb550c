/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a virtual machine's structures: fields by their description, methods, threads. */
#include "frozen/hotspot/hotspot.h"

#include "frozen/frozen.h"

bool sf_hotspot_get(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
		    enum sf_hotspot_field_name name, uint64_t base, uint64_t *ret)
{
	const struct sf_hotspot_field *field = &hotspot->fields[name];
	uint8_t bytes[8] = { 0 };

	if (!field->width || field->width > sizeof(bytes) ||
	    !sf_read(memory, bytes, field->is_static ? field->at : base + field->at, field->width))
		return false;
	*ret = sf_hotspot_widen(field, bytes);
	return true;
}

bool sf_hotspot_method_from(const struct sf_hotspot *hotspot, uint64_t address, uint64_t constant,
			    const uint8_t *bytes, struct sf_method *ret)
{
	const uint32_t size = hotspot->sizes[SF_HS_SIZE_CONST_METHOD];

	*ret = (struct sf_method){
		.address = address, .constant = constant,
		.pool = sf_hotspot_pick(hotspot, SF_HS_CONST_POOL, bytes, size, 0),
		.code_size = sf_hotspot_pick(hotspot, SF_HS_CONST_CODE_SIZE, bytes, size, 0),
	};
	return sf_hotspot_is_metadata(constant) && sf_hotspot_is_metadata(ret->pool);
}

bool sf_hotspot_method(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
		       uint64_t address, struct sf_method *ret)
{
	const uint32_t size = hotspot->sizes[SF_HS_SIZE_CONST_METHOD];
	uint8_t bytes[SF_HOTSPOT_MAX_CONST];
	uint64_t constant;

	return sf_hotspot_is_metadata(address) && size <= sizeof(bytes) &&
	       sf_hotspot_get(hotspot, memory, SF_HS_METHOD_CONST, address, &constant) &&
	       sf_hotspot_is_metadata(constant) && sf_read(memory, bytes, constant, size) &&
	       sf_hotspot_method_from(hotspot, address, constant, bytes, ret);
}

int32_t sf_hotspot_bci(const struct sf_hotspot *hotspot, const struct sf_method *method,
		       uint64_t bcp)
{
	/* The bytecodes follow the ConstMethod at once. */
	const uint64_t start = method->constant + hotspot->sizes[SF_HS_SIZE_CONST_METHOD];

	return bcp >= start && bcp - start < method->code_size ? (int32_t)(bcp - start) : -1;
}

bool sf_hotspot_is_thread(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
			  uint64_t thread, int32_t tid)
{
	uint64_t os, id;

	return sf_hotspot_get(hotspot, memory, SF_HS_THREAD_OS, thread, &os) && os &&
	       sf_hotspot_get(hotspot, memory, SF_HS_OS_ID, os, &id) && (int32_t)id == tid;
}
