/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the child's answer in symbols/apart.c, and reads it in the parent. The answer is hostile input. */
#include "symbols/apart_answer.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum kind { TEXT = 1, PLACE, END };

struct message {
	uint32_t kind;
	uint32_t size;        /* of what follows */
};

/* The content of a PLACE: the number of the question is followed by these structs. Texts are given by number. */
struct location {
	uint32_t function, linkage, file, line, inlined;
};

#define MAX_LOCATIONS 512
#define MAX_MESSAGE ((size_t)80 << 10) /* a name has 32 KiB at most, and a path twice as much */

bool sf_answer_writer_init(struct sf_answer_writer *writer, int fd, const size_t *numbers)
{
	writer->fd = fd;
	writer->numbers = numbers;
	writer->n = 0;
	writer->texts = sf_intern_create();
	return writer->texts != NULL;
}

/* Writes the buffer to the parent. The parent reads until it needs no more, and then ends this process. */
static void flush(struct sf_answer_writer *writer)
{
	for (size_t done = 0; done < writer->n;) {
		ssize_t n = write(writer->fd, writer->buffer + done, writer->n - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(1);
		done += (size_t)n;
	}
	writer->n = 0;
}

static void put(struct sf_answer_writer *writer, const void *bytes, size_t size)
{
	const uint8_t *from = bytes;

	while (size) {
		size_t room = sizeof(writer->buffer) - writer->n, part = size < room ? size : room;

		memcpy(writer->buffer + writer->n, from, part);
		writer->n += part;
		from += part;
		size -= part;
		if (writer->n == sizeof(writer->buffer))
			flush(writer);
	}
}

/* Texts are interned where they come from: equal ones have one address. */
static uint32_t put_text(struct sf_answer_writer *writer, const char *text)
{
	uintptr_t address = (uintptr_t)text;
	bool is_new;
	uint32_t number = sf_intern_add(writer->texts, &address, sizeof(address), &is_new);
	struct message message = { TEXT, (uint32_t)strlen(text) };

	if (!number)
		_exit(1);
	if (is_new) {
		put(writer, &message, sizeof(message));
		put(writer, text, message.size);
	}
	return number;
}

void sf_answer_write(size_t index, const struct sf_location *locations, size_t n, void *arg)
{
	struct sf_answer_writer *writer = arg;
	uint32_t number = (uint32_t)writer->numbers[index];
	struct location answer[MAX_LOCATIONS];
	struct message message;

	n = n < MAX_LOCATIONS ? n : MAX_LOCATIONS;
	for (size_t i = 0; i < n; i++) {
		answer[i] = (struct location){
			.function = put_text(writer, locations[i].function),
			.linkage = put_text(writer, locations[i].linkage),
			.file = put_text(writer, locations[i].file),
			.line = locations[i].line,
			.inlined = locations[i].inlined,
		};
	}
	message = (struct message){ PLACE, (uint32_t)(sizeof(number) + n * sizeof(answer[0])) };
	put(writer, &message, sizeof(message));
	put(writer, &number, sizeof(number));
	put(writer, answer, n * sizeof(answer[0]));
}

void sf_answer_write_end(struct sf_answer_writer *writer)
{
	put(writer, &(struct message){ END, 0 }, sizeof(struct message));
	flush(writer);
}

static bool take_text(struct sf_answer_reader *reader, const uint8_t *bytes, size_t size)
{
	char *text = size < reader->text_left ? strndup((const char *)bytes, size) : NULL;

	if (!text || !sf_vec_push(&reader->texts, text)) {
		free(text);
		return false;
	}
	reader->text_left -= size + 1;
	return true;
}

static const char *text_of(const struct sf_answer_reader *reader, uint32_t number)
{
	return number && number <= reader->texts.n ? reader->texts.items[number - 1] : NULL;
}

static bool take_location(const struct sf_answer_reader *reader, const struct location *from,
			  struct sf_location *ret)
{
	*ret = (struct sf_location){
		.function = text_of(reader, from->function),
		.linkage = text_of(reader, from->linkage),
		.file = text_of(reader, from->file),
		.line = from->line,
		.inlined = from->inlined,
	};
	return ret->function && *ret->function && ret->linkage && ret->file;
}

static bool take_place(struct sf_answer_reader *reader, const uint8_t *bytes, size_t size)
{
	struct sf_location locations[MAX_LOCATIONS];
	struct location from;
	size_t n = (size - sizeof(uint32_t)) / sizeof(from);
	uint32_t number;

	if (size < sizeof(number) + sizeof(from) || (size - sizeof(number)) % sizeof(from) ||
	    n > MAX_LOCATIONS)
		return false;
	memcpy(&number, bytes, sizeof(number));
	if (number >= reader->n_questions || reader->answered[number])
		return false;
	for (size_t i = 0; i < n; i++) {
		memcpy(&from, bytes + sizeof(number) + i * sizeof(from), sizeof(from));
		if (!take_location(reader, &from, &locations[i]))
			return false;
	}
	reader->answered[number] = true;
	reader->fn(number, locations, n, reader->arg);
	return true;
}

static bool take_message(struct sf_answer_reader *reader, const struct message *message,
			 const uint8_t *bytes)
{
	switch (message->kind) {
	case TEXT:
		return take_text(reader, bytes, message->size);
	case PLACE:
		return take_place(reader, bytes, message->size);
	case END:
		reader->complete = true;
		return true;
	}
	return false;
}

bool sf_answer_read(struct sf_answer_reader *reader, const void *bytes, size_t size)
{
	struct message message;
	size_t at = 0;

	if (!sf_vec_reserve(&reader->bytes, size))
		return false;
	memcpy(reader->bytes.items + reader->bytes.n, bytes, size);
	reader->bytes.n += size;
	while (reader->bytes.n - at >= sizeof(message)) {
		memcpy(&message, reader->bytes.items + at, sizeof(message));
		if (message.size > MAX_MESSAGE)
			return false;
		if (reader->bytes.n - at - sizeof(message) < message.size)
			break;
		at += sizeof(message);
		if (!take_message(reader, &message, reader->bytes.items + at))
			return false;
		at += message.size;
	}
	memmove(reader->bytes.items, reader->bytes.items + at, reader->bytes.n - at);
	reader->bytes.n -= at;
	return true;
}

void sf_answer_reader_deinit(struct sf_answer_reader *reader)
{
	for (size_t i = 0; i < reader->texts.n; i++)
		free(reader->texts.items[i]);
	sf_vec_deinit(&reader->texts);
	sf_vec_deinit(&reader->bytes);
}
