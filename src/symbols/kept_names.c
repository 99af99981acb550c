/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of names of an image: a digest of the rest, and answers. An answer is a struct answer, and for each of its
 * locations a struct place and three texts: function, linkage name and source file.
 */
#include "symbols/kept_names.h"

#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/hex.h"
#include "base/search.h"
#include "base/whole_io.h"

#define FOLDER "names-4" /* raised when a file gets other names than before */
#define FILE_LIMIT ((size_t)4 << 20)    /* what is kept of an image: beyond it the older answers go */
#define LIMIT ((uint64_t)128 << 20)     /* of all files */

struct answer {
	uint64_t address;
	uint64_t n;              /* locations */
};

struct place {
	uint32_t line;
	uint8_t inlined, approximate;
};

/* The bytes of the answers that are still to be read. */
struct rest {
	const uint8_t *at, *end;
};

static bool take(struct rest *rest, void *ret, size_t size)
{
	if ((size_t)(rest->end - rest->at) < size)
		return false;
	memcpy(ret, rest->at, size);
	rest->at += size;
	return true;
}

/* NULL: it has no end. */
static const char *take_text(struct rest *rest)
{
	const char *text = (const char *)rest->at;
	const uint8_t *zero = memchr(rest->at, 0, (size_t)(rest->end - rest->at));

	if (!zero)
		return NULL;
	rest->at = zero + 1;
	return text;
}

static bool take_location(struct rest *rest, struct sf_location *ret)
{
	struct place place;

	if (!take(rest, &place, sizeof(place)))
		return false;
	*ret = (struct sf_location){ .line = place.line, .inlined = place.inlined != 0, .approximate = place.approximate != 0 };
	ret->function = take_text(rest);
	ret->linkage = ret->function ? take_text(rest) : NULL;
	ret->file = ret->linkage ? take_text(rest) : NULL;
	return ret->file && *ret->function;
}

static bool pass_answer(struct rest *rest, struct answer *ret)
{
	struct sf_location location;

	if (!take(rest, ret, sizeof(*ret)) || !ret->n)
		return false;
	for (uint64_t i = 0; i < ret->n; i++) {
		if (!take_location(rest, &location))
			return false;
	}
	return true;
}

static int by_address(const void *left, const void *right)
{
	const struct sf_kept_name *a = left, *b = right;

	return sf_order(a->address, b->address);
}

static bool list_answers(struct sf_kept_names *names)
{
	struct rest rest = { names->bytes, names->bytes + names->size };
	struct answer answer;

	while (rest.at < rest.end) {
		const size_t at = (size_t)(rest.at - names->bytes);

		if (!pass_answer(&rest, &answer) || !sf_vec_push(&names->of, (struct sf_kept_name){ answer.address, at }))
			return false;
	}
	if (names->of.n)
		qsort(names->of.items, names->of.n, sizeof(*names->of.items), by_address);
	return true;
}

static void digest_of(const void *first, size_t first_size, const void *second, size_t second_size, uint8_t ret[SF_DIGEST_SIZE])
{
	struct sf_digest digest;

	sf_digest_begin(&digest);
	sf_digest_add(&digest, first, first_size);
	sf_digest_add(&digest, second, second_size);
	sf_digest_end(&digest, ret);
}

static bool read_file(int folder, struct sf_kept_names *names)
{
	uint8_t said[SF_DIGEST_SIZE], found[SF_DIGEST_SIZE];
	SF_CLEANUP(close) int fd = -1;
	size_t size;

	fd = sf_cache_file_open(folder, names->name, &size);
	if (fd < 0 || size <= sizeof(said) || size > FILE_LIMIT || !sf_read_all(fd, said, sizeof(said)))
		return false;
	names->size = size - sizeof(said);
	names->bytes = malloc(names->size);
	if (!names->bytes || !sf_read_all(fd, names->bytes, names->size))
		return false;
	digest_of(names->bytes, names->size, NULL, 0, found);
	if (memcmp(said, found, sizeof(said)) != 0)
		return false;
	return list_answers(names);
}

void sf_kept_names_open(const uint8_t digest[SF_DIGEST_SIZE], struct sf_kept_names *ret)
{
	SF_CLEANUP(close) int folder = sf_cache_folder_open(FOLDER);
	struct sf_kept_names names = { 0 };

	sf_hex(digest, SF_DIGEST_SIZE, names.name);
	*ret = names;
	if (folder >= 0 && read_file(folder, ret))
		return;
	sf_kept_names_deinit(ret);
	memcpy(ret->name, names.name, sizeof(ret->name));
}

const struct sf_location *sf_kept_names_find(struct sf_kept_names *names, uint64_t address, size_t *n_ret)
{
	const struct sf_kept_name key = { .address = address };
	const struct sf_kept_name *found =
		names->of.n ? bsearch(&key, names->of.items, names->of.n, sizeof(key), by_address) : NULL;
	struct sf_location location;
	struct answer answer;
	struct rest rest;

	if (!found)
		return NULL;
	rest = (struct rest){ names->bytes + found->at, names->bytes + names->size };
	take(&rest, &answer, sizeof(answer));
	names->locations.n = 0;
	for (uint64_t i = 0; i < answer.n; i++) {
		if (!take_location(&rest, &location) || !sf_vec_push(&names->locations, location))
			return NULL;
	}
	*n_ret = answer.n;
	return names->locations.items;
}

static bool add_bytes(struct sf_kept_names *names, const void *bytes, size_t size)
{
	if (!sf_vec_reserve(&names->added, size))
		return false;
	memcpy(names->added.items + names->added.n, bytes, size);
	names->added.n += size;
	return true;
}

static bool add_text(struct sf_kept_names *names, const char *text)
{
	return add_bytes(names, text, strlen(text) + 1);
}

void sf_kept_names_add(struct sf_kept_names *names, uint64_t address, const struct sf_location *locations, size_t n)
{
	const struct answer answer = { .address = address, .n = n };
	bool fine = add_bytes(names, &answer, sizeof(answer));

	for (size_t i = 0; fine && i < n; i++) {
		struct place place;

		memset(&place, 0, sizeof(place));
		place.line = locations[i].line;
		place.inlined = locations[i].inlined;
		place.approximate = locations[i].approximate;
		fine = add_bytes(names, &place, sizeof(place)) && add_text(names, locations[i].function) &&
		       add_text(names, locations[i].linkage) && add_text(names, locations[i].file);
	}
	names->no_memory |= !fine;
}

void sf_kept_names_write(const struct sf_kept_names *names)
{
	SF_CLEANUP(close) int folder = names->added.n && !names->no_memory ? sf_cache_folder_open(FOLDER) : -1;
	const size_t old = SF_DIGEST_SIZE + names->size + names->added.n <= FILE_LIMIT ? names->size : 0;
	uint8_t digest[SF_DIGEST_SIZE];
	const struct iovec pieces[] = {
		{ digest, sizeof(digest) },
		{ names->bytes, old },
		{ names->added.items, names->added.n },
	};

	if (folder < 0 || SF_DIGEST_SIZE + names->added.n > FILE_LIMIT)
		return;
	digest_of(names->bytes, old, names->added.items, names->added.n, digest);
	if (sf_cache_file_put(folder, names->name, pieces, sizeof(pieces) / sizeof(pieces[0])))
		sf_cache_prune(folder, LIMIT);
}

void sf_kept_names_deinit(struct sf_kept_names *names)
{
	free(names->bytes);
	sf_vec_deinit(&names->of);
	sf_vec_deinit(&names->added);
	sf_vec_deinit(&names->locations);
	*names = (struct sf_kept_names){ 0 };
}
