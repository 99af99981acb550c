/* SPDX-License-Identifier: Apache-2.0 */
/* Notes: sentences that the user should read, in the recording's summary. */
#ifndef SF_AGENT_THREADS_NOTE_H
#define SF_AGENT_THREADS_NOTE_H

#include <stdbool.h>

/* Writes a note into the stream. False: no room, try again. Signal-safe. */
bool sf_note(const char *text);

#endif
