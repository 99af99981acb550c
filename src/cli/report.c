/* SPDX-License-Identifier: Apache-2.0 */
/* stillframe report: shows a recording as text or JSON. */
#include "cli/report.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/folder.h"
#include "cli/commands.h"
#include "session/session.h"

SF_DEFINE_CLEANUP(struct sf_profile *, sf_profile_destroy)
SF_DEFINE_CLEANUP(struct sf_aggregate *, sf_aggregate_destroy)

struct report_options {
	int clock;            /* index into clock_choices */
	const char *threads, *label;
	int by;               /* 0: all sections, else section + 1 */
	uint32_t top, depth, min_percent;
	bool json, split_kinds;
};

/* Behind "auto" in the order of enum sf_clock. */
static const char *const clock_choices[] = { "auto", "wall", "cpu", "offcpu", "event", NULL };

static const char *const by_choices[] = {
	"all",
#define X(NAME, word) word,
	SF_SECTIONS(X)
#undef X
	NULL,
};

#define X(NAME, word) word ", "
static const char by_help[] = "one section only: " SF_SECTIONS(X) "or all (default)";
#undef X

#define AT(member) offsetof(struct report_options, member)

static const struct sf_option options[] = {
	{ .name = "clock", .letter = 'c', .kind = SF_OPTION_CHOICE, .offset = AT(clock),
	  .argument = "CLOCK", .choices = clock_choices,
	  .help = "cpu: time on a CPU; wall: all time; offcpu: time blocked or waiting for a CPU; "
		  "event: the events of record --event; auto (default): event if there are no times, else cpu, or wall if nothing ran" },
	{ .name = "by", .letter = 'b', .kind = SF_OPTION_CHOICE, .offset = AT(by),
	  .argument = "WHAT", .choices = by_choices, .help = by_help },
	{ .name = "threads", .letter = 't', .kind = SF_OPTION_STRING, .offset = AT(threads),
	  .argument = "REGEX", .help = "only threads whose name matches (POSIX extended)" },
	{ .name = "label", .letter = 'l', .kind = SF_OPTION_STRING, .offset = AT(label),
	  .argument = "KEY[=VALUE]", .help = "only samples that carry this label" },
	{ .name = "top", .letter = 'n', .kind = SF_OPTION_COUNT, .offset = AT(top),
	  .argument = "N", .help = "rows per table (default: 20; with --json all)" },
	{ .name = "depth", .kind = SF_OPTION_COUNT, .offset = AT(depth), .argument = "N",
	  .minimum = 1, .maximum = 10000, .help = "frames down the tree (default: 64)" },
	{ .name = "min-percent", .kind = SF_OPTION_COUNT, .offset = AT(min_percent),
	  .argument = "N", .maximum = 100,
	  .help = "leave out branches of the tree below N percent (default: 1)" },
	{ .name = SF_KINDS_OPTION, .kind = SF_OPTION_FLAG, .offset = AT(split_kinds),
	  .help = SF_KINDS_HELP },
	{ .name = "json", .kind = SF_OPTION_FLAG, .offset = AT(json),
	  .help = "for programs; the format is in docs/report.md" },
	{ 0 },
};

static bool ran(const struct sf_profile *profile)
{
	for (size_t i = 0; i < profile->n_samples; i++) {
		if (profile->samples[i].cpu_ns && !profile->samples[i].unseen)
			return true;
	}
	return false;
}

static enum sf_clock choose_clock(const struct report_options *chosen,
				  const struct sf_profile *profile)
{
	if (chosen->clock == 0 && profile->measure.is_all)
		return SF_CLOCK_EVENT;
	if (chosen->clock == 0)
		return ran(profile) ? SF_CLOCK_CPU : SF_CLOCK_WALL;
	return (enum sf_clock)(chosen->clock - 1);
}

static bool write_report(const struct sf_report *report, bool json, struct sf_error *err)
{
	const struct sf_output output = sf_output_for(stdout);

	if (json) {
		if (!sf_report_json(report, stdout, err))
			return false;
	} else {
		sf_report_text(report, &output);
	}
	if (fflush(stdout) != 0 || ferror(stdout))
		return sf_fail_os(err, "cannot write the report");
	return true;
}

static bool report_file(const char *path, const struct report_options *chosen,
			struct sf_error *err)
{
	SF_CLEANUP(sf_profile_destroy) struct sf_profile *profile = NULL;
	SF_CLEANUP(sf_aggregate_destroy) struct sf_aggregate *aggregate = NULL;
	struct sf_filter filter = { .threads = chosen->threads, .label = chosen->label };
	struct sf_report report = {
		.path = path,
		.threads = chosen->threads,
		.label = chosen->label,
		.only = chosen->by - 1,
		.top = chosen->top,
		.depth = chosen->depth,
		.min_percent = chosen->min_percent,
	};

	if (!sf_session_load(path, chosen->split_kinds, &profile, err) ||
	    !sf_profile_filter(profile, &filter, err))
		return false;
	filter.clock = choose_clock(chosen, profile);
	if (!sf_profile_has_clock(profile, path, filter.clock, err) || !sf_aggregate_create(profile, filter.clock, &aggregate, err))
		return false;
	report.profile = profile;
	report.aggregate = aggregate;
	return write_report(&report, chosen->json, err);
}

static bool is_recording_name(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && dot > name && (strcmp(dot, ".sfr") == 0 || strcmp(dot, ".sfs") == 0);
}

static bool is_newer(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

/*
 * Finds the recording or stream of the current folder that was written last, by names and times: no file is opened.
 * Only regular files count; a symbolic link does not.
 */
static bool find_newest(char ret[NAME_MAX + 1], struct sf_error *err)
{
	SF_CLEANUP(folder) struct sf_folder folder;
	struct timespec newest = { 0 };
	struct stat status;
	const char *name;

	if (!sf_folder_open(&folder, AT_FDCWD, "."))
		return sf_fail_os(err, "cannot list the current folder");
	*ret = 0;
	while ((name = sf_folder_next(&folder))) {
		if (!is_recording_name(name) || fstatat(folder.fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !S_ISREG(status.st_mode) || (*ret && !is_newer(&status.st_mtim, &newest)))
			continue;
		newest = status.st_mtim;
		snprintf(ret, NAME_MAX + 1, "%s", name);
	}
	return *ret || sf_fail(err, SF_E_INPUT, "there is no recording (*.sfr, *.sfs) in this folder");
}

/* The file is named on stderr, so that JSON stays JSON. */
static bool report_newest(const struct report_options *chosen, struct sf_error *err)
{
	char path[NAME_MAX + 1];

	if (!find_newest(path, err))
		return sf_fail_hint(err, "Name one: stillframe report FILE");
	fputs("stillframe: ", stderr);
	sf_print_clean(stderr, path);
	fputs(", the newest recording here\n", stderr);
	return report_file(path, chosen, err);
}

static int run(int argc, char **argv)
{
	struct report_options chosen = { .depth = 64, .min_percent = 1 };
	struct sf_error err = { 0 };
	int rest, status = sf_cli_parse(&sf_command_report, argc, argv, &chosen, &rest);

	if (status >= 0)
		return status;
	if (argc - rest > 1) {
		sf_fail(&err, SF_E_INPUT, "report takes one recording, %d given", argc - rest);
		sf_fail_hint(&err, "Usage: stillframe report %s", sf_command_report.usage);
		return sf_cli_fail(SF_EXIT_USAGE, &err);
	}
	if (argc == rest ? !report_newest(&chosen, &err) : !report_file(argv[rest], &chosen, &err))
		return sf_cli_fail(SF_EXIT_FAILED, &err);
	return SF_EXIT_OK;
}

const struct sf_command sf_command_report = {
	.name = "report",
	.summary = "show what is in a recording: functions, call tree, threads, losses",
	.usage = "[OPTIONS] [FILE]",
	.details =
		"Prints who spent the time: functions by the time they took themselves (self) and with "
		"all that they called (total; recursion counts once), the call tree, processes, threads, states, "
		"what blocked threads waited for, labels, how the stacks ended and which ticks were "
		"lost.\n"
		"\n"
		"Every sample carries its state and how much CPU time and elapsed time it stands for, so "
		"one recording answers for CPU time (--clock cpu), elapsed time (--clock wall) and "
		"time off the CPU (--clock offcpu). A recording of events (record --event) counts these.\n"
		"\n"
		"FILE is a recording, or a stream that the agent wrote in a program (out=FILE.sfs). Without "
		"one, the newest of the current folder is taken.\n"
		"\n"
		"In the tree, the only function that another one calls stands below it without being moved "
		"to the right; lines branch where calls do. An empty line parts stacks that begin in "
		"different functions.",
	.examples = "stillframe report java-4242.sfr\n"
		    "stillframe report --clock offcpu --by wait java-4242.sfr\n"
		    "stillframe report --threads '^worker' --by tree --min-percent 5 shopd.sfr\n"
		    "stillframe report --json shopd.sfr | jq '.functions[0]'",
	.options = options,
	.run = run,
};
