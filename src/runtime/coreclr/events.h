/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of .NET's runtime that `record --event` samples: one table. Each is an event of EventPipe, which the
 * runtime reports on the thread on which it happens (CoreCLR: vm/ClrEtwAll.man has the keywords, levels, numbers and
 * payloads of all). The same names and fields are in .NET 8, 9 and 10.
 */
#ifndef SF_RUNTIME_CORECLR_EVENTS_H
#define SF_RUNTIME_CORECLR_EVENTS_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/runtime.h"

#define SF_CLR_PROVIDER "Microsoft-Windows-DotNETRuntime"
#define SF_CLR_MAX_LABEL 1024

/* The form of the field that becomes the label. */
enum sf_clr_label_form {
	SF_CLR_LABEL_NONE,
	SF_CLR_LABEL_TEXT,     /* UTF-16, with a zero behind */
	SF_CLR_LABEL_TEXTS,    /* two of these: of a type, and of a method */
	SF_CLR_LABEL_WORD,     /* 32 bits: its word in `words` */
};

struct sf_clr_event_kind {
	struct sf_runtime_event shown;
	uint64_t keywords;
	uint32_t level;
	uint32_t id;
	uint16_t amount_at;    /* in the payload, 64 bits; 0: the amount is 1 */
	uint16_t label_at;
	enum sf_clr_label_form form;
	const char *key;       /* of the label */
	uint16_t size_behind;  /* of a label that is a text: the bytes between it and the size of the object, 64 bits; 0: there is none */
	const char *const *words; /* NULL at the end */
};

/* The i-th event; NULL behind the last. */
const struct sf_clr_event_kind *sf_clr_event_kind(size_t i);
const struct sf_runtime_event *sf_clr_event_shown(size_t i);

/* The amount of an event with this payload, which is hostile: 0: the payload is too short for one. Signal-safe. */
uint64_t sf_clr_event_amount(const struct sf_clr_event_kind *kind, const uint8_t *payload, size_t size);

/* The value of the label, UTF-8 with a zero behind; "" where the payload has none. No lock, no allocation. */
void sf_clr_event_label(const struct sf_clr_event_kind *kind, const uint8_t *payload, size_t size,
			char ret[SF_CLR_MAX_LABEL]);

/* The size of the event's object, 0: the payload has none. Signal-safe. */
uint64_t sf_clr_event_size(const struct sf_clr_event_kind *kind, const uint8_t *payload, size_t size);

#endif
