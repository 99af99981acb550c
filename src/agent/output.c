/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stream of a profile: the name of its file, its first record, and whether this process has written a file, which that record
 * shows. Ordinary code; never in a signal handler.
 */
#include "agent/output.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "frozen/signal/handler.h"
#include "os/clock.h"
#include "os/process.h"
#include "stream/file.h"
#include "stream/record.h"

/* "%p" is the process id. A child process must not overwrite the file of its parent. */
static bool expand(const struct sf_agent_options *options, char output[PATH_MAX],
		   struct sf_error *err)
{
	bool other = options->first && options->first != getpid();
	size_t used = 0;

	for (const char *at = options->out; *at && used < PATH_MAX; at++) {
		if (at[0] != '%' || at[1] != 'p') {
			output[used++] = *at;
			continue;
		}
		used += (size_t)snprintf(output + used, PATH_MAX - used, "%d", getpid());
		other = false;
		at++;
	}
	if (used < PATH_MAX)
		output[used] = 0;
	if (other && used < PATH_MAX)
		used += (size_t)snprintf(output + used, PATH_MAX - used, ".%d", getpid());
	if (used < PATH_MAX)
		return true;
	output[0] = 0;
	return sf_fail(err, SF_E_INPUT, "out: the name is too long");
}

/* Makes the name independent of the current folder, which the program may change later. */
static bool make_absolute(char output[PATH_MAX], struct sf_error *err)
{
	char folder[PATH_MAX], whole[2 * PATH_MAX];

	if (output[0] == '/' || !getcwd(folder, sizeof(folder)))
		return true;
	snprintf(whole, sizeof(whole), "%s/%s", folder, output);
	if (strlen(whole) >= PATH_MAX)
		return sf_fail(err, SF_E_INPUT, "out: the name is too long");
	strcpy(output, whole);
	return true;
}

bool sf_output_name(const struct sf_agent_options *options, char ret[PATH_MAX],
		    struct sf_error *err)
{
	return expand(options, ret, err) && make_absolute(ret, err);
}

/* --- its first record --- */

bool sf_output_write_process(const struct sf_agent_options *options, uint16_t walk, struct sf_error *err)
{
	char name[64], command[1024];
	struct sf_stream_process record = {
		.pid = getpid(),
		.parent = getppid(),
		.time_ns = sf_now_ns(),
		.unix_ns = sf_unix_now_ns(),
		.rate_mhz = options->rate_mhz,
		.blocked_rate_mhz = options->blocked_rate_mhz,
		.elf_machine = sf_handler.config.arch->elf_machine,
		.walk = walk,
	};
	struct sf_outbox_piece pieces[3] = {
		{ (const char *)&record + sizeof(record.header),
		  offsetof(struct sf_stream_process, text) - sizeof(record.header) },
	};

	sf_process_name(record.pid, name, sizeof(name));
	sf_process_command(record.pid, command, sizeof(command));
	record.name_size = (uint16_t)strlen(name);
	record.command_size = (uint16_t)strlen(command);
	pieces[1] = (struct sf_outbox_piece){ name, record.name_size };
	pieces[2] = (struct sf_outbox_piece){ command, record.command_size };
	return sf_outbox_put(sf_handler.output.outbox, SF_STREAM_PROCESS, pieces, 3) ||
	       sf_fail_memory(err);
}

/* --- whose it is --- */

#define NS_PER_S UINT64_C(1000000000)
#define SLACK_NS NS_PER_S /* two clocks are read; a process id is not used again as soon as that */

/*
 * By the time of day; 0: not known. `started` is in libc's clock ticks since boot
 * (proc_pid_stat(5)).
 */
static uint64_t started_unix_ns(void)
{
	struct sf_program program;
	struct timespec now;
	uint64_t since_boot_ns;

	if (!sf_process_program(getpid(), &program) || clock_gettime(CLOCK_BOOTTIME, &now) != 0)
		return 0;
	since_boot_ns = (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
	return sf_unix_now_ns() - since_boot_ns +
	       program.started * (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
}

bool sf_output_is_own(const char *path)
{
	const struct sf_stream_process *process;
	const struct sf_record_header *record;
	struct sf_stream_file *file;
	struct sf_error err = { 0 };
	uint64_t started_ns;
	bool own;

	if (!*path || !sf_stream_file_open(path, &file, &err))
		return false;
	started_ns = started_unix_ns();
	record = sf_stream_file_next(file, &err);
	process = (const struct sf_stream_process *)(const void *)record;
	own = record && record->type == SF_STREAM_PROCESS && process->pid == getpid() &&
	      started_ns && process->unix_ns + SLACK_NS >= started_ns;
	sf_stream_file_close(file);
	return own;
}
