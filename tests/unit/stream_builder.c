/* SPDX-License-Identifier: Apache-2.0 */
#include "stream_builder.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frozen/ends.h"
#include "frozen/still.h"
#include "frozen/trace.h"

static void check(int ok)
{
	if (!ok)
		abort();
}

static void append(struct stream_builder *b, const void *bytes, size_t size)
{
	check(size <= STREAM_ROOM - b->size);
	if (size)
		memcpy(b->bytes + b->size, bytes, size);
	b->size += size;
}

void stream_start(struct stream_builder *b)
{
	struct sf_stream_file_header header = { .magic = SF_STREAM_FILE_MAGIC,
						.version = SF_STREAM_VERSION };

	b->size = b->last = 0;
	append(b, &header, sizeof(header));
}

void stream_add(struct stream_builder *b, enum sf_stream_type type, const void *record, size_t size,
		const void *more, size_t more_size, const void *most, size_t most_size)
{
	static const uint8_t zeros[8];
	const size_t whole = size + more_size + most_size;
	struct sf_record_header *header;

	b->last = b->size;
	append(b, record, size);
	append(b, more, more_size);
	append(b, most, most_size);
	append(b, zeros, (8 - whole % 8) % 8);
	header = stream_last(b);
	*header = (struct sf_record_header){ .size = (uint32_t)(b->size - b->last),
					     .type = (uint16_t)type };
}

struct sf_record_header *stream_last(struct stream_builder *b)
{
	return (struct sf_record_header *)(b->bytes + b->last);
}

static uint64_t at(uint64_t ms)
{
	return STREAM_START_NS + ms * STREAM_MS;
}

void stream_process(struct stream_builder *b, int32_t pid, const char *name, const char *command)
{
	const struct sf_stream_process record = {
		.pid = pid,
		.parent = 1,
		.time_ns = at(0),
		.unix_ns = 1700000000000000000,
		.rate_mhz = 199000,
		.blocked_rate_mhz = 20000,
		.elf_machine = 62,
		.walk = 1,
		.name_size = (uint16_t)strlen(name),
		.command_size = (uint16_t)strlen(command),
	};

	stream_add(b, SF_STREAM_PROCESS, &record, sizeof(record), name, strlen(name), command,
		   strlen(command));
}

void stream_thread(struct stream_builder *b, uint32_t serial, int32_t tid, const char *name)
{
	const struct sf_stream_thread record = {
		.serial = serial, .tid = tid, .time_ns = at(0),
		.name_size = (uint32_t)strlen(name),
	};

	stream_add(b, SF_STREAM_THREAD, &record, sizeof(record), name, strlen(name), NULL, 0);
}

void stream_thread_end(struct stream_builder *b, uint32_t serial, uint64_t at_ms, uint64_t cpu_ms)
{
	const struct sf_stream_thread_end record = {
		.serial = serial, .time_ns = at(at_ms), .cpu_ns = cpu_ms * STREAM_MS,
	};

	stream_add(b, SF_STREAM_THREAD_END, &record, sizeof(record), NULL, 0, NULL, 0);
}

void stream_image(struct stream_builder *b, uint32_t number, const char *path, const void *build_id,
		  size_t build_id_size)
{
	struct sf_stream_image record = {
		.number = number,
		.build_id_size = (uint32_t)build_id_size,
		.inode = 1234,
		.path_size = (uint16_t)strlen(path),
	};

	if (build_id_size)
		memcpy(record.build_id, build_id, build_id_size);
	stream_add(b, SF_STREAM_IMAGE, &record, sizeof(record), path, strlen(path), NULL, 0);
}

static void make_frames(struct sf_stream_frame *ret, const uint64_t (*frames)[2], uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		ret[i] = (struct sf_stream_frame){
			.address = frames[i][0],
			.image = frames[i][1] == STREAM_MANAGED ? 0 : (uint32_t)frames[i][1],
			.kind = frames[i][1] == STREAM_MANAGED ? SF_KIND_C2 : SF_KIND_NATIVE,
			.via = i ? SF_VIA_ROWS : SF_VIA_LEAF,
			.flags = i ? 0 : SF_FRAME_EXACT,
		};
}

void stream_sample(struct stream_builder *b, uint32_t serial, uint64_t at_ms, uint64_t ms,
		   uint32_t label, const uint64_t (*frames)[2], uint32_t n)
{
	struct sf_stream_frame list[64];
	const struct sf_stream_sample record = {
		.serial = serial,
		.n_frames = n,
		.time_ns = at(at_ms),
		.cpu_ns = ms * STREAM_MS,
		.wall_ns = ms * STREAM_MS,
		.hold_ns = 5000,
		.ticks = 1,
		.label = label,
		.syscall = SF_SYSCALL_NONE,
		.state = SF_STATE_RUNNING,
		.end = SF_END_ROOT,
	};

	check(n <= 64);
	make_frames(list, frames, n);
	stream_add(b, SF_STREAM_SAMPLE, &record, sizeof(record), list, n * sizeof(*list), NULL, 0);
}

void stream_again(struct stream_builder *b, uint32_t serial, uint64_t at_ms, uint64_t ms)
{
	const struct sf_stream_again record = {
		.serial = serial, .ticks = 1, .time_ns = at(at_ms), .wall_ns = ms * STREAM_MS,
	};

	stream_add(b, SF_STREAM_AGAIN, &record, sizeof(record), NULL, 0, NULL, 0);
}

void stream_loss(struct stream_builder *b, uint32_t serial, uint32_t cause, uint32_t ticks)
{
	const struct sf_stream_loss record = { .serial = serial, .cause = cause, .ticks = ticks };

	stream_add(b, SF_STREAM_LOSS, &record, sizeof(record), NULL, 0, NULL, 0);
}

void stream_label(struct stream_builder *b, uint32_t number, const char *key, const char *value)
{
	const struct sf_stream_label record = {
		.number = number,
		.key_size = (uint16_t)strlen(key),
		.value_size = (uint16_t)strlen(value),
	};

	stream_add(b, SF_STREAM_LABEL, &record, sizeof(record), key, strlen(key), value,
		   strlen(value));
}

void stream_note(struct stream_builder *b, const char *text)
{
	const struct sf_stream_note record = { .size = (uint32_t)strlen(text) };

	stream_add(b, SF_STREAM_NOTE, &record, sizeof(record), text, strlen(text), NULL, 0);
}

void stream_end(struct stream_builder *b, uint64_t at_ms, uint64_t lost)
{
	const struct sf_stream_end record = { .time_ns = at(at_ms), .lost_records = lost };

	stream_add(b, SF_STREAM_END, &record, sizeof(record), NULL, 0, NULL, 0);
}

void stream_measure(struct stream_builder *b, const char *name, bool is_counted, uint64_t counted)
{
	const struct sf_stream_measure record = {
		.counted = counted,
		.name_size = (uint16_t)strlen(name),
		.unit_size = sizeof("events") - 1,
		.is_counted = is_counted,
	};

	stream_add(b, SF_STREAM_MEASURE, &record, offsetof(struct sf_stream_measure, text), name, strlen(name), "events", record.unit_size);
}

void stream_event(struct stream_builder *b, uint32_t serial, uint64_t amount, const char *key, const char *value,
		  const char *second, const uint64_t (*frames)[2], uint32_t n)
{
	struct sf_stream_frame list[64];
	const struct sf_stream_event record = {
		.serial = serial,
		.n_frames = n,
		.time_ns = at(1),
		.hold_ns = 5000,
		.amount = amount,
		.end = SF_END_ROOT,
		.key_size = (uint16_t)strlen(key),
		.value_size = (uint16_t)strlen(value),
		.second_key_size = *second ? 4 : 0,
		.second_value_size = (uint16_t)strlen(second),
	};
	char text[128];

	check(n <= 64 && strlen(key) + strlen(value) + strlen(second) + 4 < sizeof(text));
	make_frames(list, frames, n);
	snprintf(text, sizeof(text), "%s%s%s%s", key, value, *second ? "size" : "", second);
	stream_add(b, SF_STREAM_EVENT, &record, sizeof(record), list, n * sizeof(*list), text, strlen(text));
}

void stream_event_loss(struct stream_builder *b, uint32_t serial, uint32_t cause, uint64_t amount)
{
	const struct sf_stream_event_loss record = { .serial = serial, .cause = cause, .amount = amount };

	stream_add(b, SF_STREAM_EVENT_LOSS, &record, sizeof(record), NULL, 0, NULL, 0);
}

static struct sf_stream_function function(const char *name, uint32_t line, uint16_t flags)
{
	return (struct sf_stream_function){
		.line = line, .flags = flags, .name_size = (uint16_t)strlen(name),
		.linkage_size = (uint16_t)strlen(name), .file_size = sizeof("Demo.java") - 1,
	};
}

void stream_place(struct stream_builder *b, uint64_t key, const char *inlined, const char *name)
{
	const struct sf_stream_function functions[2] = {
		function(inlined, 7, SF_STREAM_INLINED), function(name, 20, 0),
	};
	char text[1000];
	int size = snprintf(text, sizeof(text), "%s%sDemo.java%s%sDemo.java", inlined, inlined,
			    name, name);
	const struct sf_stream_place record = {
		.key = key, .n_functions = 2, .text_size = (uint32_t)size,
	};

	check(size > 0 && (size_t)size < sizeof(text));
	stream_add(b, SF_STREAM_PLACE, &record, sizeof(record), functions, sizeof(functions), text,
		   (size_t)size);
}

void stream_write(const struct stream_builder *b, const char *path, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	check(fd >= 0 && write(fd, b->bytes, size) == (ssize_t)size);
	close(fd);
}
