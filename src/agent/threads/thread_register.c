/* SPDX-License-Identifier: Apache-2.0 */
/* Calls by which a thread registers, names and labels itself: part of thread_entries.h. Not signal-safe. */
#include <string.h>

#include "agent/threads/labels.h"
#include "agent/threads/thread_entries.h"

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

bool sf_agent_thread_label(const char *key, const char *value, struct sf_error *err)
{
	struct sf_thread_entry *entry = key && value ? sf_agent_own_entry(err) : sf_agent_find_own_entry();

	if (key && value)
		return entry && sf_agent_label_set(entry, key, value, err);
	if (entry)
		atomic_store(&entry->label, 0);
	return key || sf_fail(err, SF_E_INPUT, "a label needs a key");
}
