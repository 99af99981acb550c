/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls by which a thread registers, names and labels itself; the table of labels, and the records that write them to the outbox.
 * Threads of the program call this for themselves. The sampler must not, because it would wait for the table's lock.
 */
#include "agent/threads/thread_register.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "agent/libc/fork_lock.h"
#include "agent/threads/note.h"
#include "agent/threads/thread_entries.h"
#include "base/intern.h"
#include "frozen/signal/handler.h"
#include "stream/record.h"

bool sf_agent_thread_register(struct sf_error *err)
{
	struct sf_thread_entry *entry = sf_agent_own_entry(err);

	if (!entry)
		return false;
	if (!(atomic_fetch_or(&entry->flags, SF_ENTRY_REGISTERED) & SF_ENTRY_REGISTERED))
		sf_agent_threads_hurry();
	return true;
}

void sf_agent_thread_unregister(void)
{
	struct sf_thread_entry *entry = sf_agent_find_own_entry();

	if (entry &&
	    atomic_fetch_and(&entry->flags, ~(uint32_t)SF_ENTRY_REGISTERED) & SF_ENTRY_REGISTERED)
		sf_agent_threads_hurry();
}

bool sf_agent_thread_rename(const char *name, struct sf_error *err)
{
	struct sf_thread_entry *entry;
	size_t size = name ? strnlen(name, SF_AGENT_NAME) : 0;
	char kept[SF_AGENT_NAME] = "";

	if (!size || size == SF_AGENT_NAME)
		return sf_fail(err, SF_E_INPUT, "a thread's name has 1 to %d bytes",
			       SF_AGENT_NAME - 1);
	entry = sf_agent_own_entry(err);
	if (!entry)
		return false;
	memcpy(kept, name, size);
	sf_agent_entry_set_name(entry, kept);
	atomic_fetch_or(&entry->flags, SF_ENTRY_NAMED | SF_ENTRY_RENAMED);
	sf_agent_threads_hurry();
	return true;
}

/* --- labels --- */

#define MAX_LABELS 65535
#define MAX_LABEL_TEXT 255

static pthread_mutex_t *const mutex = &sf_fork_mutexes[SF_FORK_LABELS];
static struct sf_intern *labels;   /* "key\0value" */
static uint64_t written[MAX_LABELS / 64 + 1]; /* bits, by number: the stream has it */
static bool noted_too_many;

/* Only a label with a record may be in a sample. False: no room in the outbox. */
static bool write_label(uint32_t number)
{
	size_t size, key_size;
	const char *text = sf_intern_get(labels, number, &size);
	struct sf_stream_label record = { .number = number };
	struct sf_outbox_piece pieces[3];

	if (written[number / 64] >> number % 64 & 1)
		return true;
	key_size = strlen(text);
	record.key_size = (uint16_t)key_size;
	record.value_size = (uint16_t)(size - key_size - 1);
	pieces[0] = (struct sf_outbox_piece){
		(const char *)&record + sizeof(record.header),
		offsetof(struct sf_stream_label, text) - sizeof(record.header) };
	pieces[1] = (struct sf_outbox_piece){ text, key_size };
	pieces[2] = (struct sf_outbox_piece){ text + key_size + 1, record.value_size };
	if (!sf_output_put(&sf_handler.output, SF_STREAM_LABEL, pieces, 3))
		return false;
	written[number / 64] |= UINT64_C(1) << number % 64;
	return true;
}

static void write_of_entry(struct sf_thread_entry *entry, int32_t tid)
{
	const uint32_t number = atomic_load(&entry->label);

	(void)tid;
	if (number && !write_label(number))
		atomic_store(&entry->label, 0);
}

void sf_agent_labels_begin(void)
{
	sigset_t before;

	sf_lock_from_handlers(mutex, &before);
	memset(written, 0, sizeof(written));
	noted_too_many = false;
	sf_agent_each_entry(write_of_entry);
	sf_unlock_to_handlers(mutex, &before);
}

/* Once in each stream. */
static void note_too_many(void)
{
	static const char text[] = "more than 65,535 different labels were set: samples under later ones carry none";

	if (!noted_too_many)
		noted_too_many = sf_note(text);
}

static uint32_t refuse(int os_errno, struct sf_error *err, const char *text)
{
	sf_fail(err, SF_E_SYSTEM, "%s", text);
	if (err)
		err->os_errno = os_errno;
	return 0;
}

/* 0: no memory, or no room for it. */
static uint32_t number_label(const char *text, size_t size, struct sf_error *err)
{
	uint32_t number;

	if (!labels)
		labels = sf_intern_create();
	number = labels ? sf_intern_find(labels, text, size) : 0;
	if (labels && !number && sf_intern_count(labels) >= MAX_LABELS) {
		note_too_many();
		return refuse(ENOSPC, err, "there are 65535 different labels, and there can be no more");
	}
	if (labels && !number)
		number = sf_intern_add(labels, text, size, NULL);
	if (!number) {
		sf_fail_memory(err);
		return 0;
	}
	return write_label(number) ? number
				  : refuse(EAGAIN, err, "so many labels were set that the buffer for them is full at the moment");
}

/* Samples of this entry's thread carry it from now on. False: too long, or too many of them; then they carry none. */
static bool set_label(struct sf_thread_entry *entry, const char *key, const char *value, struct sf_error *err)
{
	char text[2 * MAX_LABEL_TEXT + 2];
	size_t key_size = strnlen(key, MAX_LABEL_TEXT + 1);
	size_t value_size = strnlen(value, MAX_LABEL_TEXT + 1);
	sigset_t before;
	uint32_t number;

	atomic_store(&entry->label, 0); /* what comes now is not the last label's, also where this one is refused */
	if (!key_size || key_size > MAX_LABEL_TEXT || value_size > MAX_LABEL_TEXT)
		return sf_fail(err, SF_E_INPUT,
			       "a label's key has 1 to %d bytes, its value up to %d", MAX_LABEL_TEXT, MAX_LABEL_TEXT);
	memcpy(text, key, key_size);
	text[key_size] = 0;
	memcpy(text + key_size + 1, value, value_size);
	sf_lock_from_handlers(mutex, &before); /* one that forks would wait for itself */
	number = number_label(text, key_size + 1 + value_size, err);
	atomic_store(&entry->label, number);
	sf_unlock_to_handlers(mutex, &before);
	return number != 0;
}

bool sf_agent_thread_label(const char *key, const char *value, struct sf_error *err)
{
	struct sf_thread_entry *entry = key && value ? sf_agent_own_entry(err) : sf_agent_find_own_entry();

	if (key && value)
		return entry && set_label(entry, key, value, err);
	if (entry)
		atomic_store(&entry->label, 0);
	return key || sf_fail(err, SF_E_INPUT, "a label needs a key");
}
