/* SPDX-License-Identifier: Apache-2.0 */
/* Finds an event of a runtime by its name. */
#include "runtime/events.h"

#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "os/process.h"
#include "runtime/runtimes.h"

#define MAX_EACH UINT64_C(1000000000000)

static bool is_named(const struct sf_runtime_event *event, const char *text, size_t size)
{
	return strlen(event->name) == size && strncmp(event->name, text, size) == 0;
}

static bool find(const char *text, struct sf_runtime_event_choice *ret)
{
	const size_t size = strcspn(text, "/=");

	for (uint32_t slot = 0; slot < SF_N_RUNTIMES; slot++) {
		const struct sf_runtime_driver *driver = sf_runtimes_driver(slot);
		const struct sf_runtime_event *event;

		for (size_t i = 0; driver->event && (event = driver->event(i)); i++) {
			if (is_named(event, text, size)) {
				*ret = (struct sf_runtime_event_choice){ .event = event, .slot = slot, .place = i };
				return true;
			}
		}
	}
	return false;
}

bool sf_runtime_has_event(const char *text)
{
	struct sf_runtime_event_choice found;

	return find(text, &found);
}

bool sf_runtime_event_is_in(const char *text, int32_t pid, struct sf_error *err)
{
	struct sf_runtime_event_choice found;
	const struct sf_runtime_driver *driver;
	char name[64];

	if (!find(text, &found))
		return sf_fail(err, SF_E_INPUT, "--event: no runtime has an event \"%.60s\"", text);
	driver = sf_runtimes_driver(found.slot);
	if (!driver->is_in || driver->is_in(pid))
		return true;
	sf_process_name(pid, name, sizeof(name));
	sf_fail(err, SF_E_UNSUPPORTED, "pid %d (%s) has no event %s: it has not loaded %s", pid, name, found.event->name, driver->inside_text);
	return sf_fail_hint(err, "The events of every process are those that the kernel counts, such as page-faults.");
}

static bool parse_each(const char *text, const char *unit, uint64_t *ret, struct sf_error *err)
{
	if (sf_parse_count(text, MAX_EACH, ret) && *ret)
		return true;
	return sf_fail(err, SF_E_INPUT, "--event: \"%.40s\" is no number of %s: behind the / stands how many there are for one sample, as in exception/10 or allocation/1000000",
		       text, unit);
}

bool sf_runtime_event_parse(const char *text, struct sf_runtime_event_choice *ret, struct sf_error *err)
{
	const size_t size = strcspn(text, "/=");

	if (!find(text, ret)) {
		sf_fail(err, SF_E_INPUT, "--event: no runtime has an event \"%.60s\"", text);
		return sf_fail_hint(err, "There are: " SF_RUNTIME_EVENT_NAMES ".");
	}
	return !text[size] || parse_each(text + size + 1, ret->event->unit, &ret->each, err);
}
