/* SPDX-License-Identifier: Apache-2.0 */
/* stillframe dump: shows every thread of a process once, with its present stack. */
#include <stdio.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/dump_print.h"
#include "os/process.h"
#include "os/task.h"
#include "session/dump.h"

struct dump_options {
	int32_t pid;
	uint32_t max_depth;
	bool json;
	struct sf_dump_look look;
};

#define AT(field) offsetof(struct dump_options, field)
static const struct sf_option options[] = {
	{ .name = "pid", .letter = 'p', .kind = SF_OPTION_PID, .offset = AT(pid), .argument = "PID",
	  .help = "the process to look at" },
	{ .name = "json", .kind = SF_OPTION_FLAG, .offset = AT(json),
	  .help = "for programs: described in docs/dump.md" },
	{ .name = "max-depth", .kind = SF_OPTION_COUNT, .offset = AT(max_depth), .argument = "N",
	  .help = "frames to a stack; what is cut is marked (default 1024, at most 16384)",
	  .minimum = 1, .maximum = SF_MAX_DEPTH },
	{ .name = "times", .kind = SF_OPTION_FLAG, .offset = AT(look.times),
	  .help = "say how long threads were held and what the dump took" },
	{ .name = "java-kinds", .kind = SF_OPTION_FLAG, .offset = AT(look.split_kinds),
	  .help = "say how Java frames ran: interpreted, compiled by c1 or c2, native method" },
	{ .name = NULL },
};

static int run(int argc, char **argv);

const struct sf_command sf_command_dump = {
	.name = "dump",
	.summary = "every thread's stack, once, now",
	.usage = "[OPTIONS] -p PID",
	.details =
		"Shows of each thread its name, what it does, what it waits for, and its stack with "
		"inlined calls and lines. Sleeping threads are read where they sleep, without being "
		"stopped; a running one is held for the time that a copy of its stack takes.",
	.examples = "stillframe dump -p 4242\n"
		    "stillframe dump -p 4242 --json | jq '.threads[].name'",
	.options = options,
	.run = run,
};

static bool check_usage(const struct dump_options *given, int argc, char **argv, int rest,
			struct sf_error *err)
{
	if (rest < argc) {
		sf_fail(err, SF_E_INPUT, "'%.40s' is not expected here", argv[rest]);
		return sf_fail_hint(err, "The process goes behind -p: stillframe dump -p %.40s",
				    argv[rest]);
	}
	if (!given->pid)
		return sf_fail(err, SF_E_INPUT, "which process? give -p PID");
	if (given->pid == getpid())
		return sf_fail(err, SF_E_INPUT,
			       "pid %d is stillframe itself, which never holds itself", given->pid);
	return true;
}

static int dump_process(const struct dump_options *given)
{
	struct sf_error err = { 0 };
	struct sf_dump dump = { 0 };
	const struct sf_engine *engine = sf_process_check(given->pid, &err)
						 ? sf_engine_for_dump(given->pid, &err)
						 : NULL;
	int status = SF_EXIT_OK;

	if (!engine || !sf_dump_take(&dump, engine, given->pid, given->max_depth, &err))
		status = sf_cli_fail(SF_EXIT_FAILED, &err);
	else if (given->json)
		sf_dump_print_json(&dump, stdout);
	else
		sf_dump_print(&dump, &given->look, stdout);
	sf_dump_deinit(&dump);
	return status;
}

static int run(int argc, char **argv)
{
	struct dump_options given = { .max_depth = SF_DEFAULT_DEPTH };
	struct sf_error err = { 0 };
	int rest, status = sf_cli_parse(&sf_command_dump, argc, argv, &given, &rest);

	if (status >= 0)
		return status;
	if (!check_usage(&given, argc, argv, rest, &err))
		return sf_cli_fail(SF_EXIT_USAGE, &err);
	sf_task_raise_limit();
	return dump_process(&given);
}
