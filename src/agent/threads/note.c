/* SPDX-License-Identifier: Apache-2.0 */
/* Writes notes into the stream. */
#include "agent/threads/note.h"

#include <string.h>

#include "frozen/signal/handler.h"
#include "stream/record.h"

bool sf_note(const char *text)
{
	const struct sf_stream_note note = { .size = (uint32_t)strlen(text) };

	return sf_output_put_record(&sf_handler.output, SF_STREAM_NOTE, &note, sizeof(note), text, note.size);
}
