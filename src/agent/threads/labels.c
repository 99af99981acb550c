/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of labels, and the records that write them to the outbox. Threads of the program call
 * this for themselves. The sampler must not, because it would wait for the table's lock.
 */
#include "agent/threads/labels.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "agent/libc/fork_lock.h"
#include "base/intern.h"
#include "frozen/signal/handler.h"
#include "stream/record.h"

#define MAX_LABELS 65535
#define MAX_LABEL_TEXT 255

static pthread_mutex_t *const mutex = &sf_fork_mutexes[SF_FORK_LABELS];
static struct sf_intern *labels;   /* "key\0value" */

static void tell_label(uint32_t number)
{
	size_t size, key_size;
	const char *text = sf_intern_get(labels, number, &size);
	struct sf_stream_label record = { .number = number };
	struct sf_outbox_piece pieces[3];

	key_size = strlen(text);
	record.key_size = (uint16_t)key_size;
	record.value_size = (uint16_t)(size - key_size - 1);
	pieces[0] = (struct sf_outbox_piece){
		(const char *)&record + sizeof(record.header),
		offsetof(struct sf_stream_label, text) - sizeof(record.header) };
	pieces[1] = (struct sf_outbox_piece){ text, key_size };
	pieces[2] = (struct sf_outbox_piece){ text + key_size + 1, record.value_size };
	sf_output_put(&sf_handler.output, SF_STREAM_LABEL, pieces, 3);
}

void sf_agent_labels_tell(void)
{
	sigset_t before;

	sf_lock_from_handlers(mutex, &before);
	for (uint32_t i = 1; labels && i <= sf_intern_count(labels); i++)
		tell_label(i);
	sf_unlock_to_handlers(mutex, &before);
}

/* 0: no memory, or too many. */
static uint32_t number_label(const char *text, size_t size, struct sf_error *err)
{
	uint32_t number = 0;
	bool is_new = false;

	if (!labels)
		labels = sf_intern_create();
	if (!labels) {
		sf_fail_memory(err);
		return 0;
	}
	/* The table keeps one label above the limit, which is never used. */
	if (sf_intern_count(labels) <= MAX_LABELS)
		number = sf_intern_add(labels, text, size, &is_new);
	if (!number || number > MAX_LABELS) {
		sf_fail(err, SF_E_SYSTEM, "there are more than %d different labels", MAX_LABELS);
		if (err)
			err->os_errno = ENOSPC;
		return 0;
	}
	if (is_new)
		tell_label(number);
	return number;
}

bool sf_agent_label_set(struct sf_thread_entry *entry, const char *key, const char *value,
			struct sf_error *err)
{
	char text[2 * MAX_LABEL_TEXT + 2];
	size_t key_size = strnlen(key, MAX_LABEL_TEXT + 1);
	size_t value_size = strnlen(value, MAX_LABEL_TEXT + 1);
	sigset_t before;
	uint32_t number;

	if (!key_size || key_size > MAX_LABEL_TEXT || value_size > MAX_LABEL_TEXT)
		return sf_fail(err, SF_E_INPUT,
			       "a label's key has 1 to %d bytes, its value up to %d", MAX_LABEL_TEXT, MAX_LABEL_TEXT);
	memcpy(text, key, key_size);
	text[key_size] = 0;
	memcpy(text + key_size + 1, value, value_size);
	sf_lock_from_handlers(mutex, &before); /* one that forks would wait for itself */
	number = number_label(text, key_size + 1 + value_size, err);
	sf_unlock_to_handlers(mutex, &before);
	if (number)
		atomic_store(&entry->label, number);
	return number != 0;
}
