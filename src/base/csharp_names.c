/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the names apart that the C# compiler makes; C#'s words for types. */
#include "base/csharp_names.h"

#define HASH_SIZE 64 /* of SHA-256, in hexadecimal digits */
#define MAX_DEPTH                                                                                  \
	8 /* names in names: a lambda in a local function in a top-level statement has three */

/* The kinds of names, by the letter behind the original (Roslyn: GeneratedNameKind). To add one: a
 * line here, and its form below. */
enum kind {
	LAMBDA = 'b',
	LOCAL_FUNCTION = 'g',
	STATE_MACHINE = 'd',
	ANONYMOUS_TYPE = 'f',
	FILE_TYPE = 'F',
	TYPE_PARAMETER = 'j',
	ENTRY_POINT = '$',
	ASYNC_ENTRY_POINT = 0,
};

struct made {
	struct sf_piece original, suffix;
	char kind;
};

/* Takes a name apart. False: the compiler did not make it. */
static bool take_apart(struct sf_piece name, struct made *ret)
{
	size_t depth = 0, i = 0;

	if (name.n < 2 || *name.at != '<')
		return false;
	do {
		depth += name.at[i] == '<';
		depth -= name.at[i] == '>';
		i++;
	} while (depth && i < name.n);
	if (depth)
		return false;
	ret->original = (struct sf_piece){ name.at + 1, i - 2 };
	ret->kind = i < name.n ? name.at[i] : 0;
	i += i < name.n;
	ret->suffix = (struct sf_piece){ name.at + i, name.n - i };
	return true;
}

/* "__2_0" has the number of the method and that of the lambda, or "__0" the latter alone. */
static void put_lambda(struct sf_text *text, struct sf_piece suffix)
{
	size_t at = suffix.n;

	while (at && suffix.at[at - 1] != '_')
		at--;
	sf_text_put(text, ".lambda#");
	sf_text_put_n(text, suffix.at + at, suffix.n - at);
}

/* "__Name|0_1". */
static void put_local_function(struct sf_text *text, struct sf_piece suffix)
{
	const char *bar = memchr(suffix.at, '|', suffix.n);
	const size_t n = bar ? (size_t)(bar - suffix.at) : suffix.n, start = n < 2 ? n : 2;

	sf_text_put(text, ".");
	sf_text_put_n(text, suffix.at + start, n - start);
}

static void put_method(struct sf_text *text, struct sf_piece name, unsigned depth)
{
	struct made made;

	if (depth == 0 || !take_apart(name, &made) || !made.original.n) {
		sf_text_put_n(text, name.at, name.n);
		return;
	}
	switch ((enum kind)made.kind) {
	case ENTRY_POINT:
	case ASYNC_ENTRY_POINT:
	case TYPE_PARAMETER:
		put_method(text, made.original, depth - 1);
		break;
	case LAMBDA:
		put_method(text, made.original, depth - 1);
		put_lambda(text, made.suffix);
		break;
	case LOCAL_FUNCTION:
		put_method(text, made.original, depth - 1);
		put_local_function(text, made.suffix);
		break;
	default:
		sf_text_put_n(text, name.at, name.n);
	}
}

void sf_csharp_put_method(struct sf_text *text, struct sf_piece name)
{
	put_method(text, name, MAX_DEPTH);
}

/* A type of one file ("file class Name") is "<File>F", a hash of the file's path and "__Name". */
static bool put_file_type(struct sf_text *text, struct sf_piece suffix)
{
	const size_t before = HASH_SIZE + strlen("__");

	if (suffix.n <= before || memcmp(suffix.at + HASH_SIZE, "__", strlen("__")) != 0)
		return false;
	sf_text_put_n(text, suffix.at + before, suffix.n - before);
	return true;
}

bool sf_csharp_put_type(struct sf_text *text, struct sf_piece name)
{
	struct made made;

	if (!take_apart(name, &made))
		return false;
	if (made.kind == FILE_TYPE)
		return put_file_type(text, made.suffix);
	if (made.kind != ANONYMOUS_TYPE)
		return false;
	sf_text_put(text, "AnonymousType");
	return true;
}

bool sf_csharp_is_state_machine(struct sf_piece type, struct sf_piece *original_ret)
{
	struct made made;

	if (!take_apart(type, &made) || made.kind != STATE_MACHINE || !made.original.n)
		return false;
	*original_ret = made.original;
	return true;
}

bool sf_csharp_put_accessor(struct sf_text *text, struct sf_piece name)
{
	static const char *const accessors[] = { "get_", "set_", "add_", "remove_" };
	const char *point = memrchr(name.at, '.', name.n), *own = point ? point + 1 : name.at;
	const size_t before = (size_t)(own - name.at);

	for (size_t i = 0; i < sizeof(accessors) / sizeof(*accessors); i++) {
		const size_t n = strlen(accessors[i]);

		if (name.n - before <= n || memcmp(own, accessors[i], n))
			continue;
		sf_text_put_n(text, name.at, before);
		sf_text_put_n(text, own + n, name.n - before - n);
		sf_text_put(text, ".");
		sf_text_put_n(text, own, n - 1);
		return true;
	}
	return false;
}

/* C#'s words for types of System. To add one: a line. */
static const struct {
	const char *name, *word;
} keywords[] = {
	{ "Boolean", "bool" }, { "Byte", "byte" }, { "Char", "char" }, { "Decimal", "decimal" },
	{ "Double", "double" }, { "Int16", "short" }, { "Int32", "int" }, { "Int64", "long" },
	{ "IntPtr", "nint" }, { "Object", "object" }, { "SByte", "sbyte" }, { "Single", "float" },
	{ "String", "string" }, { "UInt16", "ushort" }, { "UInt32", "uint" }, { "UInt64", "ulong" },
	{ "UIntPtr", "nuint" }, { "Void", "void" },
	/* Stands for all classes where they share code. */
	{ "__Canon", "__Canon" },
};

const char *sf_csharp_keyword(struct sf_piece name)
{
	for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++) {
		if (strlen(keywords[i].name) == name.n && memcmp(name.at, keywords[i].name, name.n) == 0)
			return keywords[i].word;
	}
	return NULL;
}
