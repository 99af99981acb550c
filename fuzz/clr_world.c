/* SPDX-License-Identifier: Apache-2.0 */
#include "clr_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sf_clr_description clr_description;
static uint8_t world[CLR_SIZE], memory_now[CLR_SIZE], *image;
static size_t image_size;
static struct sf_clr_metadata metadata;
static struct sf_clr_modules modules;

static bool read_memory(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size)
{
	(void)reader;
	if (addr >= CLR_DATA && addr - CLR_DATA <= CLR_SIZE && size <= CLR_SIZE - (addr - CLR_DATA)) {
		memcpy(ret, memory_now + (addr - CLR_DATA), size);
		return true;
	}
	/* The rest of the image's last page is 0. */
	if (addr < CLR_IMAGE || addr - CLR_IMAGE > 2 * image_size || size > 2 * image_size - (addr - CLR_IMAGE))
		return false;
	memcpy(ret, image + (addr - CLR_IMAGE), size);
	return true;
}

const struct sf_reader clr_memory = { .read = read_memory };

void clr_put(uint64_t at, uint64_t value)
{
	memcpy(world + (at - CLR_DATA), &value, sizeof(value));
}

static void set_layout(struct sf_clr_layout *layout)
{
	static const struct {
		uint16_t field, at;
	} fields[] = {
		{ SF_CLR_TABLE_FLAGS, 0 }, { SF_CLR_TABLE_FLAGS2, 8 }, { SF_CLR_TABLE_PARENT, 16 }, { SF_CLR_TABLE_MODULE, 24 },
		{ SF_CLR_TABLE_CANON, 40 }, { SF_CLR_TABLE_ARGUMENTS, 48 }, { SF_CLR_CLASS_FIELDS, 8 }, { SF_CLR_MODULE_BASE, 0 },
		{ SF_CLR_THREAD_STATE, 0 }, { SF_CLR_THREAD_OS_ID, 8 }, { SF_CLR_THREAD_OBJECT, 16 }, { SF_CLR_THREAD_ID, 24 },
		{ SF_CLR_DICTIONARY_N, 4 }, { SF_CLR_DICTIONARY_N_ARGUMENTS, 6 }, { SF_CLR_TYPE_KIND, 0 }, { SF_CLR_TYPE_OF, 16 },
	};

	memset(layout->fields, 0xff, sizeof(layout->fields));
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		layout->fields[fields[i].field] = fields[i].at;
}

static const char *name_of(uint32_t row)
{
	return sf_clr_string(&metadata, SF_CLR_TYPE_DEF, row, SF_CLR_TYPE_DEF_NAME);
}

uint32_t clr_type_row(const char *name)
{
	for (uint32_t row = 1; row <= sf_clr_n_rows(&metadata, SF_CLR_TYPE_DEF); row++) {
		if (strcmp(name_of(row), name) == 0)
			return row;
	}
	abort();
}

void clr_put_type(uint64_t table, const char *name, uint32_t n_before)
{
	uint32_t n = 0;

	clr_put(table + 8, (uint64_t)clr_type_row(name) << 8);
	clr_put(table + 24, CLR_MODULE);
	clr_put(table + 40, table + CLR_CLASS);
	clr_put(table + CLR_CLASS + 8, table + CLR_FIELDS);
	clr_put(table + CLR_OBJECT, table);
	for (uint32_t row = 1; row <= sf_clr_n_rows(&metadata, SF_CLR_FIELD); row++) {
		if (strcmp(name_of(sf_clr_field_owner(&metadata, row)), name) != 0)
			continue;
		clr_put(table + CLR_FIELDS + 16 * n, table);
		clr_put(table + CLR_FIELDS + 16 * n + 8, row | (uint64_t)(8 * (n_before + n)) << 32);
		n++;
	}
}

static bool read_image(void)
{
	FILE *file = fopen(CLR_TYPES, "rb");
	long size = -1;

	if (file && fseek(file, 0, SEEK_END) == 0)
		size = ftell(file);
	if (size > 0) {
		rewind(file);
		image_size = (size_t)size;
		image = calloc(2, image_size);
	}
	if (size > 0 && image && fread(image, 1, image_size, file) != image_size)
		size = -1;
	if (file)
		fclose(file);
	return size > 0 && image;
}

void clr_world_init(void)
{
	const struct sf_clr_module *found;

	if (!read_image())
		abort();
	set_layout(&clr_description.layout);
	clr_put(CLR_MODULE, CLR_IMAGE);
	memcpy(memory_now, world, CLR_SIZE);
	found = sf_clr_modules_find(&modules, &clr_description, &clr_memory, CLR_MODULE);
	if (!found)
		abort();
	metadata = found->metadata;
}

void clr_spoil(const uint8_t *data, size_t size)
{
	memcpy(memory_now, world, CLR_SIZE);
	for (; size >= 10; data += 10, size -= 10) {
		const unsigned at = (unsigned)(data[0] | data[1] << 8) % (CLR_SIZE - 8);

		memcpy(memory_now + at, data + 2, 8);
	}
}
