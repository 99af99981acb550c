/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The types of a method's parameters, from ILC's debug data (UserDefinedTypeDescriptor.cs). An
 * object is a reference to a class there; so is a parameter by reference, whose struct cannot be told from a class.
 */
#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/dwarf_symbols.h"
#include "symbols/ilc_names.h"

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
	Dwarf_Die declaration = sf_die_declaration(function);
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
