/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An open-addressing hash table of numbers over an array of entries; the bytes live in chunks
 * that never move, so a pointer from sf_intern_get stays good.
 */
#include "base/intern.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/vec.h"

#define CHUNK_SIZE ((size_t)64 << 10)

struct entry {
	const void *bytes;
	size_t size;
	uint64_t hash;
};

struct chunk {
	struct chunk *next;
	size_t used, size;
	_Alignas(8) unsigned char bytes[];
};

/* The tag avoids a read of the entry, which is elsewhere in memory: the entry is compared only if the tag is equal. */
struct slot {
	uint32_t number;    /* of an entry, 0: empty */
	uint32_t tag;       /* the upper half of its hash */
};

struct sf_intern {
	SF_VEC(struct entry) entries;
	struct slot *slots;
	size_t n_slots;     /* a power of two */
	struct chunk *chunks;
	uint64_t key[2];    /* of the hash */
};

/*
 * Fills in two words that nobody outside of this process can foretell: the kernel gives each program 16 such
 * bytes (getauxval(3)). With a hash that is known, keys can be chosen that all fall into one place.
 */
static void take_key(uint64_t key[2])
{
	const void *random = (const void *)getauxval(AT_RANDOM);

	if (random)
		memcpy(key, random, 2 * sizeof(*key));
	key[1] |= 1;
}

struct sf_intern *sf_intern_create(void)
{
	struct sf_intern *intern = calloc(1, sizeof(*intern));

	if (!intern)
		return NULL;
	take_key(intern->key);
	intern->n_slots = 256;
	intern->slots = calloc(intern->n_slots, sizeof(*intern->slots));
	if (!intern->slots) {
		free(intern);
		return NULL;
	}
	return intern;
}

void sf_intern_destroy(struct sf_intern *intern)
{
	if (!intern)
		return;
	for (struct chunk *chunk = intern->chunks, *next; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	sf_vec_deinit(&intern->entries);
	free(intern->slots);
	free(intern);
}

/* All bits of the product, which depend on all of both. */
static uint64_t fold(uint64_t a, uint64_t b)
{
	const unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t hash_bytes(const uint64_t key[2], const void *bytes, size_t size)
{
	const unsigned char *p = bytes;
	uint64_t hash = key[0] ^ size, word;

	for (; size >= 8; p += 8, size -= 8) {
		memcpy(&word, p, 8);
		hash = fold(hash ^ word, key[1]) + key[0];
	}
	word = 0;
	memcpy(&word, p, size);
	return fold(hash ^ word, key[1]) ^ key[0];
}

static uint32_t tag_of(uint64_t hash)
{
	return (uint32_t)(hash >> 32);
}

static bool same(const struct entry *entry, uint64_t hash, const void *bytes, size_t size)
{
	return entry->hash == hash && entry->size == size && memcmp(entry->bytes, bytes, size) == 0;
}

/* The slot that holds these bytes, or the empty one where they belong. */
static struct slot *find_slot(const struct sf_intern *intern, uint64_t hash, const void *bytes,
			      size_t size)
{
	size_t mask = intern->n_slots - 1;

	for (size_t i = hash & mask;; i = (i + 1) & mask) {
		struct slot *slot = &intern->slots[i];

		if (!slot->number || (slot->tag == tag_of(hash) &&
				      same(&intern->entries.items[slot->number - 1], hash, bytes, size)))
			return slot;
	}
}

static bool grow_slots(struct sf_intern *intern)
{
	size_t n_slots = intern->n_slots * 2;
	struct slot *slots = calloc(n_slots, sizeof(*slots));

	if (!slots)
		return false;
	for (size_t number = 1; number <= intern->entries.n; number++) {
		const uint64_t hash = intern->entries.items[number - 1].hash;
		size_t i = hash & (n_slots - 1);

		while (slots[i].number)
			i = (i + 1) & (n_slots - 1);
		slots[i] = (struct slot){ (uint32_t)number, tag_of(hash) };
	}
	free(intern->slots);
	intern->slots = slots;
	intern->n_slots = n_slots;
	return true;
}

static void *take_bytes(struct sf_intern *intern, size_t size)
{
	size_t rounded = (size + 1 + 7) & ~(size_t)7;
	struct chunk *chunk = intern->chunks;
	void *bytes;

	if (!chunk || chunk->size - chunk->used < rounded) {
		size_t room = rounded > CHUNK_SIZE ? rounded : CHUNK_SIZE;

		chunk = malloc(sizeof(*chunk) + room);
		if (!chunk)
			return NULL;
		*chunk = (struct chunk){ .next = intern->chunks, .size = room };
		intern->chunks = chunk;
	}
	bytes = chunk->bytes + chunk->used;
	chunk->used += rounded;
	return bytes;
}

uint32_t sf_intern_add(struct sf_intern *intern, const void *bytes, size_t size, bool *is_new)
{
	uint64_t hash = hash_bytes(intern->key, bytes, size);
	struct slot *slot = find_slot(intern, hash, bytes, size);
	unsigned char *copy;

	if (is_new)
		*is_new = !slot->number;
	if (slot->number)
		return slot->number;
	if (intern->entries.n >= UINT32_MAX - 1)
		return 0;
	if ((intern->entries.n + 1) * 2 > intern->n_slots) {
		if (!grow_slots(intern))
			return 0;
		slot = find_slot(intern, hash, bytes, size);
	}
	copy = take_bytes(intern, size);
	if (!copy)
		return 0;
	if (size)
		memcpy(copy, bytes, size);
	copy[size] = 0;
	if (!sf_vec_push(&intern->entries,
			 (struct entry){ .bytes = copy, .size = size, .hash = hash }))
		return 0;
	*slot = (struct slot){ (uint32_t)intern->entries.n, tag_of(hash) };
	return slot->number;
}

uint32_t sf_intern_find(const struct sf_intern *intern, const void *bytes, size_t size)
{
	return find_slot(intern, hash_bytes(intern->key, bytes, size), bytes, size)->number;
}

uint32_t sf_intern_string(struct sf_intern *intern, const char *string)
{
	return sf_intern_add(intern, string, strlen(string), NULL);
}

const void *sf_intern_get(const struct sf_intern *intern, uint32_t number, size_t *size)
{
	const struct entry *entry = &intern->entries.items[number - 1];

	if (size)
		*size = entry->size;
	return entry->bytes;
}

uint32_t sf_intern_count(const struct sf_intern *intern)
{
	return (uint32_t)intern->entries.n;
}
