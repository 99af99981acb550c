/* SPDX-License-Identifier: Apache-2.0 */
/* Allocates the memory of tails. */
#include "session/tail_room.h"

#include <stdlib.h>

#define MAX_FRAMES 1024u
#define MAX_BYTES 65536u
#define MAX_TOTAL ((uint64_t)16 << 20)

static uint64_t memory_of(const struct sf_tail *tail)
{
	return (uint64_t)tail->capacity * (sizeof(*tail->frames) + sizeof(*tail->regs)) + tail->size;
}

void sf_tail_room_free(struct sf_tail_room *room, struct sf_tail *tail)
{
	room->used -= memory_of(tail);
	free(tail->frames);
	free(tail->regs);
	free(tail->bytes);
	*tail = (struct sf_tail){ 0 };
}

/* Half as much again: stacks that grow do so by and by. */
static uint32_t larger(uint64_t wanted, uint32_t now, uint32_t most)
{
	const uint64_t size = wanted > now ? wanted + wanted / 2 : now;

	return size < most ? (uint32_t)size : most;
}

void sf_tail_room_fit(struct sf_tail_room *room, struct sf_tail *tail)
{
	struct sf_tail made = {
		.capacity = larger(tail->n_wanted, tail->capacity, MAX_FRAMES),
		.size = larger(tail->size_wanted, tail->size, MAX_BYTES),
	};

	if ((made.capacity == tail->capacity && made.size == tail->size) ||
	    room->used - memory_of(tail) + memory_of(&made) > MAX_TOTAL)
		return;
	made.frames = malloc(made.capacity * sizeof(*made.frames));
	made.regs = malloc(made.capacity * sizeof(*made.regs));
	made.bytes = malloc(made.size);
	room->used += memory_of(&made);
	if (!made.frames || !made.regs || !made.bytes) {
		sf_tail_room_free(room, &made);
		return;
	}
	sf_tail_room_free(room, tail);
	*tail = made;
}
