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

#include "base/text.h"

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

static void put_class(struct sf_text *text, const char *name)
{
	char *start = text->at;

	sf_text_put(text, name);
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
static const char *put_type(struct sf_text *text, const char *type)
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
		sf_text_put_n(text, name, (size_t)(end - name));
	} else {
		name = primitive(*type);
		if (!name || dimensions > MAX_DIMENSIONS)
			return NULL;
		sf_text_put(text, name);
		end = type;
	}
	for (size_t i = 0; i < dimensions; i++)
		sf_text_put(text, "[]");
	return end + 1;
}

/* "(Object, int)"; false when the descriptor is none. */
static bool put_arguments(struct sf_text *text, const char *descriptor)
{
	const char *type = descriptor + 1;

	if (*descriptor != '(')
		return false;
	sf_text_put(text, "(");
	while (type && *type && *type != ')') {
		if (type != descriptor + 1)
			sf_text_put(text, ", ");
		type = put_type(text, type);
	}
	if (!type || *type != ')')
		return false;
	sf_text_put(text, ")");
	return true;
}

void sf_java_method_name(const char *class_name, const char *name, const char *descriptor,
			 char *ret, size_t size)
{
	struct sf_text text = { ret, size };
	struct sf_text before;

	*ret = 0;
	put_class(&text, class_name);
	sf_text_put(&text, ".");
	sf_text_put(&text, name);
	before = text;
	if (!put_arguments(&text, descriptor))
		*before.at = 0;
}
