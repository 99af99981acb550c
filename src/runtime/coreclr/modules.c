/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the metadata of assemblies out of a process. An assembly lies there as its file, or with its sections at their relative
 * virtual addresses; which of the two it is shows where its metadata is found.
 */
#include "runtime/coreclr/modules.h"

#include <stdio.h>
#include <string.h>

#include "base/block.h"
#include "base/location.h"
#include "frozen/coreclr/method_id.h"
#include "runtime/coreclr/image.h"
#include "runtime/coreclr/utf16.h"

#define HEADERS 4096u
#define MAX_BACK 16384u                     /* pages: 64 MB */
#define CLI_HEADER 72u
#define CLI_DIRECTORY 14
#define MAX_METADATA (64u << 20)
#define MAX_PATH_UNITS 1024
#define MAGIC 0x424a5342u                   /* "BSJB" */

static void close_module(struct sf_clr_modules *modules, const struct sf_clr_module *module)
{
	modules->n_bytes -= module->n_bytes;
	sf_block_free(module->bytes);
	sf_block_free(module->pdb_bytes);
	free(module->path);
}

void sf_clr_modules_deinit(struct sf_clr_modules *modules)
{
	for (size_t i = 0; i < modules->items.n; i++)
		close_module(modules, &modules->items.items[i]);
	sf_vec_deinit(&modules->items);
}

/* An assembly in a process. */
struct loaded {
	const struct sf_reader *memory;
	uint64_t base;
	bool is_mapped;
	struct sf_clr_image headers;
};

static uint64_t address_of(const struct loaded *loaded, uint32_t rva)
{
	if (loaded->is_mapped)
		return loaded->base + rva;
	for (uint32_t i = 0; i < loaded->headers.n_sections; i++) {
		const struct sf_clr_section *section = &loaded->headers.sections[i];

		if (rva >= section->rva && rva - section->rva < section->size)
			return loaded->base + section->offset + (rva - section->rva);
	}
	return 0;
}

/* Where the metadata is; false: not in this layout. */
static bool find_metadata(const struct loaded *loaded, uint64_t *at_ret, uint32_t *size_ret)
{
	struct sf_bytes directory = loaded->headers.directories;
	uint32_t header[CLI_HEADER / 4], magic;
	uint64_t at;

	sf_bytes_take(&directory, CLI_DIRECTORY * 8);
	at = address_of(loaded, sf_bytes_u32(&directory));
	if (directory.bad || !at || !sf_read(loaded->memory, header, at, sizeof(header)) ||
	    header[0] != CLI_HEADER)
		return false;
	*at_ret = address_of(loaded, header[2]);
	*size_ret = header[3];
	return *at_ret && sf_read(loaded->memory, &magic, *at_ret, sizeof(magic)) && magic == MAGIC;
}

static bool read_metadata(struct sf_clr_modules *modules, struct sf_clr_module *module,
			  const struct sf_reader *memory, uint64_t at, uint32_t size)
{
	if (!size || size > MAX_METADATA || modules->n_bytes + size > SF_CLR_MAX_BYTES)
		return false;
	module->bytes = sf_block_new(size);
	if (!module->bytes || !sf_read(memory, module->bytes, at, size)) {
		sf_block_free(module->bytes);
		module->bytes = NULL;
		return false;
	}
	module->n_bytes += size;
	modules->n_bytes += size;
	return sf_clr_metadata_open(&module->metadata, module->bytes, size);
}

static bool open_layout(struct sf_clr_modules *modules, struct sf_clr_module *module, const struct loaded *loaded)
{
	uint64_t at;
	uint32_t size;

	module->is_mapped = loaded->is_mapped;
	return find_metadata(loaded, &at, &size) && read_metadata(modules, module, loaded->memory, at, size);
}

/*
 * The first page of an image whose sections are at their addresses is that of its file. Metadata that begins in it seems to be in
 * the file's layout, and ends where nothing is.
 */
static bool open_image(struct sf_clr_modules *modules, struct sf_clr_module *module,
		       const struct sf_reader *memory, uint64_t base)
{
	struct loaded loaded = { .memory = memory, .base = base };
	uint8_t headers[HEADERS];

	if (!sf_read(memory, headers, base, sizeof(headers)) ||
	    !sf_clr_image_open(&loaded.headers, headers, sizeof(headers), false))
		return false;
	if (open_layout(modules, module, &loaded))
		return true;
	loaded.is_mapped = true;
	return !module->bytes && open_layout(modules, module, &loaded);
}

/* An assembly that was emitted has no image: the runtime keeps its metadata for debuggers. */
static bool open_emitted(struct sf_clr_modules *modules, struct sf_clr_module *module,
			 const struct sf_clr_description *description, const struct sf_reader *memory)
{
	const struct sf_clr_layout *layout = &description->layout;
	uint64_t at;
	uint32_t size;

	return sf_clr_has(layout, SF_CLR_METADATA_BYTES) &&
	       sf_clr_get(layout, memory, SF_CLR_MODULE_DYNAMIC, module->address, &at) && at &&
	       sf_clr_get_u32(layout, memory, SF_CLR_METADATA_SIZE, at, &size) &&
	       read_metadata(modules, module, memory, at + layout->fields[SF_CLR_METADATA_BYTES],
			     size);
}

static void read_path(struct sf_clr_module *module, const struct sf_clr_description *description,
		      const struct sf_reader *memory)
{
	static const enum sf_clr_field fields[] = { SF_CLR_MODULE_PATH, SF_CLR_MODULE_FILE };
	char path[SF_CLR_PATH] = "";
	uint64_t at;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]) && !*path; i++) {
		if (sf_clr_get(&description->layout, memory, fields[i], module->address, &at) && at)
			sf_clr_read_utf16(memory, at, MAX_PATH_UNITS, path, sizeof(path));
	}
	module->path = strdup(path);
}

/* The start of the file that this address is in: the runtime tells only where the assembly's name lies in it. */
static uint64_t find_base(const struct sf_reader *memory, uint64_t inside)
{
	uint8_t headers[HEADERS];
	struct sf_clr_image image;
	uint64_t page = inside & ~(uint64_t)(HEADERS - 1);

	for (uint32_t i = 0; i < MAX_BACK && page; i++, page -= HEADERS) {
		if (sf_read(memory, headers, page, sizeof(headers)) && headers[0] == 'M' && headers[1] == 'Z' &&
		    sf_clr_image_open(&image, headers, sizeof(headers), false))
			return page;
	}
	return 0;
}

static bool open_module(struct sf_clr_modules *modules, struct sf_clr_module *module,
			const struct sf_clr_description *description, const struct sf_reader *memory)
{
	uint64_t base = 0;

	read_path(module, description, memory);
	if (!module->path)
		return false;
	sf_clr_get(&description->layout, memory, SF_CLR_MODULE_BASE, module->address, &base);
	if (!base && sf_clr_get(&description->layout, memory, SF_CLR_MODULE_NAME, module->address, &base) && base)
		base = find_base(memory, base);
	module->base = base;
	return base ? open_image(modules, module, memory, base) :
		      open_emitted(modules, module, description, memory);
}

/* NULL: there is none, and no room for one. */
static struct sf_clr_module *find(struct sf_clr_modules *modules, uint64_t address)
{
	for (size_t i = 0; i < modules->items.n; i++) {
		if (modules->items.items[i].address == address)
			return &modules->items.items[i];
	}
	if (!address || modules->n_read >= SF_CLR_MAX_MODULES ||
	    !sf_vec_push(&modules->items, (struct sf_clr_module){ .address = address }))
		return NULL;
	return &modules->items.items[modules->items.n - 1];
}

/* Of a process that has ended nothing can be read: what is known stands. */
struct sf_clr_module *sf_clr_modules_find(struct sf_clr_modules *modules,
					  const struct sf_clr_description *description,
					  const struct sf_reader *memory, uint64_t address)
{
	struct sf_clr_module *module = find(modules, address);
	uint32_t mark;

	if (!module)
		return NULL;
	if (!sf_clr_module_mark(&description->layout, memory, address, &mark))
		mark = module->mark;
	if (!module->path || mark != module->mark) {
		if (modules->n_read >= SF_CLR_MAX_MODULES)
			return NULL;
		modules->n_read++;
		close_module(modules, module);
		*module = (struct sf_clr_module){ .address = address, .mark = mark };
		module->is_open = open_module(modules, module, description, memory);
	}
	return module->is_open ? module : NULL;
}

void sf_clr_module_name(const struct sf_clr_module *module, char *ret, size_t size)
{
	const char *name = sf_base_name(module->path);
	const size_t n = strlen(name);

	snprintf(ret, size, "%.*s", (int)(n > 4 && strcmp(name + n - 4, ".dll") == 0 ? n - 4 : n), name);
	if (!*ret)
		snprintf(ret, size, "?");
}
