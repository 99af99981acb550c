/* SPDX-License-Identifier: Apache-2.0 */
/* The words and sentences of the lists in ends.h, still.h and trace.h, as arrays. */

#include "frozen/ends.h"
#include "frozen/still.h"
#include "frozen/trace.h"

#include "frozen/frozen.h"

struct entry {
	const char *word, *text;
};

#define X(name, word, text) { word, text },
static const struct entry ends[] = { SF_ENDS(X) };
static const struct entry losses[] = { SF_LOSSES(X) };
static const struct entry states[] = { SF_STATES(X) };
static const struct entry vias[] = { SF_VIAS(X) };
static const struct entry kinds[] = { SF_KINDS(X) };
#undef X

static const struct entry unknown = { "unknown", "unknown" };

#define LOOK_UP(list, number) ((number) < sizeof(list) / sizeof((list)[0]) ? &(list)[number] : &unknown)

const char *sf_end_word(unsigned end)
{
	return LOOK_UP(ends, end)->word;
}

const char *sf_end_text(unsigned end)
{
	return LOOK_UP(ends, end)->text;
}

const char *sf_loss_word(unsigned loss)
{
	return LOOK_UP(losses, loss)->word;
}

const char *sf_loss_text(unsigned loss)
{
	return LOOK_UP(losses, loss)->text;
}

const char *sf_state_word(unsigned state)
{
	return LOOK_UP(states, state)->word;
}

const char *sf_via_word(unsigned via)
{
	return LOOK_UP(vias, via)->word;
}

const char *sf_kind_word(unsigned kind)
{
	return LOOK_UP(kinds, kind)->word;
}
