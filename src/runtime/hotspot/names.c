/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes readable names of Java classes and methods.
 *
 * Descriptors: JVM specification, section 4.3.
 */
#include "runtime/hotspot/names.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MAX_DIMENSIONS 255

void sf_java_clean_class(char *name)
{
	char *address = strstr(name, "+0x"), *lambda = strstr(name, "$$Lambda$");

	if (!address)
		address = strstr(name, "/0x");
	if (address)
		*address = 0;
	if (lambda && strspn(lambda + 9, "0123456789") == strlen(lambda + 9))
		lambda[8] = 0;
}

/* Text that is being put together in a buffer. */
struct text {
	char *at;
	size_t left;     /* with room for the end */
};

static void put(struct text *text, const char *bytes, size_t n)
{
	if (n > text->left - 1)
		n = text->left - 1;
	memcpy(text->at, bytes, n);
	text->at += n;
	text->left -= n;
	*text->at = 0;
}

static void put_class(struct text *text, const char *name)
{
	char *start = text->at;

	put(text, name, strlen(name));
	for (char *p = start; *p; p++) {
		if (*p == '/')
			*p = '.';
	}
}

static const char *primitive(char letter)
{
	static const struct {
		char letter;
		const char *name;
	} types[] = {
		{ 'B', "byte" }, { 'C', "char" }, { 'D', "double" }, { 'F', "float" },
		{ 'I', "int" }, { 'J', "long" }, { 'S', "short" }, { 'Z', "boolean" }, { 'V', "void" },
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (types[i].letter == letter)
			return types[i].name;
	}
	return NULL;
}

/* Writes one type; returns the text behind the type, or NULL. */
static const char *put_type(struct text *text, const char *type)
{
	const size_t dimensions = strspn(type, "[");
	const char *end, *name;

	type += dimensions;
	if (*type == 'L') {
		end = strchr(type, ';');
		if (!end || dimensions > MAX_DIMENSIONS)
			return NULL;
		for (name = end; name > type + 1 && name[-1] != '/'; name--)
			;
		put(text, name, (size_t)(end - name));
	} else {
		name = primitive(*type);
		if (!name || dimensions > MAX_DIMENSIONS)
			return NULL;
		put(text, name, strlen(name));
		end = type;
	}
	for (size_t i = 0; i < dimensions; i++)
		put(text, "[]", 2);
	return end + 1;
}

/* "(Object, int)"; false when the descriptor is none. */
static bool put_arguments(struct text *text, const char *descriptor)
{
	const char *type = descriptor + 1;

	if (*descriptor != '(')
		return false;
	put(text, "(", 1);
	while (type && *type && *type != ')') {
		if (type != descriptor + 1)
			put(text, ", ", 2);
		type = put_type(text, type);
	}
	if (!type || *type != ')')
		return false;
	put(text, ")", 1);
	return true;
}

void sf_java_method_name(const char *class_name, const char *name, const char *descriptor,
			 char *ret, size_t size)
{
	struct text text = { ret, size };
	struct text before;

	*ret = 0;
	put_class(&text, class_name);
	put(&text, ".", 1);
	put(&text, name, strlen(name));
	before = text;
	if (!put_arguments(&text, descriptor))
		*before.at = 0;
}
