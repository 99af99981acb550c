/* SPDX-License-Identifier: Apache-2.0 */
/* Errors: filling a struct sf_error with a message and a hint, and the text of an errno. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/output.h"

/* A message quotes names of files, processes and more: it is cleaned here, for all. */
static void set_text(struct sf_error *err, const char *format, va_list args)
{
	vsnprintf(err->text, sizeof(err->text), format, args);
	sf_sanitize(err->text);
}

static void add_text(struct sf_error *err, const char *text)
{
	size_t used = strlen(err->text);

	snprintf(err->text + used, sizeof(err->text) - used, "%s", text);
}

static enum sf_code code_of_errno(int error)
{
	switch (error) {
	case EPERM:
	case EACCES:
		return SF_E_DENIED;
	case ESRCH:
		return SF_E_GONE;
	case ENOMEM:
		return SF_E_NO_MEMORY;
	default:
		return SF_E_SYSTEM;
	}
}

bool sf_fail(struct sf_error *err, enum sf_code code, const char *format, ...)
{
	va_list args;

	if (!err)
		return false;
	err->code = code;
	err->os_errno = 0;
	va_start(args, format);
	set_text(err, format, args);
	va_end(args);
	return false;
}

const char *sf_os_error(int error)
{
	const char *text = strerrordesc_np(error);

	return text ? text : "unknown error";
}

bool sf_fail_os(struct sf_error *err, const char *format, ...)
{
	int error = errno;
	va_list args;

	if (!err)
		return false;
	err->code = code_of_errno(error);
	err->os_errno = error;
	va_start(args, format);
	set_text(err, format, args);
	va_end(args);
	add_text(err, ": ");
	add_text(err, sf_os_error(error));
	return false;
}

bool sf_fail_memory(struct sf_error *err)
{
	return sf_fail(err, SF_E_NO_MEMORY, "out of memory");
}

bool sf_fail_hint(struct sf_error *err, const char *format, ...)
{
	char line[sizeof(err->text)];
	va_list args;

	if (!err)
		return false;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	sf_sanitize(line);
	add_text(err, "\n  ");
	add_text(err, line);
	return false;
}

/* A full stop takes the place of the end of a line that has none. A hint begins with two blanks, of which one is left out. */
char *sf_error_sentences(const char *lines, char *ret, size_t size)
{
	size_t n = 0;

	for (const char *at = lines; *at && n + 2 < size; at++) {
		if (*at != '\n') {
			ret[n++] = *at;
			continue;
		}
		if (n && ret[n - 1] != '.')
			ret[n++] = '.';
		at += at[1] == ' ' && at[2] == ' ';
	}
	ret[n] = 0;
	return ret;
}
