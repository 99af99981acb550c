/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the name of a function's debug entry, and for .NET's NativeAOT the types of its parameters. Most C++ and Rust
 * functions have a linkage name, which contains everything. An entry without one (functions of local classes, some
 * constructors) gets the names of the namespaces and classes around it. Entries do not point to their parents, so the path
 * to the entry is searched from the unit downwards.
 */
#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbols/dwarf_symbols.h"
#include "symbols/ilc_names.h"

#define MAX_NESTING 64
#define MAX_ORIGINS 16 /* three are usual: concrete, abstract, declaration */

static int accept_any(Dwarf_Attribute *attribute, void *arg)
{
	(void)attribute;
	(void)arg;
	return DWARF_CB_OK;
}

bool sf_die_is_whole(Dwarf_Die *die)
{
	return dwarf_getattrs(die, accept_any, NULL, 0) == 1;
}

/* The entry that this one is an instance or a definition of. */
static bool origin_of(Dwarf_Die *die, Dwarf_Die *ret)
{
	Dwarf_Attribute attribute;

	return (dwarf_attr(die, DW_AT_abstract_origin, &attribute) ||
		dwarf_attr(die, DW_AT_specification, &attribute)) &&
	       dwarf_formref_die(&attribute, ret);
}

static const char *own_string(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;

	if (!dwarf_attr(die, name, &attribute))
		return NULL;
	if (dwarf_whatform(&attribute) == DW_FORM_string && !sf_die_is_whole(die))
		return NULL;
	return dwarf_formstring(&attribute);
}

const char *sf_die_string(Dwarf_Die *die, unsigned name)
{
	Dwarf_Die at = *die, origin;
	const char *text = own_string(&at, name);

	for (int i = 0; !text && i < MAX_ORIGINS && origin_of(&at, &origin); i++) {
		at = origin;
		text = own_string(&at, name);
	}
	return text;
}

/* An assembler describes symbols. The names of its entries are those of the linker. */
static bool is_by_assembler(Dwarf_Die *die)
{
	Dwarf_Die unit;

	return dwarf_diecu(die, &unit, NULL, NULL) && dwarf_srclang(&unit) == DW_LANG_Mips_Assembler;
}

const char *sf_die_linkage_name(Dwarf_Die *die)
{
	const char *name = sf_die_string(die, DW_AT_linkage_name);

	if (!name)
		name = sf_die_string(die, DW_AT_MIPS_linkage_name);
	return name || !is_by_assembler(die) ? name : sf_die_string(die, DW_AT_name);
}

/* Languages whose names are nested with "::". */
static bool nests_names(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case 0x2b: /* DW_LANG_C_plus_plus_17 */
	case 0x2c: /* DW_LANG_C_plus_plus_20 */
	case DW_LANG_Rust:
		return true;
	default:
		return false;
	}
}

/* The entry where the function was first declared, which is in its class. */
static Dwarf_Die declaration_of(const Dwarf_Die *die)
{
	Dwarf_Die found = *die, origin;

	for (int i = 0; i < MAX_ORIGINS && origin_of(&found, &origin); i++)
		found = origin;
	return found;
}

/* The last child of `parent` that starts at or before `target`, which is in it. */
static bool step_towards(Dwarf_Die *parent, const void *target, struct sf_budget *budget,
			 Dwarf_Die *ret)
{
	Dwarf_Die die, next;

	if (dwarf_child(parent, &die) != 0 || die.addr > target)
		return false;
	while (sf_budget_spend(budget) && dwarf_siblingof(&die, &next) == 0 &&
	       next.addr > die.addr && next.addr <= target)
		die = next;
	*ret = die;
	return true;
}

static const char *scope_name(Dwarf_Die *die)
{
	const char *name = sf_die_string(die, DW_AT_name);

	switch (dwarf_tag(die)) {
	case DW_TAG_namespace:
		return name ? name : "(anonymous namespace)";
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
		return name ? name : "{unnamed type}";
	case DW_TAG_subprogram:
		return name;
	default:
		return NULL;
	}
}

/* Writes the scopes around `target` to `out`. */
static void print_scopes(Dwarf_Die *unit, const void *target, struct sf_budget *budget, FILE *out)
{
	Dwarf_Die at = *unit;

	for (int i = 0; i < MAX_NESTING; i++) {
		const char *name;

		if (!step_towards(&at, target, budget, &at) || at.addr == target)
			return;
		name = scope_name(&at);
		if (name)
			fprintf(out, "%s::", name);
	}
}

char *sf_die_qualified_name(Dwarf_Die *die, struct sf_budget *budget)
{
	const char *name = sf_die_string(die, DW_AT_name);
	Dwarf_Die declaration = declaration_of(die), unit;
	char *text = NULL;
	size_t size;
	FILE *out;

	if (!name || !*name)
		return NULL;
	if (!dwarf_diecu(&declaration, &unit, NULL, NULL) || !nests_names(&unit))
		return strdup(name);
	out = open_memstream(&text, &size);
	if (!out)
		return NULL;
	print_scopes(&unit, declaration.addr, budget, out);
	fputs(name, out);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

/*
 * --- the types of a method's parameters, from ILC's debug data (UserDefinedTypeDescriptor.cs) ---
 *
 * An object is a reference to a class there; so is a parameter by reference, whose struct cannot be told from a class.
 */

#define MAX_DEPTH 8                  /* of pointers to pointers */
#define MAX_PARAMETERS 32

static bool type_of(Dwarf_Die *die, Dwarf_Die *ret)
{
	Dwarf_Attribute attribute;

	return dwarf_attr(die, DW_AT_type, &attribute) && dwarf_formref_die(&attribute, ret);
}

/* DWARF's names of C# types that have other ones there. */
static const char *base_name(const char *name)
{
	return strcmp(name, "char16_t") == 0 ? "char" : name;
}

static void put_type(FILE *out, Dwarf_Die *type, const char *program, unsigned depth)
{
	const int tag = dwarf_tag(type);
	const char *name = sf_die_string(type, DW_AT_name);
	Dwarf_Die target;

	if (tag == DW_TAG_base_type || depth > MAX_DEPTH) {
		fputs(name ? base_name(name) : "?", out);
	} else if ((tag == DW_TAG_reference_type || tag == DW_TAG_pointer_type) && type_of(type, &target)) {
		if (tag == DW_TAG_reference_type && dwarf_tag(&target) != DW_TAG_class_type)
			fputs("ref ", out);
		put_type(out, &target, program, depth + 1);
		fputs(tag == DW_TAG_pointer_type ? "*" : "", out);
	} else if (tag == DW_TAG_pointer_type) {
		fputs("void*", out);
	} else if (name) {
		sf_ilc_put_type(out, name, program);
	} else {
		putc('?', out);
	}
}

static void put_parameters(FILE *out, Dwarf_Die *function, const char *program, struct sf_budget *budget)
{
	Dwarf_Die die, type;
	unsigned n = 0;

	if (dwarf_child(function, &die) != 0)
		return;
	do {
		if (dwarf_tag(&die) != DW_TAG_formal_parameter || dwarf_hasattr(&die, DW_AT_artificial) || !type_of(&die, &type))
			continue;
		fputs(n++ ? ", " : "", out);
		put_type(out, &type, program, 0);
	} while (n < MAX_PARAMETERS && sf_budget_spend(budget) && dwarf_siblingof(&die, &die) == 0);
}

char *sf_ilc_parameters(Dwarf_Die *function, const char *program, struct sf_budget *budget)
{
	Dwarf_Die declaration = declaration_of(function);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	putc('(', out);
	put_parameters(out, &declaration, program, budget);
	putc(')', out);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}
