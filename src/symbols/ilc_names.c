/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A linkage name of ILC is TYPE__METHOD. A type is ASSEMBLY_NAMESPACE_NAME, with its arguments <A__B> behind all of its
 * names, each of which says how many it adds: Dictionary_2_Entry<Int32__Bool> is Dictionary<int, bool>.Entry. A method
 * may have <A__B>, too. Methods of one name have numbers: Compare, Compare_0, Compare_1.
 */
#include "symbols/ilc_names.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/ilc_pieces.h"

#define MAX_DEPTH 16u                /* of arguments in arguments */
#define MAX_RANK 32u
#define MAX_ASSEMBLY 256u            /* bytes of its name */

/* Types that ILC gives a short name, and C#'s words for them. To add one: a line. */
static const struct {
	const char *name, *word, *full;
} keywords[] = {
	{ "Bool", "bool", "Boolean" }, { "UInt8", "byte", "Byte" }, { "Int8", "sbyte", "SByte" }, { "UInt16", "ushort", NULL },
	{ "Int16", "short", NULL }, { "UInt32", "uint", NULL }, { "Int32", "int", NULL }, { "UInt64", "ulong", NULL },
	{ "Int64", "long", NULL }, { "Char", "char", NULL }, { "Double", "double", NULL }, { "Single", "float", NULL },
	{ "IntPtr", "nint", NULL }, { "UIntPtr", "nuint", NULL }, { "Object", "object", NULL }, { "String", "string", NULL },
	{ "S_P_CoreLib_System_Decimal", "decimal", "Decimal" }, { "System___Canon", "__Canon", "__Canon" },
};

/* `of_method`: it is the type of a method, which has its full name. */
static bool put_keyword(FILE *out, struct sf_piece type, bool of_method)
{
	for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++) {
		if (!sf_ilc_is(type, keywords[i].name))
			continue;
		if (of_method)
			fprintf(out, "System.%s", keywords[i].full ? keywords[i].full : keywords[i].name);
		else
			fputs(keywords[i].word, out);
		return true;
	}
	return false;
}

/* Assemblies of the runtime whose names are no namespaces: System.Private.NAME. */
static const char *const private_names[] = {
	"CoreLib", "Uri", "TypeLoader", "StackTraceMetadata", "Reflection_Execution", "DisabledReflection", "Xml_Linq", "Xml",
	"DataContractSerialization",
};

static const char *const roots[] = { "System_", "Microsoft_", "Interop_", "Internal_", "Windows_" };

/* "System.Linq" stands before "System.Linq.Enumerable", and "System.Console" before "System.ConsolePal". */
static size_t system_assembly(struct sf_piece type)
{
	if (!sf_ilc_begins(type, 0, "System_") && !sf_ilc_begins(type, 0, "Microsoft_"))
		return 0;
	for (size_t at = 1; at < type.n && type.at[at] != '<'; at++) {
		for (size_t i = 0; type.at[at - 1] == '_' && i < sizeof(roots) / sizeof(roots[0]); i++) {
			if (sf_ilc_begins(type, at, roots[i]))
				return at;
		}
	}
	return 0;
}

/* An assembly whose name its namespace sf_ilc_begins with. */
static size_t repeated_assembly(struct sf_piece type)
{
	size_t found = 0;

	for (size_t at = 1; at < MAX_ASSEMBLY && 2 * at < type.n && type.at[at] != '<'; at++) {
		if (type.at[at] == '_' && memcmp(type.at, type.at + at + 1, at) == 0 && sf_ilc_is_end(type, 2 * at + 1))
			found = at + 1;
	}
	return found;
}

/* `program`: each of its characters that C has not is an underscore in the name. */
static size_t program_assembly(struct sf_piece type, const char *program)
{
	const char *end = strstr(program, ".so");
	const size_t n = end ? (size_t)(end - program) : strlen(program);

	if (!n || n + 1 >= type.n || type.at[n] != '_')
		return 0;
	for (size_t i = 0; i < n; i++) {
		if (type.at[i] != (isalnum((unsigned char)program[i]) ? program[i] : '_'))
			return 0;
	}
	return n + 1;
}

/* The bytes of the assembly's name in front of a type; 0: it is not known where that ends. */
static size_t assembly(struct sf_piece type, const char *program)
{
	size_t found;

	for (size_t i = 0; sf_ilc_begins(type, 0, "S_P_") && i < sizeof(private_names) / sizeof(private_names[0]); i++) {
		if (sf_ilc_begins(type, 4, private_names[i]) && sf_ilc_begins(type, 4 + strlen(private_names[i]), "_"))
			return 5 + strlen(private_names[i]);
	}
	found = system_assembly(type);
	found = found ? found : repeated_assembly(type);
	return found ? found : program_assembly(type, program);
}

static void put_type(FILE *out, struct sf_piece type, const char *program, bool of_method, unsigned depth);

static void put_list(FILE *out, const struct sf_piece *arguments, size_t n, const char *program, unsigned depth)
{
	for (size_t i = 0; i < n; i++) {
		fputs(i ? ", " : "<", out);
		put_type(out, arguments[i], program, false, depth + 1);
	}
	fputs(n ? ">" : "", out);
}

/* The names of a type, with dots, and its arguments behind the names that they belong to. */
static void put_names(FILE *out, struct sf_piece names, struct sf_piece list, const char *program, unsigned depth)
{
	struct sf_piece arguments[SF_ILC_MAX_ARGUMENTS], machine;
	size_t n = sf_ilc_split(list, arguments), used = 0;
	const char *written;

	for (size_t at = 0; at < names.n;) {
		size_t size = sf_ilc_made_at(names, at, &written), arity;

		if (size) {
			fputs(at || !*written ? written : written + 1, out);
		} else if ((size = sf_ilc_machine_at(names, at, &machine))) {
			fprintf(out, "%s%.*s", at ? "." : "", (int)machine.n, machine.at);
		} else if (names.at[at] == '_' && !n && sf_ilc_digits(names, at + 1) &&
			   sf_ilc_is_end(names, at + 1 + sf_ilc_digits(names, at + 1))) {
			putc('_', out); /* no arguments are known */
			size = 1;
		} else if (names.at[at] == '_' && n && (size = sf_ilc_digits(names, at + 1)) && size < 3 &&
			   sf_ilc_is_end(names, at + 1 + size)) {
			arity = strtoul(names.at + at + 1, NULL, 10);
			arity = arity < n - used ? arity : n - used;
			put_list(out, arguments + used, arity, program, depth);
			used += arity;
			size++;
		} else {
			putc(names.at[at] == '_' && at ? '.' : names.at[at], out);
			size = 1;
		}
		at += size;
	}
	put_list(out, arguments + used, n - used, program, depth);
}

static size_t end_of_names(struct sf_piece type)
{
	const char *found = memchr(type.at, '<', type.n);

	return found ? (size_t)(found - type.at) : type.n;
}

/* "Int32,2": the elements, and the number of dimensions. */
static void put_array(FILE *out, struct sf_piece array, const char *program, unsigned depth)
{
	size_t comma = array.n;

	while (comma && array.at[comma - 1] != ',')
		comma--;
	put_type(out, sf_ilc_part(array, 0, comma ? comma - 1 : array.n), program, false, depth + 1);
	putc('[', out);
	for (unsigned long i = comma ? strtoul(array.at + comma, NULL, 10) : 0; i > 1 && i <= MAX_RANK; i--)
		putc(',', out);
	putc(']', out);
}

/* Forms that are no names: "<Pointer>" and "<ByRef>" stand behind the type that they are of. */
static bool put_made_type(FILE *out, struct sf_piece type, const char *program, unsigned depth)
{
	const size_t names = end_of_names(type), n = type.n;

	if (n > 9 && sf_ilc_begins(type, n - 9, "<Pointer>")) {
		put_type(out, sf_ilc_part(type, 0, n - 9), program, false, depth + 1);
		putc('*', out);
	} else if (n > 7 && sf_ilc_begins(type, n - 7, "<ByRef>")) {
		fputs("ref ", out);
		put_type(out, sf_ilc_part(type, 0, n - 7), program, false, depth + 1);
	} else if (sf_ilc_is(sf_ilc_part(type, 0, names), "__Array") && n > names + 1) {
		put_type(out, sf_ilc_part(type, names + 1, n - 1), program, false, depth + 1);
		fputs("[]", out);
	} else if (sf_ilc_is(sf_ilc_part(type, 0, names), "__MDArray") && n > names + 1) {
		put_array(out, sf_ilc_part(type, names + 1, n - 1), program, depth);
	} else if (sf_ilc_begins(type, 0, "__FnPtr_")) {
		fputs("delegate*", out);
	} else {
		return false;
	}
	return true;
}

static void put_type(FILE *out, struct sf_piece type, const char *program, bool of_method, unsigned depth)
{
	const size_t names = end_of_names(type);
	size_t skipped = assembly(sf_ilc_part(type, 0, names), program);
	struct sf_piece list = { "", 0 }, machine;
	const char *written;

	if (depth > MAX_DEPTH) {
		putc('?', out);
		return;
	}
	if (put_keyword(out, type, of_method) || put_made_type(out, type, program, depth))
		return;
	if (names + 2 <= type.n)
		list = sf_ilc_part(type, names + 1, type.n - (type.at[type.n - 1] == '>'));
	/* The underscore behind the assembly may belong to the name. */
	skipped -= skipped && (sf_ilc_made_at(type, skipped - 1, &written) || sf_ilc_machine_at(type, skipped - 1, &machine));
	put_names(out, sf_ilc_part(type, skipped, names), list, program, depth);
}

/* Accessors of properties and events. */
static const char *const accessors[] = { "get_", "set_", "add_", "remove_" };

static bool put_accessor(FILE *out, struct sf_piece name)
{
	for (size_t i = 0; i < sizeof(accessors) / sizeof(accessors[0]); i++) {
		const size_t n = strlen(accessors[i]);

		if (name.n <= n || !sf_ilc_begins(name, 0, accessors[i]))
			continue;
		fprintf(out, "%.*s.%.*s", (int)(name.n - n), name.at + n, (int)n - 1, accessors[i]);
		return true;
	}
	return false;
}

/* "_Name_b__2_0" is a lambda of Name, "_Name_g__Local_2_0" its local function. */
static bool put_made_method(FILE *out, struct sf_piece name)
{
	size_t at = 1, last = name.n;

	while (at < name.n && !sf_ilc_begins(name, at, "_b__") && !sf_ilc_begins(name, at, "_g__"))
		at++;
	if (name.n < 2 || name.at[0] != '_' || at == 1 || at == name.n)
		return false;
	while (last > at + 4 && isdigit((unsigned char)name.at[last - 1]))
		last--;
	if (name.at[at + 1] == 'b') {
		fprintf(out, "%.*s.lambda#%.*s", (int)at - 1, name.at + 1, (int)(name.n - last), name.at + last);
		return true;
	}
	/* "_2_0" */
	for (unsigned i = 0; i < 2; i++) {
		while (last > at + 4 && isdigit((unsigned char)name.at[last - 1]))
			last--;
		last -= last > at + 4 && name.at[last - 1] == '_';
	}
	fprintf(out, "%.*s.%.*s", (int)at - 1, name.at + 1, (int)(last - at - 4), name.at + at + 4);
	return true;
}

/* Without the number that tells methods of one name apart. */
static struct sf_piece without_number(struct sf_piece name)
{
	size_t n = name.n;

	while (n && isdigit((unsigned char)name.at[n - 1]))
		n--;
	return n > 1 && n < name.n && name.at[n - 1] == '_' ? sf_ilc_part(name, 0, n - 1) : name;
}

static void put_method(FILE *out, struct sf_piece method, const char *program)
{
	const size_t names = end_of_names(method);
	struct sf_piece arguments[SF_ILC_MAX_ARGUMENTS], name = sf_ilc_part(method, 0, names);
	size_t n = 0;

	if (names + 2 <= method.n)
		n = sf_ilc_split(sf_ilc_part(method, names + 1, method.n - (method.at[method.n - 1] == '>')), arguments);
	putc('.', out);
	if (!names) { /* the compiler's own: <DynamicInvoke>NAME */
		fwrite(method.at, 1, method.n, out);
		return;
	}
	if (!put_made_method(out, name)) {
		name = without_number(name);
		if (sf_ilc_is(name, "_ctor") || sf_ilc_is(name, "_cctor"))
			fprintf(out, ".%.*s", (int)name.n - 1, name.at + 1);
		else if (!put_accessor(out, name))
			fwrite(name.at, 1, name.n, out);
	}
	put_list(out, arguments, n, program, 0);
}

struct parts {
	struct sf_piece type, method;
};

/* False: it is no name of a method. */
static bool separate(struct sf_piece name, struct parts *ret)
{
	const size_t separator = sf_ilc_separator(name, 0);

	if (!separator || separator + 2 >= name.n || strchr("<_", name.at[0]))
		return false;
	*ret = (struct parts){ sf_ilc_part(name, 0, separator), sf_ilc_part(name, separator + 2, name.n) };
	return true;
}

/* The method that a stub of the compiler calls has the name in <Boxed>TYPE<ARGUMENTS>__<unbox>NAME, or in unbox_NAME. */
static bool take_apart(struct sf_piece name, struct parts *ret)
{
	const char *unboxed = memmem(name.at, name.n, "__<unbox>", 9);
	const size_t at = unboxed ? (size_t)(unboxed - name.at) : 0;

	if (!sf_ilc_begins(name, 0, "<Boxed>") || at < 8)
		return separate(sf_ilc_begins(name, 0, "unbox_") ? sf_ilc_part(name, 6, name.n) : name, ret);
	if (!separate(sf_ilc_part(name, at + 9, name.n), ret))
		return false;
	ret->type = sf_ilc_part(name, 7, at);
	return true;
}

/* A state machine is the type of one method, whose name it has. */
static bool is_machine(struct sf_piece type)
{
	struct sf_piece machine;
	size_t n;

	for (size_t at = 1; at < type.n; at++) {
		n = type.at[at] == '<' ? 0 : sf_ilc_machine_at(type, at, &machine);
		if (n && (at + n == type.n || type.at[at + n] == '<' || type.at[at + n] == '_'))
			return true;
		if (type.at[at] == '<')
			return false;
	}
	return false;
}

void sf_ilc_put_type(FILE *out, const char *name, const char *program)
{
	put_type(out, sf_piece_of(name), program, false, 0);
}

char *sf_ilc_name(const char *name, const char *program)
{
	struct parts parts;
	char *text = NULL;
	size_t size;
	FILE *out;

	if (!take_apart(sf_piece_of(name), &parts))
		return strdup(name);
	out = open_memstream(&text, &size);
	if (!out)
		return NULL;
	put_type(out, parts.type, program, true, 0);
	if (!sf_ilc_is(parts.method, "MoveNext") || !is_machine(parts.type))
		put_method(out, parts.method, program);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}
