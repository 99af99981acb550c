/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a stream file about itself, as an agent in it would, for the tests of what reads streams.
 *
 *     make_stream OUTPUT [SECONDS]      (2)
 *
 * Two threads: "busy" spends its time in spin(), three quarters of it with the label
 * trace=4bf92f35, the rest with trace=00000001; "idle" sleeps in a futex below wait_for(),
 * without a label. 100 ticks a second; one in a hundred is lost. Addresses are those of its own
 * functions, so that names are found.
 */
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "elf/facts.h"
#include "frozen/ends.h"
#include "frozen/signal/handler.h"
#include "frozen/still.h"
#include "frozen/trace.h"
#include "stream/file.h"

#include <fcntl.h>

#define START_NS 50000000000u
#define TICK_NS 10000000u

static struct sf_stream_file *file;

int main(int argc, char **argv);
void spin(void);
void wait_for(void);

/* Only their addresses matter. */
__attribute__((noinline)) void spin(void)
{
	__asm__ volatile("nop; nop; nop; nop" ::: "memory");
}

__attribute__((noinline)) void wait_for(void)
{
	__asm__ volatile("nop; nop; nop; nop" ::: "memory");
}

static void put(enum sf_stream_type type, const void *record, size_t size, const void *more,
		size_t more_size)
{
	static _Alignas(8) uint8_t bytes[SF_STREAM_MAX_RECORD];
	struct sf_record_header *header = (void *)bytes;
	struct sf_error err;

	memset(bytes, 0, size + more_size + 8);
	memcpy(bytes, record, size);
	memcpy(bytes + size, more, more_size);
	header->size = (uint32_t)((size + more_size + 7) & ~(size_t)7);
	header->type = (uint16_t)type;
	if (!sf_stream_file_put(file, header, &err)) {
		fprintf(stderr, "make_stream: %s\n", err.text);
		exit(1);
	}
}

static void put_process(void)
{
	static const char name[] = "make_stream", command[] = "make_stream --by hand";
	char text[64];
	const struct sf_stream_process record = {
		.pid = getpid(), .parent = getppid(), .time_ns = START_NS,
		.unix_ns = 1700000000000000000, .rate_mhz = 100000, .blocked_rate_mhz = 100000,
		.elf_machine = sf_arch_host()->elf_machine, .walk = SF_MODE_SAMPLER,
		.name_size = sizeof(name) - 1, .command_size = sizeof(command) - 1,
	};
	int size = snprintf(text, sizeof(text), "%s%s", name, command);

	put(SF_STREAM_PROCESS, &record, sizeof(record), text, (size_t)size);
}

static void put_thread(uint32_t serial, const char *name)
{
	const struct sf_stream_thread record = {
		.serial = serial, .tid = getpid() + (int32_t)serial - 1, .time_ns = START_NS,
		.name_size = (uint32_t)strlen(name),
	};

	put(SF_STREAM_THREAD, &record, sizeof(record), name, strlen(name));
}

static void put_image(void)
{
	struct sf_stream_image record = { .number = 1 };
	char path[256];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat status;
	size_t size;

	if (length <= 0 || fd < 0 || fstat(fd, &status) != 0)
		exit(1);
	sf_elf_build_id(fd, record.build_id, &size);
	close(fd);
	record.build_id_size = (uint32_t)size;
	record.inode = status.st_ino;
	record.device = status.st_dev;
	record.path_size = (uint16_t)length;
	put(SF_STREAM_IMAGE, &record, sizeof(record), path, (size_t)length);
}

static void put_label(uint32_t number, const char *value)
{
	const struct sf_stream_label record = {
		.number = number, .key_size = 5, .value_size = (uint16_t)strlen(value),
	};
	char text[64];
	int size = snprintf(text, sizeof(text), "trace%s", value);

	put(SF_STREAM_LABEL, &record, sizeof(record), text, (size_t)size);
}

/* Where the program is loaded: what its own addresses must be reduced by. */
static uint64_t bias(void)
{
	return _r_debug.r_map ? _r_debug.r_map->l_addr : 0;
}

static struct sf_stream_frame frame(uintptr_t function, uint8_t via)
{
	return (struct sf_stream_frame){
		.address = function - bias() + 2, .image = 1, .via = via,
		.flags = via == SF_VIA_LEAF ? SF_FRAME_EXACT : 0,
	};
}

static void put_sample(uint32_t serial, uint64_t tick, uint32_t label)
{
	const struct sf_stream_frame frames[2] = {
		frame(serial == 1 ? (uintptr_t)spin : (uintptr_t)wait_for, SF_VIA_LEAF),
		frame((uintptr_t)main, SF_VIA_ROWS),
	};
	const struct sf_stream_sample record = {
		.serial = serial, .n_frames = 2, .time_ns = START_NS + tick * TICK_NS,
		.cpu_ns = serial == 1 ? TICK_NS : 0, .wall_ns = TICK_NS,
		.hold_ns = serial == 1 ? 3000 : 0, .ticks = 1, .label = label,
		.syscall = serial == 1 ? SF_SYSCALL_NONE : SYS_futex,
		.state = serial == 1 ? SF_STATE_RUNNING : SF_STATE_BLOCKED, .end = SF_END_ROOT,
		.still_flags = serial == 1 ? 0 : SF_STILL_UNHELD,
	};

	put(SF_STREAM_SAMPLE, &record, sizeof(record), frames, sizeof(frames));
}

static void put_again(uint32_t serial, uint64_t tick)
{
	const struct sf_stream_again record = {
		.serial = serial, .ticks = 1, .time_ns = START_NS + tick * TICK_NS,
		.wall_ns = TICK_NS,
	};

	put(SF_STREAM_AGAIN, &record, sizeof(record), "", 0);
}

static void put_ticks(uint64_t n)
{
	const struct sf_stream_loss loss = {
		.serial = 1, .cause = SF_LOSS_LATE, .cpu_ns = TICK_NS, .wall_ns = TICK_NS,
		.ticks = 1,
	};

	for (uint64_t tick = 1; tick <= n; tick++) {
		if (tick % 100 == 50)
			put(SF_STREAM_LOSS, &loss, sizeof(loss), "", 0);
		else
			put_sample(1, tick, tick % 4 == 0 ? 2 : 1);
		if (tick == 1)
			put_sample(2, tick, 0);
		else
			put_again(2, tick);
	}
}

static void put_ends(uint64_t n)
{
	static const char text[] = "threads that block every signal are not seen";
	const struct sf_stream_note note = { .size = sizeof(text) - 1 };
	struct sf_stream_thread_end end = {
		.serial = 1, .time_ns = START_NS + n * TICK_NS, .cpu_ns = n * TICK_NS,
	};
	const struct sf_stream_end last = { .time_ns = START_NS + n * TICK_NS };

	put(SF_STREAM_NOTE, &note, sizeof(note), text, sizeof(text) - 1);
	put(SF_STREAM_THREAD_END, &end, sizeof(end), "", 0);
	end.serial = 2;
	end.cpu_ns = 0;
	put(SF_STREAM_THREAD_END, &end, sizeof(end), "", 0);
	put(SF_STREAM_END, &last, sizeof(last), "", 0);
}

int main(int argc, char **argv)
{
	uint64_t n = 100 * (argc > 2 ? strtoull(argv[2], NULL, 10) : 2);
	struct sf_error err;

	if (argc < 2) {
		fprintf(stderr, "usage: make_stream OUTPUT [SECONDS]\n");
		return 2;
	}
	if (!sf_stream_file_create(argv[1], &file, &err)) {
		fprintf(stderr, "make_stream: %s\n", err.text);
		return 1;
	}
	put_process();
	put_thread(1, "busy");
	put_thread(2, "idle");
	put_image();
	put_label(1, "4bf92f35");
	put_label(2, "00000001");
	put_ticks(n);
	put_ends(n);
	if (!sf_stream_file_flush(file, &err)) {
		fprintf(stderr, "make_stream: %s\n", err.text);
		return 1;
	}
	sf_stream_file_close(file);
	return 0;
}
