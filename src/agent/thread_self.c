/* SPDX-License-Identifier: Apache-2.0 */
/* Calls by which a thread registers, names and labels itself: part of threads.h. Not signal-safe. */
#include <string.h>

#include "agent/labels.h"
#include "agent/seats.h"
#include "agent/threads.h"

bool sf_agent_thread_register(struct sf_error *err)
{
	struct sf_seat *seat = sf_agent_own_seat(err);

	if (!seat)
		return false;
	if (!(atomic_fetch_or(&seat->flags, SF_SEAT_REGISTERED) & SF_SEAT_REGISTERED))
		sf_agent_threads_hurry();
	return true;
}

void sf_agent_thread_unregister(void)
{
	struct sf_seat *seat = sf_agent_find_own_seat();

	if (seat &&
	    atomic_fetch_and(&seat->flags, ~(uint32_t)SF_SEAT_REGISTERED) & SF_SEAT_REGISTERED)
		sf_agent_threads_hurry();
}

bool sf_agent_thread_rename(const char *name, struct sf_error *err)
{
	struct sf_seat *seat;
	size_t size = name ? strnlen(name, SF_AGENT_NAME) : 0;
	char kept[SF_AGENT_NAME] = "";

	if (!size || size == SF_AGENT_NAME)
		return sf_fail(err, SF_E_INPUT, "a thread's name has 1 to %d bytes",
			       SF_AGENT_NAME - 1);
	seat = sf_agent_own_seat(err);
	if (!seat)
		return false;
	memcpy(kept, name, size);
	sf_agent_seat_set_name(seat, kept);
	atomic_fetch_or(&seat->flags, SF_SEAT_NAMED | SF_SEAT_RENAMED);
	sf_agent_threads_hurry();
	return true;
}

bool sf_agent_thread_label(const char *key, const char *value, struct sf_error *err)
{
	struct sf_seat *seat;

	if (!key)
		return sf_fail(err, SF_E_INPUT, "a label needs a key");
	seat = value ? sf_agent_own_seat(err) : sf_agent_find_own_seat();
	if (value)
		return seat && sf_agent_label_set(seat, key, value, err);
	if (seat)
		atomic_store(&seat->label, 0);
	return true;
}
