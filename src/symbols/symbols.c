/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolves addresses of an image by its sources of names (sources.h), the best source first.
 *
 * Queries are sorted by unit and address. Each unit is opened, walked and reported before the next one,
 * so that only libdw keeps data in memory. This memory grows with every unit's line table, and is freed
 * when the image is closed.
 */
#include "symbols/symbols.h"

#include <dwarf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "symbols/address_names.h"
#include "symbols/dwarf_symbols.h"

/* As deep as scopes.c goes, and the function around. */
#define MAX_LOCATIONS 257

struct sf_symbols {
	struct sf_sources sources;
	struct sf_address_names address_names;
	struct sf_location_names names;  /* owns the strings of all locations */
	struct sf_scopes scopes;         /* of the unit that is being resolved */
	struct ilc_code {
		uint64_t start, size;
	} ilc[2];                        /* code by ILC; size 0: none */
	struct sf_budget budget;
	bool split;                      /* the unit that is being resolved has its other half in another file */
	sf_location_fn *fn;              /* receives the answers */
	void *arg;
};

/* The answer to the addresses of one unit, while it is put together. */
struct unit {
	Dwarf_Die die;      /* has the line table */
	Dwarf_Die code;     /* has the functions: the other half of a split unit */
	const char *folder; /* where it was compiled, or NULL */
	Dwarf_Files *files;
	size_t n_files;
};

/* False only when memory ran out; when nothing is known, `ret` stays as it is. */
static bool name_by_address(struct sf_symbols *symbols, uint64_t address, struct sf_location *ret)
{
	return sf_address_names_find(&symbols->address_names, &symbols->sources, &symbols->names,
				     address, ret);
}

/* ILC's linkage names have no parameters, and other readable names are without them. */
static bool add_parameters(struct sf_symbols *symbols, Dwarf_Die *die, struct sf_location *ret)
{
	SF_CLEANUP(free) char *parameters = NULL;
	SF_CLEANUP(free) char *text = NULL;

	if (!symbols->names.by_ilc || ret->function == ret->linkage)
		return true;
	parameters = sf_ilc_parameters(die, symbols->names.base, &symbols->budget);
	if (!parameters || asprintf(&text, "%s%s", ret->function, parameters) < 0) {
		text = NULL;
		return false;
	}
	ret->function = sf_location_names_add(&symbols->names, text);
	return ret->function != NULL;
}

static bool name_by_die(struct sf_symbols *symbols, Dwarf_Die *die, struct sf_location *ret)
{
	const char *linkage = sf_die_linkage_name(die);
	SF_CLEANUP(free) char *qualified = NULL;

	if (linkage && *linkage)
		return sf_location_by_linkage(&symbols->names, linkage, ret) && add_parameters(symbols, die, ret);
	qualified = sf_die_qualified_name(die, &symbols->budget);
	if (!qualified)
		return true;
	ret->function = ret->linkage = sf_location_names_add(&symbols->names, qualified);
	return ret->function != NULL;
}

/* A path as the compiler saw it: what is relative begins in its folder. */
static bool set_file(struct sf_symbols *symbols, const struct unit *unit, const char *path,
		     struct sf_location *ret)
{
	char joined[PATH_MAX];

	if (path && path[0] != '/' && unit->folder) {
		snprintf(joined, sizeof(joined), "%s/%s", unit->folder, path);
		path = joined;
	}
	ret->file = sf_location_names_add(&symbols->names, path ? path : "");
	return ret->file != NULL;
}

static bool set_line(struct sf_symbols *symbols, struct unit *unit, uint64_t address,
		     struct sf_location *ret)
{
	Dwarf_Line *line = dwarf_getsrc_die(&unit->die, address);
	int number = 0;

	if (!line)
		return true;
	if (dwarf_lineno(line, &number) == 0 && number > 0)
		ret->line = (uint32_t)number;
	return set_file(symbols, unit, dwarf_linesrc(line, NULL, NULL), ret);
}

static bool number_of(Dwarf_Die *die, unsigned name, Dwarf_Word *ret)
{
	Dwarf_Attribute attribute;

	return dwarf_attr(die, name, &attribute) && dwarf_formudata(&attribute, ret) == 0;
}

/* Where the inlined call `die` stands in the source. */
static bool set_call(struct sf_symbols *symbols, struct unit *unit, Dwarf_Die *die,
		     struct sf_location *ret)
{
	Dwarf_Word file, line;

	if (number_of(die, DW_AT_call_line, &line) && line <= INT32_MAX)
		ret->line = (uint32_t)line;
	if (!unit->files || !number_of(die, DW_AT_call_file, &file) || file >= unit->n_files)
		return true;
	return set_file(symbols, unit, dwarf_filesrc(unit->files, file, NULL, NULL), ret);
}

static const struct sf_location unknown = { .function = "", .linkage = "", .file = "" };

/* Fills in locations from the innermost scope outwards; 0 when memory ran out. */
static size_t chain(struct sf_symbols *symbols, struct unit *unit, const struct sf_scopes *scopes,
		    uint32_t scope, uint64_t address, struct sf_location *ret)
{
	size_t n = 0;

	ret[0] = unknown;
	if (!set_line(symbols, unit, address, &ret[0]))
		return 0;
	for (; scope && n < MAX_LOCATIONS - 1; scope = scopes->items.items[scope].parent) {
		struct sf_scope *found = &scopes->items.items[scope];

		if (!name_by_die(symbols, &found->die, &ret[n]))
			return 0;
		ret[n].inlined = found->inlined && found->parent;
		ret[n + 1] = unknown;
		if (!set_call(symbols, unit, &found->die, &ret[n + 1]))
			return 0;
		n++;
	}
	return n ? n : 1;
}

/*
 * Adds the linkage name from the symbol table. gcc gives no linkage name to functions that only their file
 * can call. The symbol table has such a name if the function is not inlined. The name that is displayed
 * stays the same, inlined or not.
 */
static bool add_linkage(struct sf_symbols *symbols, uint64_t address, struct sf_location *ret)
{
	struct sf_location by_elf = unknown;

	if (ret->linkage != ret->function)
		return true;
	if (!name_by_address(symbols, address, &by_elf))
		return false;
	if (by_elf.linkage != by_elf.function)
		ret->linkage = by_elf.linkage;
	return true;
}

/* Names are never empty: what has a line but no name is "??", as addr2line has it. */
static bool finish_names(struct sf_symbols *symbols, uint64_t address,
			 struct sf_location *locations, size_t n)
{
	if (!add_linkage(symbols, address, &locations[n - 1]))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!*locations[i].function)
			locations[i].function = locations[i].linkage = "??";
	}
	return true;
}

static bool is_known(const struct sf_location *locations, size_t n)
{
	return n > 1 || *locations[0].function || *locations[0].file;
}

static bool report_one(struct sf_symbols *symbols, const struct sf_query *query,
		       struct sf_location *locations, size_t n)
{
	struct sf_location *outermost = &locations[n - 1];

	symbols->address_names.by_wanted = false;
	if (!*outermost->function && !name_by_address(symbols, query->address, outermost))
		return false;
	if (!is_known(locations, n))
		return true;
	if (!finish_names(symbols, query->address, locations, n))
		return false;
	symbols->fn(query->index, locations, n, symbols->arg);
	return true;
}

/* False when the unit's own entry is cut off. */
static bool open_unit(struct sf_symbols *symbols, const struct sf_elf *file, Dwarf_Off offset,
		      struct unit *ret)
{
	Dwarf_Die split;

	*ret = (struct unit){ 0 };
	if (!dwarf_offdie(symbols->sources.dwarf, offset, &ret->die) || !sf_die_is_whole(&ret->die))
		return false;
	symbols->split = dwarf_hasattr(&ret->die, DW_AT_dwo_name) || dwarf_hasattr(&ret->die, DW_AT_GNU_dwo_name);
	ret->code = ret->die;
	ret->folder = sf_die_string(&ret->die, DW_AT_comp_dir);
	if (sf_split_find(&ret->die, file, symbols->sources.no_alt_dwarf, &split))
		ret->code = split;
	sf_lines_move_dropped(&ret->die, &symbols->sources.image, &symbols->budget);
	if (dwarf_getsrcfiles(&ret->code, &ret->files, &ret->n_files) != 0 &&
	    dwarf_getsrcfiles(&ret->die, &ret->files, &ret->n_files) != 0)
		ret->files = NULL;
	return true;
}

static void look_for_compiler(struct sf_symbols *symbols, uint64_t address)
{
	symbols->names.by_ilc = false;
	for (size_t i = 0; i < sizeof(symbols->ilc) / sizeof(symbols->ilc[0]); i++)
		symbols->names.by_ilc |= address - symbols->ilc[i].start < symbols->ilc[i].size;
}

static bool resolve_without_unit(struct sf_symbols *symbols, const struct sf_query *queries,
				 size_t n)
{
	symbols->split = false;
	for (size_t i = 0; i < n; i++) {
		struct sf_location location = unknown;

		look_for_compiler(symbols, queries[i].address);
		if (!report_one(symbols, &queries[i], &location, 1))
			return false;
	}
	return true;
}

static bool resolve_unit(struct sf_symbols *symbols, const struct sf_query *queries, size_t n)
{
	struct sf_scopes *scopes = &symbols->scopes;
	const struct sf_elf *file = sf_sources_dwarf_file(&symbols->sources);
	struct unit unit;

	if (!open_unit(symbols, file, queries[0].unit, &unit))
		return resolve_without_unit(symbols, queries, n);
	if (!sf_scopes_find(&unit.code, &symbols->sources.image, queries, n, &symbols->budget, scopes))
		return false;
	for (size_t i = 0; i < n; i++) {
		struct sf_location locations[MAX_LOCATIONS];
		size_t found;

		look_for_compiler(symbols, queries[i].address);
		found = chain(symbols, &unit, scopes, scopes->of_query.items[i], queries[i].address, locations);

		if (!found || !report_one(symbols, &queries[i], locations, found))
			return false;
	}
	return true;
}

static size_t same_unit(const struct sf_query *queries, size_t n)
{
	size_t i = 1;

	while (i < n && queries[i].unit == queries[0].unit)
		i++;
	return i;
}

static bool resolve_sorted(struct sf_symbols *symbols, const struct sf_query *queries, size_t n)
{
	bool done = true;

	for (size_t i = 0, group; done && i < n; i += group) {
		group = same_unit(queries + i, n - i);
		done = queries[i].unit == SF_NO_UNIT
			       ? resolve_without_unit(symbols, queries + i, group)
			       : resolve_unit(symbols, queries + i, group);
	}
	return done;
}

static int by_address(const void *a_arg, const void *b_arg)
{
	const struct sf_query *a = a_arg, *b = b_arg;

	return sf_order(a->address, b->address);
}

static int by_unit(const void *a_arg, const void *b_arg)
{
	const struct sf_query *a = a_arg, *b = b_arg;

	return a->unit != b->unit ? sf_order(a->unit, b->unit)
				  : by_address(a_arg, b_arg);
}

/* Honest data is visited about once; four times its size leaves room for shared range lists. */
static struct sf_budget budget_for(const struct sf_symbols *symbols)
{
	const struct sf_sources *sources = &symbols->sources;

	return (struct sf_budget){
		4 * (sources->image.size + sources->debug.size + sources->alt.size) + (16u << 20)
	};
}

bool sf_symbols_resolve(struct sf_symbols *symbols, const uint64_t *addresses, size_t n,
			sf_location_fn *fn, void *arg, struct sf_error *err)
{
	const struct sf_sources *sources = &symbols->sources;
	SF_CLEANUP(free) struct sf_query *queries = NULL;

	if (n == 0)
		return true;
	sf_sources_need_dwarf(&symbols->sources);
	queries = calloc(n, sizeof(*queries));
	if (!queries)
		return sf_fail_memory(err);
	for (size_t i = 0; i < n; i++)
		queries[i] = (struct sf_query){ addresses[i], i, SF_NO_UNIT };
	qsort(queries, n, sizeof(*queries), by_address);
	symbols->budget = budget_for(symbols);
	symbols->fn = fn;
	symbols->arg = arg;
	symbols->address_names.asked = addresses;
	symbols->address_names.n_asked = n;
	if (sources->dwarf)
		sf_units_assign(sources->dwarf, &sources->image, queries, n, &symbols->budget);
	qsort(queries, n, sizeof(*queries), by_unit);
	return resolve_sorted(symbols, queries, n) || sf_fail_memory(err);
}

bool sf_symbols_digest(const struct sf_symbols *symbols, uint8_t ret[SF_DIGEST_SIZE])
{
	return sf_sources_digest(&symbols->sources, symbols->names.base, ret);
}

bool sf_symbols_depends_on_more(const struct sf_symbols *symbols)
{
	return symbols->split || symbols->address_names.by_wanted || !symbols->budget.left;
}

/* The sections that ILC puts managed code into. */
static void find_ilc_code(struct sf_symbols *symbols)
{
	static const char *const names[] = { "__managedcode", "__unbox" };
	GElf_Shdr header;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (sf_elf_find_section(symbols->sources.image.elf, names[i], &header))
			symbols->ilc[i] = (struct ilc_code){ header.sh_addr, header.sh_size };
	}
}

bool sf_symbols_open(int fd, const char *path, bool debug_data, struct sf_symbols **ret,
		     struct sf_error *err)
{
	struct sf_symbols *symbols = calloc(1, sizeof(*symbols));

	if (!symbols)
		return sf_fail_memory(err);
	if (!sf_location_names_init(&symbols->names, path)) {
		sf_symbols_close(symbols);
		return sf_fail_memory(err);
	}
	if (!sf_sources_open(fd, path, debug_data, &symbols->sources, err)) {
		sf_symbols_close(symbols);
		return false;
	}
	find_ilc_code(symbols);
	*ret = symbols;
	return true;
}

void sf_symbols_close(struct sf_symbols *symbols)
{
	if (!symbols)
		return;
	sf_scopes_deinit(&symbols->scopes);
	sf_address_names_deinit(&symbols->address_names);
	sf_sources_close(&symbols->sources);
	sf_location_names_deinit(&symbols->names);
	free(symbols);
}
