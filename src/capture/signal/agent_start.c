/* SPDX-License-Identifier: Apache-2.0 */
/* The means to start an agent: the path of its library, and its options (src/agent/options.h) as texts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/signal/signal_engine.h"
#include "frozen/runtime_list.h"
#include "unwind/cache.h"

#define NAME "libstillframe-agent.so"

/* Where the library may be, from the folder of our own program. To add one: a line. */
static const char *const places[] = {
	"%s/" NAME,
	"%s/../lib/stillframe/" NAME,
	"%s/../lib/" NAME,
	SF_LIBRARIES NAME, /* where this build installs libraries: src/capture/meson.build */
	NULL,
};

static bool own_folder(char *ret, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", ret, size - 1);
	char *slash;

	if (n <= 0)
		return false;
	ret[n] = 0;
	slash = strrchr(ret, '/');
	if (slash)
		*slash = 0;
	return slash != NULL;
}

/* LD_PRELOAD is split at blanks and colons (ld.so(8)), and there is no way to quote them. */
static bool check_library(const char *path, struct sf_error *err)
{
	if (!strpbrk(path, " :"))
		return true;
	return sf_fail(err, SF_E_INPUT, "%s cannot be loaded into a program: there is a blank or a "
		       "colon in its path", path);
}

bool sf_signal_library(char *ret, size_t size, struct sf_error *err)
{
	const char *given = getenv("STILLFRAME_AGENT");
	char folder[2048], found[4096];

	if (given && *given) {
		if (!realpath(given, found))
			return sf_fail_os(err, "cannot find the agent that STILLFRAME_AGENT names, %s",
					  given);
		return (size_t)snprintf(ret, size, "%s", found) < size && check_library(ret, err);
	}
	for (const char *const *place = places; own_folder(folder, sizeof(folder)) && *place; place++) {
		char path[2200];

		snprintf(path, sizeof(path), *place, folder);
		if (realpath(path, found) && strlen(found) < size) {
			memcpy(ret, found, strlen(found) + 1);
			return check_library(ret, err);
		}
	}
	sf_fail(err, SF_E_INPUT, "the agent, " NAME ", is not beside stillframe");
	return sf_fail_hint(err, "Nor where libraries are installed. Build it, or say where it is: "
				 "STILLFRAME_AGENT=/path/to/" NAME);
}

/* A text in a list of options: a comma in it is written "\,". */
static void add_value(char *ret, size_t size, const char *key, const char *value)
{
	size_t used = strlen(ret);

	used += (size_t)snprintf(ret + used, size - used, "%s%s=", used ? "," : "", key);
	for (; *value && used + 2 < size; value++) {
		if (*value == ',')
			ret[used++] = '\\';
		ret[used++] = *value;
	}
	if (used < size)
		ret[used] = 0;
}

char *sf_signal_variable(const struct sf_capture_options *options, const char *socket)
{
	char list[4 * SF_CHANNEL_PATH] = "", only[32] = "children", *text;

	add_value(list, sizeof(list), "connect", socket);
	if (!options->children)
		snprintf(only, sizeof(only), "pid=%d", options->pid);
	return asprintf(&text, "STILLFRAME=%s,%s", list, only) < 0 ? NULL : text;
}

struct load_text {
	const char *start;
	bool has_library;
	const char *end;
};

#define X(start, has_library, end) { start, has_library, end },
static const struct load_text list_texts[] = { SF_LAUNCH_LOADS(X) };
static const struct load_text main_texts[] = { SF_LAUNCH_MAIN_LOADS(X) };
#undef X
static const char *const list_taken[] = SF_LAUNCH_LOADS_TAKEN, *const main_taken[] = SF_LAUNCH_MAIN_LOADS_TAKEN;
#define N(table) (sizeof(table) / sizeof(*(table)))

_Static_assert(N(list_texts) < SF_CHILD_VARIABLES && N(main_texts) < SF_CHILD_VARIABLES, "room for all");

/* The first of these variables that is set, NULL: none is. */
static const char *find_taken(const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *value = getenv(names[i]);

		if (value && *value && strcmp(value, "0") != 0)
			return names[i];
	}
	return NULL;
}

/* The path is an item of a list there. */
static bool may_load(const char *library, struct sf_error *err)
{
	const char *taken = find_taken(list_taken, N(list_taken));

	if (taken) {
		sf_fail(err, SF_E_INPUT, "the environment has profilers for the command already (%s), which stay", taken);
		return sf_fail_hint(err, "Start the command, and record -p PID: the agent then comes beside them.");
	}
	return !strpbrk(library, SF_LAUNCH_LOADS_CUT) ||
	       sf_fail(err, SF_E_INPUT, "%s cannot be loaded by a runtime: there is one of the characters " SF_LAUNCH_LOADS_CUT
		       " in its path", library);
}

static bool may_be_main(struct sf_error *err)
{
	const char *taken = find_taken(main_taken, N(main_taken));

	if (!taken)
		return true;
	sf_fail(err, SF_E_INPUT, SF_HOOKS_TAKEN " (%s)", taken);
	return sf_fail_hint(err, "Unset that variable, or take another walk.");
}

const char *sf_signal_warning(const struct sf_capture_options *options)
{
	return sf_signal_walks_by_hooks(options->settings) && options->child && may_be_main(NULL) ? SF_HOOKS_WARNING : NULL;
}

bool sf_signal_loads(const char *library, bool by_hooks, char *ret[SF_CHILD_VARIABLES], struct sf_error *err)
{
	const struct load_text *texts = by_hooks ? main_texts : list_texts;
	const size_t n = by_hooks ? N(main_texts) : N(list_texts);

	if (by_hooks ? !may_be_main(err) : !may_load(library, err))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (asprintf(&ret[i], "%s%s%s", texts[i].start, texts[i].has_library ? library : "", texts[i].end) < 0) {
			ret[i] = NULL;
			return sf_fail_memory(err);
		}
	}
	return true;
}

static void add_text(char *ret, const char *key, const char *value)
{
	if (value)
		add_value(ret, SF_CONTROL_TEXT, key, value);
}

static void add_number(char *ret, const char *key, uint32_t value)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	add_text(ret, key, text);
}

static void add_rate(char *ret, const char *key, uint64_t mhz)
{
	char text[48];

	snprintf(text, sizeof(text), "%llu.%03uhz", (unsigned long long)(mhz / 1000),
		 (unsigned)(mhz % 1000));
	if (mhz)
		add_text(ret, key, text);
}

bool sf_signal_start_text(const struct sf_capture_options *options, const char *socket,
			  char ret[SF_CONTROL_TEXT], struct sf_error *err)
{
	const char *number = sf_setting(options->settings, "signal");
	char cache[SF_CACHE_ID];

	if (options->threads && strlen(options->threads) > SF_CONTROL_TEXT / 4)
		return sf_fail(err, SF_E_INPUT, "--threads: the expression is too long (up to %d bytes)",
			       SF_CONTROL_TEXT / 4);
	if (number && strlen(number) > 32)
		return sf_fail(err, SF_E_INPUT, "--signal: '%.40s' is no signal", number);
	*ret = 0;
	add_text(ret, "clock", options->clock ? options->clock : "both");
	add_rate(ret, "rate", options->rate_mhz);
	add_rate(ret, "blocked-rate", options->blocked_rate_mhz);
	for (const struct sf_option *option = sf_signal_options; option->name; option++)
		add_text(ret, option->name, sf_setting(options->settings, option->name));
	add_text(ret, "threads", options->threads);
	if (options->max_depth)
		add_number(ret, "max-depth", options->max_depth);
	add_text(ret, "cache", sf_cache_id(cache) ? cache : NULL);
	if (options->not_complete)
		strcat(ret, "," SF_NOT_COMPLETE);
	if (!options->children)
		return true;
	add_text(ret, "connect", socket);
	strcat(ret, ",children");
	return true;
}
