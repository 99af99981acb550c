/* SPDX-License-Identifier: Apache-2.0 */
/* Why no profiler came up in a profile that needs one: a runtime that does not load a profiler prints nothing. */
#ifndef SF_AGENT_CLR_ABSENCE_H
#define SF_AGENT_CLR_ABSENCE_H

/* Writes what follows from it, and the reason, as a note for the user into the stream. */
void sf_clr_note_absence(const char *consequence);

#endif
