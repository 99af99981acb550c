/* SPDX-License-Identifier: Apache-2.0 */
/* stillframe export: writes a recording in a format that other tools read. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/location.h"
#include "base/output.h"
#include "base/output_file.h"
#include "cli/commands.h"
#include "export/export.h"
#include "recording/profile/profile.h"
#include "session/session.h"

SF_DEFINE_CLEANUP(struct sf_profile *, sf_profile_destroy)

/* An option's value is an index: of sf_exporters, and for clocks the enum sf_clock, or -1: the default. */
#define X(name) #name,
static const char *const formats[] = { SF_EXPORTERS(X) NULL };
#undef X
#define X(name) ", " #name
/* Both begin with ", ". */
static const char format_list[] = SF_EXPORTERS(X), format_help[] = SF_EXPORTERS(X) " (required)";
#undef X
struct export_options {
	int format;
	const char *output;
	int clock;
	const char *threads, *label;
	bool split_kinds;
};

static const struct sf_option options[] = {
	{ .name = "format", .letter = 'f', .kind = SF_OPTION_CHOICE, .argument = "FORMAT",
	  .offset = offsetof(struct export_options, format), .choices = formats,
	  .help = format_help + 2 },
	{ .name = "output", .letter = 'o', .kind = SF_OPTION_STRING, .argument = "OUT",
	  .offset = offsetof(struct export_options, output),
	  .help = "the file to write, - for stdout (default: FILE with the format's suffix)" },
	{ .name = "clock", .kind = SF_OPTION_CHOICE, .argument = "CLOCK",
	  .offset = offsetof(struct export_options, clock), .choices = sf_clock_words,
	  .help = "what samples weigh: wall, cpu or offcpu time, or event: the events of record --event (default: wall, or event if there are no times)" },
	{ .name = "threads", .kind = SF_OPTION_STRING, .argument = "REGEX",
	  .offset = offsetof(struct export_options, threads),
	  .help = "only threads whose name matches this extended regular expression (default: all)" },
	{ .name = "label", .kind = SF_OPTION_STRING, .argument = "KEY[=VALUE]",
	  .offset = offsetof(struct export_options, label),
	  .help = "only samples that carry this label (default: all)" },
	{ .name = SF_KINDS_OPTION, .kind = SF_OPTION_FLAG,
	  .offset = offsetof(struct export_options, split_kinds),
	  .help = SF_KINDS_HELP },
	{ 0 },
};

/* Where an export goes. */
struct destination {
	char *path;         /* NULL: stdout */
	struct sf_draft draft;
	FILE *file;         /* the draft's, or stdout */
};

/* "NAME-4242.sfr" becomes "NAME-4242.html", in the current folder. */
static char *default_path(const char *input, const char *suffix)
{
	const char *name = sf_base_name(input);
	size_t size = strlen(name);
	char *path;

	if (size > 4 && (strcmp(name + size - 4, ".sfr") == 0 ||
			 strcmp(name + size - 4, ".sfs") == 0))
		size -= 4;
	if (asprintf(&path, "%.*s%s", (int)size, name, suffix) < 0)
		return NULL;
	return path;
}

static bool open_stdout(struct destination *to, const struct sf_exporter *exporter,
			struct sf_error *err)
{
	if (exporter->binary && isatty(STDOUT_FILENO)) {
		sf_fail(err, SF_E_INPUT, "cannot write %s to a terminal: it is binary",
			exporter->name);
		return sf_fail_hint(err, "Redirect it, or give a file: -o profile%s",
				    exporter->suffix);
	}
	to->file = stdout;
	return true;
}

/* By any name. */
static bool is_same_file(const char *a, const char *b)
{
	struct stat a_is, b_is;

	return stat(a, &a_is) == 0 && stat(b, &b_is) == 0 && a_is.st_dev == b_is.st_dev && a_is.st_ino == b_is.st_ino;
}

static bool open_destination(struct destination *to, const struct sf_exporter *exporter,
			     const char *output, const char *input, struct sf_error *err)
{
	if (output && strcmp(output, "-") == 0)
		return open_stdout(to, exporter, err);
	to->path = output ? strdup(output) : default_path(input, exporter->suffix);
	if (!to->path)
		return sf_fail_memory(err);
	if (is_same_file(to->path, input)) {
		sf_fail(err, SF_E_INPUT, "%s is what is exported: not written", to->path);
		return sf_fail_hint(err, "Give another name with -o.");
	}
	if (!sf_draft_open(&to->draft, to->path, err))
		return false;
	to->file = to->draft.file;
	return true;
}

static bool finish_destination(struct destination *to, struct sf_error *err)
{
	if (to->path)
		return sf_draft_finish(&to->draft, err);
	return fflush(stdout) == 0 || sf_fail_os(err, "cannot write to stdout");
}

static void close_destination(struct destination *to)
{
	sf_draft_abandon(&to->draft);
	free(to->path);
}

static enum sf_clock clock_for(const struct sf_profile *profile, int wanted)
{
	if (wanted >= 0)
		return (enum sf_clock)wanted;
	return profile->measure.is_all ? SF_CLOCK_EVENT : SF_CLOCK_WALL;
}

static bool export_profile(const struct export_options *wanted, const char *input,
			   struct sf_error *err)
{
	SF_CLEANUP(sf_profile_destroy) struct sf_profile *profile = NULL;
	struct sf_filter filter = { .threads = wanted->threads, .label = wanted->label };
	const struct sf_exporter *exporter = sf_exporters[wanted->format];
	struct destination to = { 0 };
	bool done;

	if (!sf_session_load(input, wanted->split_kinds, &profile, err) ||
	    !sf_profile_filter(profile, &filter, err))
		return false;
	filter.clock = clock_for(profile, wanted->clock);
	if (!sf_profile_has_clock(profile, input, filter.clock, err))
		return false;
	done = open_destination(&to, exporter, wanted->output, input, err) &&
	       exporter->write(profile, &filter, to.file, err) &&
	       finish_destination(&to, err);
	if (done && to.path) {
		fputs("stillframe: wrote ", stderr);
		sf_print_clean(stderr, to.path);
		fputc('\n', stderr);
	}
	if (done && sf_profile_cut(profile)) {
		fputs("stillframe: ", stderr);
		sf_print_clean(stderr, input);
		fprintf(stderr, " is %s\n", sf_profile_cut(profile));
	}
	close_destination(&to);
	return done;
}

static int bad_usage(const char *text, const char *more)
{
	struct sf_error err;

	sf_fail(&err, SF_E_INPUT, "%s%s", text, more);
	sf_fail_hint(&err, "See `stillframe export --help`.");
	return sf_cli_fail(SF_EXIT_USAGE, &err);
}

static int run_export(int argc, char **argv)
{
	struct export_options wanted = { .format = -1, .clock = -1 };
	struct sf_error err = { 0 };
	int rest, status = sf_cli_parse(&sf_command_export, argc, argv, &wanted, &rest);

	if (status >= 0)
		return status;
	if (wanted.format < 0)
		return bad_usage("export: --format is missing: one of ", format_list + 2);
	if (argc - rest != 1)
		return bad_usage("export: one recording (FILE.sfr) or stream (FILE.sfs) is needed", "");
	signal(SIGXFSZ, SIG_IGN); /* a limit of files' sizes (ulimit -f) is a failure as a full disk is */
	if (!export_profile(&wanted, argv[rest], &err))
		return sf_cli_fail(SF_EXIT_FAILED, &err);
	return SF_EXIT_OK;
}

/* The formats, and what holds for all of them. */
static const char *details(void)
{
	static char text[2048];
	size_t used = (size_t)snprintf(text, sizeof(text), "Formats");

	for (size_t i = 0; sf_exporters[i] && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s %s (%s)", i ? "," : ":",
					 sf_exporters[i]->name, sf_exporters[i]->summary);
	if (used < sizeof(text))
		snprintf(text + used, sizeof(text) - used,
			 ".\nThe clock decides what a sample weighs: wall counts all time, cpu the time on a CPU, "
			 "offcpu the time blocked or waiting for a CPU, event the events of record --event. Samples that weigh nothing are left out.\n"
			 "FILE is a recording, or a stream that the agent wrote in a program.");
	return text;
}

const struct sf_command sf_command_export = {
	.name = "export",
	.summary = "write a recording in a format that other tools read",
	.usage = "FILE --format FORMAT [-o OUT]",
	.make_details = details,
	.examples = "stillframe export java-4242.sfr --format html\n"
		    "stillframe export java-4242.sfr --format collapsed --clock cpu -o - | flamegraph.pl "
		    "> cpu.svg\n"
		    "stillframe export java-4242.sfr --format pprof && go tool pprof -http : "
		    "java-4242.pb.gz",
	.options = options,
	.run = run_export,
};
