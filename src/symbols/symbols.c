/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sources of names of one image, asked best first.
 *
 * Queries are sorted by unit and address; each unit is opened, walked and reported before the
 * next one, so what is kept in memory is what libdw keeps: that grows with every unit's line
 * table and is freed when the image is closed.
 */
#include "symbols/symbols.h"

#include <dwarf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/intern.h"
#include "base/vec.h"
#include "elf/debug_file.h"
#include "symbols/address_names.h"
#include "symbols/dwarf_file.h"
#include "symbols/dwarf_symbols.h"

/* A name longer than this is cut: hostile tables have names of their whole size. */
#define MAX_NAME ((size_t)32 << 10)

/* As deep as inlines.c goes, and the function around. */
#define MAX_LOCATIONS 257

struct sf_symbols {
	struct sf_elf image, debug, alt;
	Dwarf *dwarf, *alt_dwarf;
	struct sf_address_names names;
	const char *base; /* the last part of the image's path, or "" */
	struct sf_intern *strings;
	SF_VEC(const char *) readable; /* by the number of a linkage name; NULL: not known yet */
	struct sf_budget budget;
};

/* The answer to the addresses of one unit, while it is put together. */
struct unit {
	Dwarf_Die die;      /* has the line table */
	Dwarf_Die code;     /* has the functions: the other half of a split unit */
	const char *folder; /* where it was compiled, or NULL */
	Dwarf_Files *files;
	size_t n_files;
};

static const char *intern(struct sf_symbols *symbols, const char *text)
{
	uint32_t number = sf_intern_add(symbols->strings, text, strnlen(text, MAX_NAME), NULL);

	return number ? sf_intern_get(symbols->strings, number, NULL) : NULL;
}

/* The place for the readable form of a linkage name; NULL when memory ran out. */
static const char **readable_of(struct sf_symbols *symbols, uint32_t number)
{
	while (number && symbols->readable.n <= number) {
		if (!sf_vec_push(&symbols->readable, NULL))
			return NULL;
	}
	return number ? &symbols->readable.items[number] : NULL;
}

/* Each linkage name is made readable once. */
static bool name_by_linkage(struct sf_symbols *symbols, const char *linkage,
			    struct sf_location *ret)
{
	uint32_t number = sf_intern_add(symbols->strings, linkage, strnlen(linkage, MAX_NAME),
					NULL);
	const char **readable = readable_of(symbols, number);

	if (!readable)
		return false;
	ret->linkage = sf_intern_get(symbols->strings, number, NULL);
	if (!*readable) {
		SF_CLEANUP(free) char *text = sf_demangle(ret->linkage);

		*readable = text ? intern(symbols, text) : NULL;
	}
	ret->function = *readable;
	return ret->function != NULL;
}

/* ELF names may carry a version, name@VERSION. */
static bool name_by_elf(struct sf_symbols *symbols, const char *name, struct sf_location *ret)
{
	char plain[1024];
	const char *at = strchr(name, '@');

	if (!at || at == name || (size_t)(at - name) >= sizeof(plain))
		return name_by_linkage(symbols, name, ret);
	memcpy(plain, name, (size_t)(at - name));
	plain[at - name] = 0;
	return name_by_linkage(symbols, plain, ret);
}

static const char *intern_joined(struct sf_symbols *symbols, const char *text, const char *end)
{
	SF_CLEANUP(free) char *joined = NULL;

	if (asprintf(&joined, "%s%s", text, end) < 0) {
		joined = NULL;
		return NULL;
	}
	return intern(symbols, joined);
}

/* What jumps to a function of another module, as gdb has it. */
static bool name_by_plt(struct sf_symbols *symbols, const char *name, struct sf_location *ret)
{
	if (!name_by_elf(symbols, name, ret))
		return false;
	ret->function = intern_joined(symbols, ret->function, "@plt");
	ret->linkage = intern_joined(symbols, ret->linkage, "@plt");
	return ret->function && ret->linkage;
}

/* A function that nobody named is named by where it starts, so that its addresses stay together. */
static bool name_by_start(struct sf_symbols *symbols, uint64_t start, struct sf_location *ret)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%" PRIx64 "%s", start, *symbols->base ? " in " : "");
	ret->function = ret->linkage = intern_joined(symbols, text, symbols->base);
	return ret->function != NULL;
}

/* False only when memory ran out; when nothing is known, `ret` stays as it is. */
static bool name_by_address(struct sf_symbols *symbols, uint64_t address, struct sf_location *ret)
{
	struct sf_address_name name;

	if (!sf_address_names_find(&symbols->names, &symbols->image, &symbols->debug, address,
				   &name))
		return false;
	if (name.is_plt)
		return name_by_plt(symbols, name.symbol, ret);
	if (name.symbol)
		return name_by_elf(symbols, name.symbol, ret);
	return !name.start || name_by_start(symbols, name.start, ret);
}

static bool name_by_die(struct sf_symbols *symbols, Dwarf_Die *die, struct sf_location *ret)
{
	const char *linkage = sf_die_linkage_name(die);
	SF_CLEANUP(free) char *qualified = NULL;

	if (linkage && *linkage)
		return name_by_linkage(symbols, linkage, ret);
	qualified = sf_die_qualified_name(die, &symbols->budget);
	if (!qualified)
		return true;
	ret->function = ret->linkage = intern(symbols, qualified);
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
	ret->file = intern(symbols, path ? path : "");
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
 * gcc gives functions that only their file can call no linkage name. The symbol table has one, if
 * the function is not inlined. What people read stays the same, inlined or not.
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

struct report {
	sf_location_fn *fn;
	void *arg;
};

static bool report_one(struct sf_symbols *symbols, const struct sf_query *query,
		       struct sf_location *locations, size_t n, const struct report *report)
{
	struct sf_location *outermost = &locations[n - 1];

	if (!*outermost->function && !name_by_address(symbols, query->address, outermost))
		return false;
	if (!is_known(locations, n))
		return true;
	if (!finish_names(symbols, query->address, locations, n))
		return false;
	report->fn(query->index, locations, n, report->arg);
	return true;
}

/* False when the unit's own entry is cut off. */
static bool open_unit(struct sf_symbols *symbols, const struct sf_elf *file, Dwarf_Off offset,
		      struct unit *ret)
{
	uint8_t type;
	Dwarf_Die split;

	*ret = (struct unit){ 0 };
	if (!dwarf_offdie(symbols->dwarf, offset, &ret->die) || !sf_die_is_whole(&ret->die))
		return false;
	ret->code = ret->die;
	ret->folder = sf_die_string(&ret->die, DW_AT_comp_dir);
	if (sf_dwarf_may_split(&ret->die, file) &&
	    dwarf_cu_info(ret->die.cu, NULL, &type, NULL, &split, NULL, NULL, NULL) == 0 &&
	    type == DW_UT_skeleton && split.addr && sf_die_is_whole(&split) &&
	    sf_dwarf_strings_end(dwarf_cu_getdwarf(split.cu)))
		ret->code = split;
	if (dwarf_getsrcfiles(&ret->code, &ret->files, &ret->n_files) != 0 &&
	    dwarf_getsrcfiles(&ret->die, &ret->files, &ret->n_files) != 0)
		ret->files = NULL;
	return true;
}

static bool resolve_without_unit(struct sf_symbols *symbols, const struct sf_query *queries,
				 size_t n, const struct report *report)
{
	for (size_t i = 0; i < n; i++) {
		struct sf_location location = unknown;

		if (!report_one(symbols, &queries[i], &location, 1, report))
			return false;
	}
	return true;
}

static bool resolve_unit(struct sf_symbols *symbols, const struct sf_query *queries, size_t n,
			 struct sf_scopes *scopes, const struct report *report)
{
	const struct sf_elf *file = symbols->debug.elf ? &symbols->debug : &symbols->image;
	struct unit unit;

	if (!open_unit(symbols, file, queries[0].unit, &unit))
		return resolve_without_unit(symbols, queries, n, report);
	if (!sf_scopes_find(&unit.code, queries, n, &symbols->budget, scopes))
		return false;
	for (size_t i = 0; i < n; i++) {
		struct sf_location locations[MAX_LOCATIONS];
		size_t found = chain(symbols, &unit, scopes, scopes->of_query.items[i],
				     queries[i].address, locations);

		if (!found || !report_one(symbols, &queries[i], locations, found, report))
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

static bool resolve_sorted(struct sf_symbols *symbols, const struct sf_query *queries, size_t n,
			   const struct report *report)
{
	struct sf_scopes scopes = { 0 };
	bool done = true;

	for (size_t i = 0, group; done && i < n; i += group) {
		group = same_unit(queries + i, n - i);
		done = queries[i].unit == SF_NO_UNIT
			       ? resolve_without_unit(symbols, queries + i, group, report)
			       : resolve_unit(symbols, queries + i, group, &scopes, report);
	}
	sf_scopes_deinit(&scopes);
	return done;
}

static int by_address(const void *a_arg, const void *b_arg)
{
	const struct sf_query *a = a_arg, *b = b_arg;

	return (a->address > b->address) - (a->address < b->address);
}

static int by_unit(const void *a_arg, const void *b_arg)
{
	const struct sf_query *a = a_arg, *b = b_arg;

	return a->unit != b->unit ? (a->unit > b->unit) - (a->unit < b->unit)
				  : by_address(a_arg, b_arg);
}

/* Honest data is visited about once; four times its size leaves room for shared range lists. */
static struct sf_budget budget_for(const struct sf_symbols *symbols)
{
	return (struct sf_budget){
		4 * (symbols->image.size + symbols->debug.size + symbols->alt.size) + (16u << 20)
	};
}

bool sf_symbols_resolve(struct sf_symbols *symbols, const uint64_t *addresses, size_t n,
			sf_location_fn *fn, void *arg, struct sf_error *err)
{
	const struct report report = { fn, arg };
	SF_CLEANUP(free) struct sf_query *queries = NULL;

	if (n == 0)
		return true;
	queries = calloc(n, sizeof(*queries));
	if (!queries)
		return sf_fail_memory(err);
	for (size_t i = 0; i < n; i++)
		queries[i] = (struct sf_query){ addresses[i], i, SF_NO_UNIT };
	qsort(queries, n, sizeof(*queries), by_address);
	symbols->budget = budget_for(symbols);
	if (symbols->dwarf && !sf_units_assign(symbols->dwarf, &symbols->image, queries, n,
					       &symbols->budget))
		return sf_fail_memory(err);
	qsort(queries, n, sizeof(*queries), by_unit);
	return resolve_sorted(symbols, queries, n, &report) || sf_fail_memory(err);
}

static bool has_dwarf(Elf *elf)
{
	GElf_Shdr header;

	return sf_elf_find_section(elf, ".debug_info", &header) ||
	       sf_elf_find_section(elf, ".zdebug_info", &header);
}

/* NULL without DWARF, and when it is not safe to read. */
static Dwarf *begin_dwarf(const struct sf_elf *file)
{
	Dwarf *dwarf = NULL;

	if (has_dwarf(file->elf) && sf_dwarf_is_sane(file))
		dwarf = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
	if (!dwarf || sf_dwarf_strings_end(dwarf))
		return dwarf;
	dwarf_end(dwarf);
	return NULL;
}

static void open_dwarf(struct sf_symbols *symbols, const struct sf_elf *file)
{
	symbols->dwarf = begin_dwarf(file);
	if (!symbols->dwarf)
		return;
	if (!sf_dwarf_find_alt(symbols->dwarf, file, &symbols->alt)) {
		dwarf_end(symbols->dwarf);
		symbols->dwarf = NULL;
		return;
	}
	if (symbols->alt.elf)
		symbols->alt_dwarf = begin_dwarf(&symbols->alt);
	if (symbols->alt_dwarf)
		dwarf_setalt(symbols->dwarf, symbols->alt_dwarf);
}

/* The image's own debug data wins; a debug file may still have the symbols that it lacks. */
static void open_sources(struct sf_symbols *symbols, const char *path)
{
	if (has_dwarf(symbols->image.elf)) {
		open_dwarf(symbols, &symbols->image);
		return;
	}
	if (sf_debug_file_open(&symbols->image, path, SF_DEBUG_ROOT, &symbols->debug))
		open_dwarf(symbols, &symbols->debug);
}

static const char *base_of(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path ? path : "";
}

bool sf_symbols_open(int fd, const char *path, struct sf_symbols **ret, struct sf_error *err)
{
	int own_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	struct sf_symbols *symbols;

	if (own_fd < 0)
		return sf_fail_os(err, "cannot keep %s open", path ? path : "an image");
	symbols = calloc(1, sizeof(*symbols));
	if (symbols)
		symbols->strings = sf_intern_create();
	if (symbols && symbols->strings)
		symbols->base = intern(symbols, base_of(path));
	if (!symbols || !symbols->base) {
		close(own_fd);
		sf_symbols_close(symbols);
		return sf_fail_memory(err);
	}
	if (!sf_elf_open(own_fd, &symbols->image, err)) {
		close(own_fd);
		sf_symbols_close(symbols);
		return false;
	}
	symbols->image.owns_fd = true;
	open_sources(symbols, path);
	*ret = symbols;
	return true;
}

void sf_symbols_close(struct sf_symbols *symbols)
{
	if (!symbols)
		return;
	if (symbols->dwarf)
		dwarf_end(symbols->dwarf);
	if (symbols->alt_dwarf)
		dwarf_end(symbols->alt_dwarf);
	sf_address_names_deinit(&symbols->names);
	sf_elf_close(&symbols->alt);
	sf_elf_close(&symbols->debug);
	sf_elf_close(&symbols->image);
	sf_vec_deinit(&symbols->readable);
	sf_intern_destroy(symbols->strings);
	free(symbols);
}
