/* SPDX-License-Identifier: Apache-2.0 */
/* The table of .NET's events, and what is read from their payloads. */
#include "runtime/coreclr/events.h"

#include <string.h>

#include "frozen/coreclr/words.h"
#include "runtime/coreclr/utf16.h"

/* EventPipe: an event is reported to sessions whose level is at least that of the event. */
enum { ERROR = 2, INFORMATIONAL = 4, VERBOSE = 5 };

#define MAX_AMOUNT (UINT64_C(1) << 48)

/* CoreCLR: GCReasonMap in vm/ClrEtwAll.man. */
static const char *const reasons[] = {
	"small objects", "induced", "low memory", "empty", "large objects", "out of space for small objects",
	"out of space for large objects", "induced, but not forced", "stress", "induced by low memory", NULL,
};

#define EVENT(word, unit_of, keywords_of, level_of, number)                                         \
	.shown = { .name = SF_CORECLR_EVENT_##word, .unit = unit_of }, .keywords = keywords_of, .level = level_of, .id = number

/* To add one: a line here, and its name in frozen/coreclr/words.h and docs/dotnet.md. */
static const struct sf_clr_event_kind kinds[] = {
	/* AllocationTick: once in some 100 KB that a heap has given out, on the thread that allocates. */
	{ EVENT(ALLOCATION, "bytes", 0x1, VERBOSE, 10), .amount_at = 10, .key = "type", .label_at = 26, .form = SF_CLR_LABEL_TEXT,
	  .size_behind = 12 },
	/*
	 * ExceptionThrown. .NET 9 and later dispatch exceptions in managed code (System.Private.CoreLib,
	 * ExceptionHandling.cs).
	 */
	{ EVENT(EXCEPTION, "events", 0x8000, ERROR, 80), .shown.left_out = "System.Runtime.EH.", .key = "type", .label_at = 0,
	  .form = SF_CLR_LABEL_TEXT },
	/* ContentionStart: a monitor is entered that another thread has. */
	{ EVENT(CONTENTION, "events", 0x4000, INFORMATIONAL, 81) },
	/* GCTriggered: on the thread because of which a collection begins. */
	{ EVENT(GC, "events", 0x1, INFORMATIONAL, 35), .key = "reason", .label_at = 0, .form = SF_CLR_LABEL_WORD, .words = reasons },
	/* MethodJittingStarted. */
	{ EVENT(JIT, "events", 0x10, VERBOSE, 145), .key = "method", .label_at = 24, .form = SF_CLR_LABEL_TEXTS },
	/* TypeLoadStop: a type has reached one of the levels of being loaded. */
	{ EVENT(CLASS_LOAD, "events", 0x8000000000, INFORMATIONAL, 74), .key = "type", .label_at = 16, .form = SF_CLR_LABEL_TEXT },
};
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

const struct sf_clr_event_kind *sf_clr_event_kind(size_t i)
{
	return i < N_KINDS ? &kinds[i] : NULL;
}

const struct sf_runtime_event *sf_clr_event_shown(size_t i)
{
	return i < N_KINDS ? &kinds[i].shown : NULL;
}

uint64_t sf_clr_event_amount(const struct sf_clr_event_kind *kind, const uint8_t *payload, size_t size)
{
	uint64_t amount;

	if (!kind->amount_at)
		return 1;
	if (size < kind->amount_at + sizeof(amount))
		return 0;
	memcpy(&amount, payload + kind->amount_at, sizeof(amount));
	return amount < MAX_AMOUNT ? amount : 0;
}

/* --- the label --- */

/* The place behind a text and its zero, or the payload's end. */
static size_t skip_text(const uint8_t *bytes, size_t size, size_t at)
{
	while (at + 1 < size && (bytes[at] || bytes[at + 1]))
		at += 2;
	return at + 2;
}

uint64_t sf_clr_event_size(const struct sf_clr_event_kind *kind, const uint8_t *payload, size_t size)
{
	const struct sf_reader reader = { .window = payload, .window_size = size };
	uint64_t found;

	if (!kind->size_behind || !sf_read_u64(&reader, skip_text(payload, size, kind->label_at) + kind->size_behind, &found))
		return 0;
	return found < MAX_AMOUNT ? found : 0;
}

static void read_word(const struct sf_clr_event_kind *kind, const struct sf_reader *reader, char ret[SF_CLR_MAX_LABEL])
{
	uint32_t number, i = 0;

	if (!sf_read(reader, &number, kind->label_at, sizeof(number)))
		return;
	while (kind->words[i] && i < number)
		i++;
	if (kind->words[i])
		strcpy(ret, kind->words[i]);
}

static void read_text(const struct sf_reader *reader, size_t at, char ret[SF_CLR_MAX_LABEL])
{
	const size_t used = strlen(ret);

	sf_clr_read_utf16(reader, at, SF_CLR_MAX_LABEL, ret + used, SF_CLR_MAX_LABEL - used);
}

void sf_clr_event_label(const struct sf_clr_event_kind *kind, const uint8_t *bytes, size_t size, char ret[SF_CLR_MAX_LABEL])
{
	const struct sf_reader reader = { .window = bytes, .window_size = size };

	ret[0] = 0;
	switch (kind->form) {
	case SF_CLR_LABEL_NONE:
		break;
	case SF_CLR_LABEL_WORD:
		read_word(kind, &reader, ret);
		break;
	case SF_CLR_LABEL_TEXTS:
		read_text(&reader, kind->label_at, ret);
		if (strlen(ret) + 2 < SF_CLR_MAX_LABEL)
			strcat(ret, ".");
		read_text(&reader, skip_text(bytes, size, kind->label_at), ret);
		break;
	case SF_CLR_LABEL_TEXT:
		read_text(&reader, kind->label_at, ret);
		break;
	}
}
