/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Demangles C++ and Rust names, without parameters and return types, because flame graphs have little
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

char *sf_demangle(const char *name)
{
	struct text text = { 0 };

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
