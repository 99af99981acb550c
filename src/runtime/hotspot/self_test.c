/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the tables of a JVM on known objects after an attach, and disables data that fails. */
#include "runtime/hotspot/self_test.h"

#include <stdio.h>
#include <string.h>

#include "runtime/hotspot/metadata.h"
#include "runtime/hotspot/threads.h"

#define KNOWN_CLASS "java.lang.Thread."
#define MAX_METHODS 1000
#define MAX_LINE 65535
#define LAST_BYTECODE 65535
#define ELEMENTS 8           /* of an Array<Method*>, behind its length (HotSpot: oops/array.hpp) */

static void give_up(struct sf_hotspot *hotspot, enum sf_hotspot_field_name field, const char *what,
		    char *note, size_t size)
{
	size_t n = strlen(note);

	hotspot->fields[field].width = 0;
	snprintf(note + n, size - n, "%s%s", n ? "; " : "without ", what);
}

static bool is_in_code(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
		       uint64_t pc)
{
	struct sf_blob blob;

	return sf_hotspot_blob(hotspot, memory, pc, &blob);
}

/* The results of reading the methods of java.lang.Thread. */
struct seen {
	unsigned methods, named, with_lines, lined;
	bool runs;           /* "run" is one of them */
};

static void look_at(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
		    uint64_t method, struct seen *seen)
{
	struct sf_java_method read;
	uint64_t flags = 0;
	uint32_t line;

	seen->methods++;
	if (!sf_java_method_read(hotspot, memory, method, &read))
		return;
	seen->named += strncmp(read.name, KNOWN_CLASS, strlen(KNOWN_CLASS)) == 0;
	seen->runs |= strcmp(read.name, KNOWN_CLASS "run()") == 0;
	sf_hotspot_get(hotspot, memory, SF_HS_CONST_FLAGS, read.constant, &flags);
	line = sf_java_line(hotspot, memory, read.constant, LAST_BYTECODE);
	seen->with_lines += (flags & (uint64_t)hotspot->numbers[SF_HS_NUMBER_HAS_LINES]) != 0;
	seen->lined += line > 0 && line <= MAX_LINE;
}

/* False: there is nothing to look at yet. */
static bool look_at_all(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
			struct seen *seen)
{
	uint64_t class, methods, method;
	uint32_t n;

	*seen = (struct seen){ 0 };
	if (!sf_hotspot_get(hotspot, memory, SF_HS_THREAD_CLASS, 0, &class) || !class ||
	    !sf_hotspot_get(hotspot, memory, SF_HS_CLASS_METHODS, class, &methods) || !methods ||
	    !sf_read(memory, &n, methods, sizeof(n)) || n > MAX_METHODS)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		if (!sf_read_u64(memory, methods + ELEMENTS + 8 * (uint64_t)i, &method))
			return false;
		look_at(hotspot, memory, method, seen);
	}
	return seen->methods > 0;
}

bool sf_hotspot_self_test(struct sf_hotspot *hotspot, const struct sf_reader *memory, char *note,
			  size_t size, struct sf_error *err)
{
	struct seen seen;

	if (!is_in_code(hotspot, memory, hotspot->call_stub_return) ||
	    !is_in_code(hotspot, memory, hotspot->interpreter_start))
		return sf_fail(err, SF_E_UNSUPPORTED, "its code is not laid out as its libjvm says "
			       "(self-test: the call stub or the interpreter is in no piece of code)");
	if (!look_at_all(hotspot, memory, &seen))
		return true;
	if (seen.named < seen.methods || !seen.runs)
		give_up(hotspot, SF_HS_CONST_NAME, "the names of methods (self-test: those of "
			"java.lang.Thread do not read as such)", note, size);
	else if (seen.lined < seen.with_lines)
		give_up(hotspot, SF_HS_CONST_FLAGS,
			"lines (self-test: those of java.lang.Thread cannot be)", note, size);
	return true;
}

void sf_hotspot_self_test_threads(struct sf_hotspot *hotspot, const struct sf_reader *memory,
				  bool (*is_thread)(void *arg, int32_t tid), void *arg, char *note,
				  size_t size)
{
	struct sf_java_threads threads = { 0 };
	unsigned known = 0;

	sf_java_threads_list(hotspot, memory, &threads);
	for (size_t i = 0; i < threads.items.n; i++)
		known += is_thread(arg, threads.items.items[i].tid);
	if (threads.items.n && !known)
		give_up(hotspot, SF_HS_THREAD_OS,
			"the full names of threads, and Java frames below native "
			"ones that cannot be walked (self-test: its list of threads names none of this "
			"process)",
			note, size);
	sf_vec_deinit(&threads.items);
}
