/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Demangles C++, Rust and OCaml names, without parameters and return types, because flame graphs have little
 * room for names. The linkage name still contains the omitted parts.
 *
 * A mangled name may refer back to its own parts, so that fifty characters describe a name of
 * gigabytes. libiberty does not limit its output. Therefore libiberty prints into a buffer of ours through
 * its callback interface, which keeps its own state on the stack. When the buffer is full, we jump out of
 * libiberty.
 */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#if __has_include(<libiberty/demangle.h>)
#include <libiberty/demangle.h>
#else /* Fedora */
#include <demangle.h>
#endif

#include "symbols/symbols.h"

/* The longest name in a Chromium build with debug data is below this. */
#define MAX_READABLE ((size_t)64 << 10)

struct text {
	char *bytes;
	size_t n;
	jmp_buf full;
};

static void append(const char *bytes, size_t n, void *arg)
{
	struct text *text = arg;

	if (n >= MAX_READABLE - text->n)
		longjmp(text->full, 1);
	if (n) /* of nothing, libiberty may not say where it is */
		memcpy(text->bytes + text->n, bytes, n);
	text->n += n;
}

static bool is_mangled(const char *name)
{
	static const char *const prefixes[] = { "_Z", "__Z", "_R", "_GLOBAL_" };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	}
	return false;
}

/* Rust's old mangling is C++'s, with a hash in the end that only Rust's demangler removes. */
static bool print_readable(const char *name, struct text *text)
{
	if (setjmp(text->full))
		return false;
	return rust_demangle_callback(name, DMGL_NO_OPTS, append, text) ||
	       (text->n = 0, cplus_demangle_v3_callback(name, DMGL_ANSI, append, text));
}

/* OCaml's are camlModule__function_123. */
static bool is_ocaml(const char *name)
{
	return strncmp(name, "caml", 4) == 0 && name[4] >= 'A' && name[4] <= 'Z';
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Two underscores are a point, and $xx is the character with that code. In place. */
static char *demangle_ocaml(char *name)
{
	const char *from = name + 4;
	char *to = name;

	while (*from) {
		if (from[0] == '_' && from[1] == '_') {
			*to++ = '.';
			from += 2;
		} else if (from[0] == '$' && hex_digit(from[1]) >= 2 && hex_digit(from[2]) >= 0) {
			*to++ = (char)(hex_digit(from[1]) * 16 + hex_digit(from[2]));
			from += 3;
		} else {
			*to++ = *from++;
		}
	}
	*to = 0;
	return name;
}

char *sf_demangle(const char *name)
{
	struct text text = { 0 };
	char *copy;

	if (is_ocaml(name))
		return (copy = strdup(name)) ? demangle_ocaml(copy) : NULL;
	if (!is_mangled(name))
		return strdup(name);
	text.bytes = malloc(MAX_READABLE);
	if (!text.bytes)
		return NULL;
	if (print_readable(name, &text) && text.n) {
		text.bytes[text.n] = 0;
		return realloc(text.bytes, text.n + 1);
	}
	free(text.bytes);
	return strdup(name);
}
