/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the first record of a stream, when the outbox exists and before a thread can be sampled. */
#include "agent/first_record.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "os/clock.h"
#include "os/process.h"
#include "stream/record.h"

bool sf_agent_write_process(const struct sf_agent_options *options, uint16_t walk, struct sf_error *err)
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
