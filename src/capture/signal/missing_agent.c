/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the reason why no agent came into a program, mostly from the program's file. */
#include <stdio.h>
#include <string.h>

#include "capture/signal/signal_engine.h"
#include "elf/program.h"
#include "os/clock.h"
#include "runtime/runtimes.h"

/* Also for a program that has ended. */
static bool look_at_program(const struct sf_capture *capture, struct sf_program_file *ret)
{
	if (!capture->child_ended && sf_program_look_process(capture->options.pid, ret))
		return true;
	return capture->options.program && sf_program_look_named(capture->options.program, ret);
}

static bool is_static(const struct sf_program_file *file)
{
	return file->elf && !file->has_loader;
}

static bool is_foreign(const struct sf_program_file *file)
{
	return file->elf &&
	       (!file->is_64_bit || file->machine != sf_arch_host()->elf_machine);
}

static bool has_musl(const struct sf_program_file *file)
{
	return file->has_musl;
}

static bool gains_rights(const struct sf_program_file *file)
{
	return file->gains_rights;
}

/* To add a reason: a line; the first that fits is told. */
static const struct {
	bool (*fits)(const struct sf_program_file *file);
	const char *text;
} reasons[] = {
	{ is_foreign, "It is a program for another kind of machine (32-bit, perhaps) than the agent." },
	{ is_static, "It is linked statically: no library can be loaded into it." },
	{ has_musl, "It is linked with the C library musl, and the agent with glibc." },
	{ gains_rights, "It gains rights when it starts (setuid, setgid, capabilities), and then takes no "
			"library from others." },
};

static const char *find_reason(const struct sf_capture *capture)
{
	struct sf_program_file file;

	if (look_at_program(capture, &file)) {
		for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++) {
			if (reasons[i].fits(&file))
				return reasons[i].text;
		}
	}
	return "It may clear its environment, or be kept from our socket by a sandbox.";
}

/* Quotes the agent's refusal: a line with the reason, and perhaps a line with what to do. */
static bool quote_refusal(const struct sf_capture *capture, struct sf_error *err)
{
	const char *text = capture->refusal, *hint = text + strcspn(text, "\n");

	sf_fail(err, SF_E_UNSUPPORTED, "nothing was sampled; the agent in pid %d: %.*s",
		capture->refused_pid, (int)(hint - text), text);
	hint += strspn(hint, "\n ");
	if (*hint)
		sf_fail_hint(err, "%.*s", (int)strcspn(hint, "\n"), hint);
	return sf_fail_hint(err, "From outside: --engine ptrace.");
}

/* The process had an agent, which went before the first tick. */
static bool why_alone(const char *name, int32_t pid, struct sf_error *err)
{
	sf_fail(err, SF_E_UNSUPPORTED, "nothing was sampled: %s (pid %d) ran on without an agent in it", name, pid);
	sf_fail_hint(err, "It executed another program, perhaps: with another root folder, in which the agent's "
			  "library is not, or with an environment that was cleared.");
	return sf_fail_hint(err, "From outside: --engine ptrace, where that is allowed.");
}

/* The command has not had the runtime that was asked for load the agent. */
static bool why_no_runtime(const struct sf_capture *capture, const char *name, struct sf_error *err)
{
	const struct sf_runtime_driver *driver = sf_runtimes_inside(capture->options.runtime);
	char when[32] = "before its end";

	if (!capture->child_ended)
		snprintf(when, sizeof(when), "in %.1f s", (double)(sf_now_ns() - capture->start_ns) / 1e9);
	sf_fail(err, SF_E_UNSUPPORTED, "nothing was sampled by --engine %s: %s has not loaded the agent into %s (pid %d) %s", capture->options.runtime,
		driver ? driver->inside_text : "its runtime", name, capture->options.pid, when);
	return sf_fail_hint(err, "Leave --engine out for a program that has no such runtime, or whose runtime may load no profilers.");
}

bool sf_signal_why(const struct sf_capture *capture, struct sf_error *err)
{
	const char *name = capture->options.program ? capture->options.program : "the program";
	int32_t pid = capture->options.pid;

	if (capture->refusal[0])
		return quote_refusal(capture, err);
	if (!capture->options.child && !capture->any_sampled)
		return sf_fail(err, SF_E_GONE, "nothing was sampled: the agent in pid %d did not begin",
			       pid);
	if (capture->any_sampled)
		return why_alone(name, pid, err);
	if (capture->options.runtime)
		return why_no_runtime(capture, name, err);
	if (capture->child_ended)
		sf_fail(err, SF_E_GONE, "nothing was sampled: %s (pid %d) ended before an agent called from "
			"it", name, pid);
	else
		sf_fail(err, SF_E_UNSUPPORTED, "nothing was sampled: no agent called from %s (pid %d) in "
			"%.1f s", name, pid, (double)(sf_now_ns() - capture->start_ns) / 1e9);
	sf_fail_hint(err, "%s", find_reason(capture));
	return sf_fail_hint(err, "From outside: --engine ptrace, where that is allowed.");
}
