/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names addresses without DWARF by symbols, stubs and function starts, and keeps the texts of locations.
 *
 * Symbols of assembly often have no size, and in a stripped library the last one before an address
 * may be megabytes away. So a symbol without a size counts only as far as no other
 * function is known to begin, and in a stripped file only as far as its code is not seen to end: functions that are
 * called through pointers only may follow.
 */
#include "symbols/address_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/location.h"
#include "elf/debug_file.h"
#include "symbols/ilc_names.h"

/* A name longer than this is cut: hostile tables have names of their whole size. */
#define MAX_NAME ((size_t)32 << 10)

bool sf_location_names_init(struct sf_location_names *names, const char *path)
{
	*names = (struct sf_location_names){ .strings = sf_intern_create() };
	if (names->strings)
		names->base = sf_location_names_add(names, path ? sf_base_name(path) : "");
	return names->base != NULL;
}

void sf_location_names_deinit(struct sf_location_names *names)
{
	sf_vec_deinit(&names->readable);
	sf_intern_destroy(names->strings);
	names->strings = NULL;
}

const char *sf_location_names_add(struct sf_location_names *names, const char *text)
{
	uint32_t number = sf_intern_add(names->strings, text, strnlen(text, MAX_NAME), NULL);

	return number ? sf_intern_get(names->strings, number, NULL) : NULL;
}

/* The place for the readable form of a linkage name; NULL when memory ran out. */
static const char **readable_of(struct sf_location_names *names, uint32_t number)
{
	while (number && names->readable.n <= number) {
		if (!sf_vec_push(&names->readable, NULL))
			return NULL;
	}
	return number ? &names->readable.items[number] : NULL;
}

bool sf_location_by_linkage(struct sf_location_names *names, const char *linkage,
			    struct sf_location *ret)
{
	uint32_t number = sf_intern_add(names->strings, linkage, strnlen(linkage, MAX_NAME),
					NULL);
	const char **readable = readable_of(names, number);

	if (!readable)
		return false;
	ret->linkage = sf_intern_get(names->strings, number, NULL);
	if (!*readable) {
		SF_CLEANUP(free) char *text = names->by_ilc ? sf_ilc_name(ret->linkage, names->base)
							    : sf_demangle(ret->linkage);

		*readable = text ? sf_location_names_add(names, text) : NULL;
	}
	ret->function = *readable;
	return ret->function != NULL;
}

static bool has_table(const struct sf_elf *file)
{
	GElf_Shdr header;

	return file->elf && sf_elf_find_section(file->elf, ".symtab", &header);
}

static bool need_symbols(struct sf_address_names *names, struct sf_sources *sources)
{
	struct sf_ranges *symbols = &names->symbols;
	size_t n_sections = 0;

	if (names->has_symbols)
		return true;
	elf_getshdrnum(sources->image.elf, &n_sections);
	if (n_sections ? !sf_ranges_add_symbols(symbols, &sources->image)
		       : !sf_ranges_add_dynamic(symbols, &sources->image))
		return false;
	if (sources->debug.elf && !sf_ranges_add_symbols(symbols, &sources->debug))
		return false;
	if (sf_debug_data_open(&sources->image, &names->packed) &&
	    !sf_ranges_add_symbols(symbols, &names->packed))
		return false;
	names->stripped = !has_table(&sources->image) && !has_table(&sources->debug);
	if (names->stripped && !sf_ranges_add_go(symbols, &sources->image))
		return false;
	names->has_symbols = sf_ranges_flatten(symbols);
	return names->has_symbols;
}

static bool need_functions(struct sf_address_names *names, struct sf_elf *image)
{
	if (!names->has_functions)
		names->has_functions = sf_ranges_read_stubs(image, &names->stubs) &&
				       sf_ranges_read_functions(image, &names->functions);
	return names->has_functions;
}

/* The @ of name@VERSION or name@@VERSION; NULL: it has no version. Languages have an @ in names, with other characters behind. */
static const char *find_version(const char *name)
{
	static const char version[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-+~";
	const char *at = strrchr(name, '@');

	if (!at || !at[1] || at[1 + strspn(at + 1, version)])
		return NULL;
	return at > name && at[-1] == '@' ? at - 1 : at;
}

/* By a symbol, whose name may carry a version. */
static bool name_by_symbol(struct sf_location_names *texts, const char *name,
			   struct sf_location *ret)
{
	char plain[1024];
	const char *at = find_version(name);

	if (!at || at == name || (size_t)(at - name) >= sizeof(plain))
		return sf_location_by_linkage(texts, name, ret);
	memcpy(plain, name, (size_t)(at - name));
	plain[at - name] = 0;
	return sf_location_by_linkage(texts, plain, ret);
}

static const char *add_joined(struct sf_location_names *texts, const char *text, const char *end)
{
	SF_CLEANUP(free) char *joined = NULL;

	if (asprintf(&joined, "%s%s", text, end) < 0) {
		joined = NULL;
		return NULL;
	}
	return sf_location_names_add(texts, joined);
}

/* The stub that jumps to the function `name` of another module, as gdb writes it. */
static bool name_stub(struct sf_location_names *texts, const char *name, struct sf_location *ret)
{
	if (!name_by_symbol(texts, name, ret))
		return false;
	ret->function = add_joined(texts, ret->function, "@plt");
	ret->linkage = add_joined(texts, ret->linkage, "@plt");
	return ret->function && ret->linkage;
}

/* A function without a name gets one by its start, so that its addresses stay together. It has none for the linker. */
static bool name_by_start(struct sf_location_names *texts, uint64_t start, struct sf_location *ret)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%" PRIx64 "%s", start, *texts->base ? " in " : "");
	ret->function = add_joined(texts, text, texts->base);
	ret->linkage = "";
	return ret->function != NULL;
}

static bool need_methods(struct sf_address_names *names, struct sf_elf *image)
{
	if (!names->has_methods)
		names->has_methods = sf_ilc_methods_read(image, &names->methods);
	return names->has_methods;
}

/* Code by ILC has names in the program itself. Others are named by their start. */
static bool name_function(struct sf_address_names *names, struct sf_elf *image, struct sf_location_names *texts, uint64_t start,
			  struct sf_location *ret)
{
	const struct sf_ilc_method *method;
	char buffer[MAX_NAME];
	struct sf_text text;

	if (!texts->by_ilc)
		return name_by_start(texts, start, ret);
	if (!need_methods(names, image))
		return false;
	method = sf_ilc_methods_find(&names->methods, start);
	if (!method)
		return name_by_start(texts, start, ret);
	text = sf_text_in(buffer, sizeof(buffer));
	sf_ilc_put_method(&text, &names->methods.metadata, method);
	ret->function = ret->linkage = sf_location_names_add(texts, buffer);
	return ret->function != NULL;
}

static bool find_start(struct sf_address_names *names, const struct sf_elf *image, uint64_t address, uint64_t *ret)
{
	const struct sf_known_code known = {
		.symbols = &names->symbols, .functions = &names->functions,
		.asked = names->asked, .n_asked = names->n_asked,
	};

	names->by_wanted = true;
	return sf_code_starts_find(&names->starts, image, &known, address, ret);
}

static const struct sf_code_segment *code_at(const struct sf_elf *image, uint64_t address, struct sf_code_segment *ret)
{
	sf_code_segment_read(ret, image, address);
	return ret;
}

bool sf_address_names_find(struct sf_address_names *names, struct sf_sources *sources,
			   struct sf_location_names *texts, uint64_t address,
			   struct sf_location *ret)
{
	const struct sf_range *symbol, *stub, *function;
	struct sf_code_segment code;
	uint64_t start = 0;

	if (!need_symbols(names, sources))
		return false;
	symbol = sf_ranges_find(&names->symbols, address);
	if (symbol && symbol->rank & SF_RANK_SIZED)
		return name_by_symbol(texts, symbol->name, ret);
	if (!need_functions(names, &sources->image))
		return false;
	stub = sf_ranges_find(&names->stubs, address);
	if (stub && stub->name)
		return name_stub(texts, stub->name, ret);
	function = sf_ranges_find(&names->functions, address);
	if (function)
		start = function->start;
	else if (symbol && (!names->stripped || sf_code_goes_on(code_at(&sources->image, address, &code), symbol->start, address)))
		start = symbol->start; /* no need to go through all code */
	else if (!find_start(names, &sources->image, address, &start))
		return false;
	if (start && (!symbol || start > symbol->start))
		return name_function(names, &sources->image, texts, start, ret);
	if (!start && symbol && names->stripped &&
	    sf_code_ends_before(code_at(&sources->image, address, &code), symbol->start, address))
		return true;
	return !symbol || name_by_symbol(texts, symbol->name, ret);
}

void sf_address_names_deinit(struct sf_address_names *names)
{
	sf_vec_deinit(&names->symbols);
	sf_vec_deinit(&names->stubs);
	sf_vec_deinit(&names->functions);
	sf_code_starts_deinit(&names->starts);
	sf_ilc_methods_deinit(&names->methods);
	sf_elf_close(&names->packed);
}
