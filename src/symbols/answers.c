/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the answers of a child that looks up names, and reads them in the parent as hostile input. */
#include "symbols/answers.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

bool sf_answers_open(struct sf_answers *ret, size_t n, size_t size)
{
	void *memory = MAP_FAILED;

	*ret = (struct sf_answers){ .size = size, .n = n };
	if (size > sizeof(*ret->memory) && n < (size - sizeof(*ret->memory)) / sizeof(*ret->memory->of))
		memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return false;
	ret->memory = memory;
	ret->memory->used = sizeof(*ret->memory) + n * sizeof(*ret->memory->of);
	return true;
}

void sf_answers_close(struct sf_answers *answers)
{
	munmap(answers->memory, answers->size);
}

static void *allocate(struct sf_answers *answers, size_t size)
{
	const size_t at = (answers->memory->used + 7) & ~(size_t)7;

	if (at >= answers->size || size >= answers->size - at)
		_exit(1);
	answers->memory->used = at + size;
	return (char *)answers->memory + at;
}

/* Texts are interned where they come from: equal ones have one address. */
static const char *copy_text(struct sf_answers *answers, const char *text)
{
	const uintptr_t address = (uintptr_t)text;
	const size_t size = strlen(text) + 1;
	uint32_t number = 0;
	bool is_new;

	if (answers->texts || (answers->texts = sf_intern_create()))
		number = sf_intern_add(answers->texts, &address, sizeof(address), &is_new);
	if (!number || (is_new && !sf_vec_push(&answers->copies,
					       memcpy(allocate(answers, size), text, size))))
		_exit(1);
	return answers->copies.items[number - 1];
}

void sf_answers_put(size_t index, const struct sf_location *locations, size_t n, void *arg)
{
	struct sf_answers *answers = arg;
	struct sf_answer *answer = allocate(answers, sizeof(*answer) + n * sizeof(*locations));

	answer->n = n;
	for (size_t i = 0; i < n; i++) {
		answer->locations[i] = locations[i];
		answer->locations[i].function = copy_text(answers, locations[i].function);
		answer->locations[i].linkage = copy_text(answers, locations[i].linkage);
		answer->locations[i].file = copy_text(answers, locations[i].file);
	}
	/* The parent may end this process at any time: the answer is written before its pointer. */
	atomic_store_explicit(&answers->memory->of[answers->numbers[index]], answer,
			      memory_order_release);
}

/* How much memory of the answers lies behind the pointer; 0: it points elsewhere. */
static size_t room_behind(const struct sf_answers *answers, const void *pointer)
{
	const uintptr_t at = (uintptr_t)pointer - (uintptr_t)answers->memory;

	return at < answers->size ? answers->size - at : 0;
}

static bool is_whole(const struct sf_answers *answers, struct sf_answer *answer)
{
	const size_t room = room_behind(answers, answer);

	if ((uintptr_t)answer % _Alignof(struct sf_answer) || room < sizeof(*answer) ||
	    answer->n == 0 || answer->n > (room - sizeof(*answer)) / sizeof(answer->locations[0]))
		return false;
	for (size_t i = 0; i < answer->n; i++) {
		struct sf_location *location = &answer->locations[i];

		memset(&location->inlined, *(uint8_t *)&location->inlined & 1, 1);
		if (!room_behind(answers, location->function) || !*location->function ||
		    !room_behind(answers, location->linkage) ||
		    !room_behind(answers, location->file))
			return false;
	}
	return true;
}

bool sf_answers_report(const struct sf_answers *answers, sf_location_fn *fn, void *arg)
{
	bool all = true;

	((char *)answers->memory)[answers->size - 1] = 0; /* so that every text ends */
	for (size_t i = 0; i < answers->n; i++) {
		struct sf_answer *answer = answers->memory->of[i];
		const bool whole = answer && is_whole(answers, answer);

		if (whole)
			fn(i, answer->locations, answer->n, arg);
		all &= !answer || whole;
	}
	return all;
}
