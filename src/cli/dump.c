/* SPDX-License-Identifier: Apache-2.0 */
/* stillframe dump: shows every thread of a process once, with its present stack. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/location.h"
#include "base/output.h"
#include "capture/choice/engines.h"
#include "cli/commands.h"
#include "cli/dump_json.h"
#include "frozen/ends.h"
#include "os/process.h"
#include "os/task.h"
#include "session/dump.h"

struct dump_options {
	struct sf_pids pids;
	bool all;
	uint32_t max_depth;
	int engine;           /* index of engine_names */
	bool json;
	bool times;           /* how long threads were held */
	bool awaiters;        /* of asynchronous functions */
	bool split_kinds;     /* how managed frames ran */
};

#define X(name) #name,
static const char *const engine_names[] = { "auto", SF_ENGINES(X) NULL };
#undef X

#define AT(field) offsetof(struct dump_options, field)
static const struct sf_option options[] = {
	{ .name = "pid", .letter = 'p', .kind = SF_OPTION_PIDS, .offset = AT(pids), .argument = "PID",
	  .help = "the process to look at; several: -p 1,2,3, or -p more than once" },
	{ .name = "all", .letter = 'a', .kind = SF_OPTION_FLAG, .offset = AT(all),
	  .help = "all processes of the machine that this user may look at" },
	{ .name = "engine", .letter = 'e', .kind = SF_OPTION_CHOICE, .offset = AT(engine), .argument = "ENGINE",
	  .help = "how to read the threads (default auto; docs/dump.md)", .choices = engine_names },
	{ .name = "json", .kind = SF_OPTION_FLAG, .offset = AT(json),
	  .help = "for programs: described in docs/dump.md" },
	{ .name = "max-depth", .kind = SF_OPTION_COUNT, .offset = AT(max_depth), .argument = "N",
	  .help = "frames to a stack; what is cut is marked (default 1024, at most 16384)",
	  .minimum = 1, .maximum = SF_MAX_DEPTH },
	{ .name = "times", .kind = SF_OPTION_FLAG, .offset = AT(times),
	  .help = "say how long threads were held and what the dump took" },
	{ .name = SF_AWAITERS, .kind = SF_OPTION_FLAG, .offset = AT(awaiters), .help = SF_AWAITERS_HELP },
	{ .name = SF_KINDS_OPTION, .kind = SF_OPTION_FLAG, .offset = AT(split_kinds),
	  .help = SF_KINDS_DUMP_HELP },
	{ .name = NULL },
};

/* Processes that --all does not show, and why it does not show the first of them. */
struct unseen {
	size_t n;
	struct sf_error first;
};

/* "0x45160 in bash": a function that is named after its start. */
static bool says_its_image(const char *function, const char *image)
{
	const size_t size = strlen(image), length = strlen(function);

	return length > size + 4 && strcmp(function + length - size, image) == 0 && memcmp(function + length - size - 4, " in ", 4) == 0;
}

static void print_place(const struct sf_output *output, const struct sf_dump *dump,
			const struct sf_dump_frame *frame)
{
	const char *file = sf_dump_string(dump, frame->file);

	if (*file && frame->line)
		sf_print_in(output, SF_DIM, "  %s:%u", sf_base_name(file), frame->line);
	else if (*file)
		sf_print_in(output, SF_DIM, "  %s", sf_base_name(file));
	else if (frame->image && !says_its_image(sf_dump_string(dump, frame->function), sf_base_name(sf_dump_path(dump, frame->image))))
		sf_print_in(output, SF_DIM, "  (%s)", sf_base_name(sf_dump_path(dump, frame->image)));
}

/* How the frame was found, where that is not by the file's own rules. */
static const char *remark(const struct sf_dump_frame *frame)
{
	if (frame->approximate)
		return "  [inlined calls uncertain]";
	switch (frame->via) {
	case SF_VIA_FRAME_POINTER:
		return "  [by frame pointer]";
	case SF_VIA_GUESS:
		return "  [guessed]";
	case SF_VIA_ANCHOR:
		return "  [native frames may be missing below]";
	case SF_VIA_INFERRED:
		return "  [inferred]";
	case SF_VIA_AWAITS:
		return "  [awaits]";
	case SF_VIA_SIGNAL:
		return "  [interrupted by a signal]";
	default:
		return "";
	}
}

/* With its address: here a frame is one place. */
static void print_unknown(const struct sf_output *output, const struct sf_dump *dump, const struct sf_dump_frame *frame)
{
	char name[SF_UNKNOWN_SIZE];

	sf_location_unknown(sf_dump_path(dump, frame->image), name);
	fprintf(output->file, "%s  0x%" PRIx64, name, frame->image ? frame->address : frame->pc);
}

static void print_frame(const struct sf_output *output, const struct sf_dump *dump, size_t number,
			const struct sf_dump_frame *frame, bool kinds)
{
	const char *function = sf_dump_string(dump, frame->function);

	sf_print_in(output, SF_DIM, "  #%-2zu ", number);
	if (*function)
		fputs(function, output->file);
	else
		print_unknown(output, dump, frame);
	if (frame->inlined)
		sf_print_in(output, SF_CYAN, "  inlined");
	if (kinds && sf_kind_is_managed(frame->kind))
		sf_print_in(output, SF_CYAN, "  [%s]", sf_kind_word(frame->kind));
	print_place(output, dump, frame);
	sf_print_in(output, SF_YELLOW, "%s", remark(frame));
	fputc('\n', output->file);
}

/* "NAME (TID)" */
static void print_known(FILE *out, const struct sf_dump *dump, size_t thread)
{
	fprintf(out, "%s (%d)", dump->threads.items[thread].name, dump->threads.items[thread].seen.tid);
}

/* The lock for which the thread waits, and its owner; else the purpose of the wait, as the thread's runtime gives it. */
static void print_lock(const struct sf_output *output, const struct sf_dump *dump, const struct sf_dump_thread *thread)
{
	const struct sf_lock_wait *lock = &thread->lock;

	if (!lock->kind && thread->purpose)
		fprintf(output->file, "  %s\n", thread->purpose);
	if (!lock->kind)
		return;
	fprintf(output->file, "  waits for the %s", lock->kind);
	if (lock->address)
		fprintf(output->file, " 0x%" PRIx64, lock->address);
	if (*lock->of)
		fprintf(output->file, " (%s)", lock->of);
	if (thread->owner) {
		fputs(lock->address ? ", held by " : " of ", output->file);
		print_known(output->file, dump, thread->owner - 1);
	}
	fputs(lock->timed ? ", or a time-out\n" : "\n", output->file);
}

/* "deadlock: A (1) -> B (2) -> A (1)" */
static void print_circles(const struct sf_output *output, const struct sf_dump *dump)
{
	for (size_t i = 0; i < dump->circles.n; i++) {
		const struct sf_dump_circle *circle = &dump->circles.items[i];
		size_t at = circle->first;

		sf_print_in(output, SF_RED, circle->timed ? "circle, until a time-out: " : "deadlock: ");
		for (size_t j = 0; j < circle->n; j++, at = dump->threads.items[at].owner - 1) {
			print_known(output->file, dump, at);
			fputs(" -> ", output->file);
		}
		print_known(output->file, dump, at);
		fputc('\n', output->file);
	}
}

static void print_thread(const struct sf_output *output, const struct sf_dump *dump,
			 const struct sf_dump_thread *thread, const struct dump_options *given)
{
	char time[32];

	fputc('\n', output->file);
	sf_print_in(output, SF_BOLD, "%d %s", thread->seen.tid, thread->name);
	fputs("  ", output->file);
	sf_print_in(output, thread->seen.state == SF_STATE_RUNNING ? SF_GREEN : SF_BLUE, "%s",
		    sf_state_word(thread->seen.state));
	fprintf(output->file, "%s%s%s%s", thread->wait[0] ? " in " : "", thread->wait,
		thread->detail[0] ? ": " : "", thread->detail);
	if (given->times)
		fprintf(output->file, "  %s%s", thread->seen.held_ns ? "held " : "not held",
			thread->seen.held_ns ? sf_format_time(time, thread->seen.held_ns) : "");
	fputc('\n', output->file);
	print_lock(output, dump, thread);
	if (thread->seen.loss >= 0)
		sf_print_in(output, SF_RED, "  no stack: %s\n", sf_loss_text((unsigned)thread->seen.loss));
	for (size_t i = 0; i < thread->frames.n; i++)
		print_frame(output, dump, i, &thread->frames.items[i], given->split_kinds);
	if (thread->seen.loss < 0 && thread->end != SF_END_ROOT)
		sf_print_in(output, SF_RED, "  cut: %s\n", sf_end_text(thread->end));
	else if (thread->seen.loss < 0 && !thread->frames.n)
		fputs("  no frames: the thread stays in the kernel\n", output->file);
}

static void print_dump(const struct sf_dump *dump, const struct dump_options *given, FILE *out)
{
	struct sf_output output = sf_output_for(out);
	char time[32];

	sf_print_in(&output, SF_BOLD, "process %d %s", dump->pid, dump->name);
	fprintf(out, ", %zu thread%s", dump->threads.n, dump->threads.n == 1 ? "" : "s");
	if (dump->tracer)
		fprintf(out, ", traced by %s (pid %d)", dump->tracer_name, dump->tracer);
	if (dump->frozen)
		fputs(", frozen by its control group", out);
	fputc('\n', out);
	print_circles(&output, dump);
	for (size_t i = 0; i < dump->threads.n; i++)
		print_thread(&output, dump, &dump->threads.items[i], given);
	if (dump->note)
		fprintf(out, "\nnote: %s\n", dump->note);
	if (!given->times)
		return;
	fprintf(out, "\nlooked at all threads in %s", sf_format_time(time, dump->cost.looking_ns));
	if (dump->cost.longest_hold_ns)
		fprintf(out, ", longest hold %s\n", sf_format_time(time, dump->cost.longest_hold_ns));
	else
		fprintf(out, ", held none\n");
	fprintf(out, "by %s%s%s\n", dump->engine->name, *dump->passed.text ? ": " : "", dump->passed.text);
}

static bool check_usage(const struct dump_options *given, int argc, char **argv, int rest,
			struct sf_error *err)
{
	if (rest < argc) {
		sf_fail(err, SF_E_INPUT, "'%.40s' is not expected here", argv[rest]);
		return sf_fail_hint(err, "The process goes behind -p: stillframe dump -p %.40s",
				    argv[rest]);
	}
	if (given->all && given->pids.n)
		return sf_fail(err, SF_E_INPUT, "--all and -p do not go together");
	if (!given->all && !given->pids.n)
		return sf_fail(err, SF_E_INPUT, "which process? give -p PID, or --all");
	for (uint32_t i = 0; i < given->pids.n; i++) {
		if (given->pids.items[i] == getpid())
			return sf_fail(err, SF_E_INPUT,
				       "pid %d is stillframe itself, which never holds itself", getpid());
	}
	return true;
}

static bool look(const struct dump_options *given, int32_t pid, struct sf_dumps *dumps, struct sf_error *err)
{
	const struct sf_engine *named = given->engine ? sf_engine_by_name(engine_names[given->engine]) : NULL;
	struct sf_error passed;
	const struct sf_engine *engine = sf_process_check(pid, err) ? sf_engine_for_dump(named, pid, &passed, err) : NULL;

	if (!engine || !sf_dumps_look(dumps, engine, pid, err))
		return false;
	dumps->items.items[dumps->items.n - 1].passed = passed;
	return true;
}

/* Dumps the processes one after the other. Where one fails, the others are shown all the same. */
static int look_at_given(const struct dump_options *given, struct sf_dumps *dumps)
{
	int status = SF_EXIT_OK;

	for (uint32_t i = 0; i < given->pids.n; i++) {
		struct sf_error err = { 0 };

		if (!look(given, given->pids.items[i], dumps, &err))
			status = sf_cli_fail(SF_EXIT_FAILED, &err);
	}
	return status;
}

/* Processes that end meanwhile are no failure, and threads of the kernel have no stack of a program. */
static void look_at_all(const struct dump_options *given, struct sf_dumps *dumps, struct unseen *ret)
{
	struct sf_ids ids = { 0 };

	if (!sf_process_all(&ids))
		sf_fail_os(&ret->first, "cannot list the processes");
	for (size_t i = 0; i < ids.ids.n; i++) {
		const int32_t pid = ids.ids.items[i];
		struct sf_error err = { 0 };

		if (pid == getpid() || sf_process_is_kernel(pid) || look(given, pid, dumps, &err) || err.code == SF_E_GONE)
			continue;
		if (!ret->n++)
			ret->first = err;
	}
	sf_vec_deinit(&ids.ids);
}

static void print_all(const struct sf_dumps *dumps, const struct dump_options *given)
{
	for (size_t i = 0; i < dumps->items.n; i++) {
		if (given->json) {
			sf_dump_print_json(&dumps->items.items[i], stdout);
			continue;
		}
		if (i)
			putchar('\n');
		print_dump(&dumps->items.items[i], given, stdout);
	}
}

/* Where the output is for programs, this goes to people all the same. */
static void print_unseen(const struct unseen *unseen, const struct dump_options *given)
{
	FILE *out = given->json ? stderr : stdout;

	if (!unseen->n)
		return;
	fputs(given->json ? "stillframe dump: " : "\n", out);
	if (unseen->n == 1)
		fputs("1 process is not shown: ", out);
	else
		fprintf(out, "%zu processes are not shown; of the first: ", unseen->n);
	fprintf(out, "%.*s\n", (int)strcspn(unseen->first.text, "\n"), unseen->first.text);
}

static int dump(const struct dump_options *given)
{
	struct unseen unseen = { 0 };
	struct sf_error err = { 0 };
	struct sf_dumps dumps;
	int status = SF_EXIT_OK;

	if (!sf_dumps_init(&dumps, given->max_depth, &err)) {
		sf_dumps_deinit(&dumps);
		return sf_cli_fail(SF_EXIT_FAILED, &err);
	}
	dumps.walker.awaiters = given->awaiters;
	if (given->all)
		look_at_all(given, &dumps, &unseen);
	else
		status = look_at_given(given, &dumps);
	if (!sf_dumps_name(&dumps, &err))
		status = sf_cli_fail(SF_EXIT_FAILED, &err);
	else
		print_all(&dumps, given);
	print_unseen(&unseen, given);
	if (given->all && !dumps.items.n) {
		sf_fail(&err, SF_E_DENIED, "there is no process that can be shown");
		status = sf_cli_fail(SF_EXIT_FAILED, &err);
	}
	sf_dumps_deinit(&dumps);
	return status;
}

static int run(int argc, char **argv)
{
	static struct dump_options given = { .max_depth = SF_DEFAULT_DEPTH };
	struct sf_error err = { 0 };
	int rest, status = sf_cli_parse(&sf_command_dump, argc, argv, &given, &rest);

	if (status >= 0)
		return status;
	if (!check_usage(&given, argc, argv, rest, &err))
		return sf_cli_fail(SF_EXIT_USAGE, &err);
	if (!sf_task_check_limit(&err) || !sf_process_check_system(&err))
		return sf_cli_fail(SF_EXIT_FAILED, &err);
	sf_task_raise_limit();
	return dump(&given);
}

const struct sf_command sf_command_dump = {
	.name = "dump",
	.summary = "every thread's stack, once, now",
	.usage = "[OPTIONS] {-p PID... | --all}",
	.details =
		"Shows of each thread its name, what it does, what it waits for, and its stack with "
		"inlined calls and lines. Of a lock it names the thread that has it; threads that wait for each other in a circle are "
		"listed on top. Sleeping threads are read where they sleep, without being "
		"stopped; a running one is held for the time that a copy of its stack takes.",
	.examples = "stillframe dump -p 4242\n"
		    "stillframe dump --all\n"
		    "stillframe dump -p 4242 --json | jq '.threads[].name'",
	.options = options,
	.run = run,
};
