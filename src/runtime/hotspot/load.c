/* SPDX-License-Identifier: Apache-2.0 */
/* Has a running JVM load an agent: the requests, and what its replies mean. Replies are hostile input. */
#include "runtime/hotspot/load.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "runtime/hotspot/load_target.h"
#include "runtime/load/load.h"

#define MAX_REPLY 65536
#define WORDS_SIZE 240

/* --- requests --- */

static bool add(char *ret, size_t size, size_t *used, const char *text)
{
	size_t n = strlen(text) + 1;

	if (n > size - *used)
		return false;
	memcpy(ret + *used, text, n);
	*used += n;
	return true;
}

static size_t size_of(const char *command, const char *const arguments[SF_JVM_LOAD_ARGUMENTS])
{
	size_t size = strlen(command) + 1;

	for (int i = 0; i < SF_JVM_LOAD_ARGUMENTS; i++)
		size += strlen(arguments[i]) + 1;
	return size;
}

size_t sf_jvm_load_request(unsigned version, const char *command,
		       const char *const arguments[SF_JVM_LOAD_ARGUMENTS], char *ret, size_t size)
{
	size_t used = 0;
	char number[24];
	bool fits = add(ret, size, &used, version == 2 ? "2" : "1");

	if (version == 2) {
		snprintf(number, sizeof(number), "%zu", size_of(command, arguments));
		fits = fits && add(ret, size, &used, number);
	}
	fits = fits && add(ret, size, &used, command);
	for (int i = 0; i < SF_JVM_LOAD_ARGUMENTS; i++)
		fits = fits && add(ret, size, &used, arguments[i]);
	return fits ? used : 0;
}

bool sf_jvm_load_fits_v1(const char *const arguments[SF_JVM_LOAD_ARGUMENTS])
{
	for (int i = 0; i < SF_JVM_LOAD_ARGUMENTS; i++) {
		if (strlen(arguments[i]) > SF_JVM_LOAD_MAX_V1)
			return false;
	}
	return true;
}

/* --- replies --- */

/* The text behind the number and its line end; NULL: there is no such number. */
static const char *split(const char *reply, size_t size, int *code_ret, size_t *size_ret)
{
	size_t i = 0;
	bool negative = size && reply[0] == '-';
	int code = 0;

	for (i = negative; i < size && reply[i] >= '0' && reply[i] <= '9' && i < 8; i++)
		code = code * 10 + (reply[i] - '0');
	if (i == (size_t)negative || (i < size && reply[i] != '\n'))
		return NULL;
	*code_ret = negative ? -code : code;
	i += i < size;
	*size_ret = size - i;
	return reply + i;
}

static bool is_line(const char *text, size_t size, const char *line)
{
	size_t n = strlen(line);

	return size >= n && memcmp(text, line, n) == 0 &&
	       (size == n || text[n] == '\n' || text[n] == '\r');
}

/* Copies the first line, with printable characters only. */
static void clean(const char *text, size_t size, char ret[WORDS_SIZE])
{
	size_t used = 0;

	for (size_t i = 0; i < size && used < WORDS_SIZE - 1; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c > ' ' && c < 0x7f)
			ret[used++] = (char)c;
		else if (used && ret[used - 1] != ' ')
			ret[used++] = c <= ' ' ? ' ' : '?';
	}
	while (used && ret[used - 1] == ' ')
		used--;
	ret[used] = 0;
}

bool sf_jvm_load_knows_v2(const char *reply, size_t size)
{
	int code;
	size_t left;
	const char *text = split(reply, size, &code, &left);

	return text && code == 0 && left > 0 && text[0] == '2';
}

/* To add one: what the virtual machine's answer contains, what that means, what to do. */
static const struct {
	const char *sign, *meaning, *hint;
} refusals[] = {
	{ "Dynamic agent loading is not enabled",
	  "its Java virtual machine was told to take none while it runs (-XX:-EnableDynamicAgentLoading)",
	  "Start it without, or with -agentpath:.../libstillframe-agent.so=listen." },
	{ "cannot allocate memory in static TLS block", "its loader has no room for the agent's thread-local variables",
	  "Start it with -agentpath:.../libstillframe-agent.so=listen." },
};

static bool refuse(const char *words, int pid, struct sf_error *err)
{
	for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++) {
		if (!strstr(words, refusals[i].sign))
			continue;
		sf_fail(err, SF_E_UNSUPPORTED, "no agent can be loaded into pid %d: %s", pid,
			refusals[i].meaning);
		return sf_fail_hint(err, "%s", refusals[i].hint);
	}
	return sf_fail(err, SF_E_UNSUPPORTED,
		       "the Java virtual machine in pid %d did not load the agent: %s", pid,
		       *words ? words : "it does not say why");
}

/*
 * JDK 8 answers with the agent's own number alone. JDK 24 and later answer 0 to what failed, too.
 */
bool sf_jvm_load_judge(const char *reply, size_t size, int pid, struct sf_error *err)
{
	char words[WORDS_SIZE];
	int code;
	size_t left;
	const char *text = split(reply, size, &code, &left);

	if (!text) {
		clean(reply, size, words);
		return refuse(words, pid, err);
	}
	if (code == 0 && (is_line(text, left, "return code: 0") || is_line(text, left, "0")))
		return true;
	clean(text, left, words);
	return refuse(words, pid, err);
}

/* --- in the child, as the target's user --- */

static long ask(const struct sf_load_target *target, unsigned version, const char *command,
		const char *const arguments[SF_JVM_LOAD_ARGUMENTS], char *ret, struct sf_error *err)
{
	char request[SF_JVM_LOAD_MAX_REQUEST];
	size_t size = sf_jvm_load_request(version, command, arguments, request, sizeof(request));
	SF_CLEANUP(close) int fd = -1;

	if (!size) {
		sf_fail(err, SF_E_INPUT, "the path or the options of the agent are too long");
		return -1;
	}
	fd = sf_jvm_load_connect(target, err);
	return fd < 0 ? -1 : sf_jvm_load_ask(target, fd, request, size, ret, MAX_REPLY, err);
}

/* The older protocol wherever it has room: all know it. */
static bool choose_version(const struct sf_load_target *target,
			   const char *const arguments[SF_JVM_LOAD_ARGUMENTS], unsigned *ret,
			   struct sf_error *err)
{
	static const char *const none[SF_JVM_LOAD_ARGUMENTS] = { "", "", "" };
	static char reply[MAX_REPLY];
	long size;

	*ret = 1;
	if (sf_jvm_load_fits_v1(arguments))
		return true;
	*ret = 2;
	size = ask(target, 1, "getversion", none, reply, err);
	if (size < 0)
		return false;
	return sf_jvm_load_knows_v2(reply, (size_t)size) ||
	       sf_fail(err, SF_E_UNSUPPORTED,
		       "no agent can be loaded into pid %d: its Java virtual machine "
		       "takes paths and options of up to %d bytes",
		       target->pid, SF_JVM_LOAD_MAX_V1);
}

static bool load(const struct sf_load_target *target, const char *path, const char *options,
		 struct sf_error *err)
{
	const char *const arguments[SF_JVM_LOAD_ARGUMENTS] = { path, "true", options };
	static char reply[MAX_REPLY];
	unsigned version;
	long size;

	if (!choose_version(target, arguments, &version, err))
		return false;
	size = ask(target, version, "load", arguments, reply, err);
	return size >= 0 && sf_jvm_load_judge(reply, (size_t)size, target->pid, err);
}

/* --- here --- */

bool sf_hotspot_loadable(int32_t pid, struct sf_error *err)
{
	struct sf_load_target target;
	bool ok = sf_jvm_load_open(pid, &target, err);

	sf_load_target_close(&target);
	return ok;
}

bool sf_hotspot_load(int32_t pid, const char *library, const char *options, struct sf_error *err)
{
	struct sf_load_target target;
	bool ok = sf_jvm_load_open(pid, &target, err) && sf_load(&target, library, options, load, err);

	sf_load_target_close(&target);
	return ok;
}
