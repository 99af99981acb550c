/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the names of frames to a recording, and leaves out the innermost frames that are not to be shown. */
#include "recording/writer.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "frozen/trace.h"

#define PENDING UINT32_MAX          /* in `pending`: not described yet; 0: the place was never pending */
#define MAX_HELD 4096               /* samples that wait for names */

/*
 * --- managed frames ---
 *
 * A place is the number of a managed frame's description: interned functions, or a pending location, whose description
 * comes later. Frames with a pending location are named before the next burst is written, or at the end.
 */

static uint32_t intern(struct sf_recording *recording, const struct sf_managed_function *functions, size_t n)
{
	return sf_intern_add(recording->managed, functions, n * sizeof(*functions), NULL);
}

/* The number of the functions at an address, innermost first, interned; 0: no memory. */
static uint32_t intern_functions(struct sf_recording *recording, uint32_t module, const struct sf_location *names, size_t n)
{
	struct sf_managed_function functions[SF_MAX_INLINED];

	n = n < SF_MAX_INLINED ? n : SF_MAX_INLINED;
	for (size_t i = 0; i < n; i++) {
		functions[i] = (struct sf_managed_function){
			.function = sf_recording_function(recording, module, &names[i]),
			.line = names[i].line,
			.inlined = names[i].inlined && i + 1 < n,
			.approximate = names[i].approximate,
		};
		if (!functions[i].function)
			return 0;
	}
	return intern(recording, functions, n);
}

bool sf_recording_place(struct sf_recording *recording, const struct sf_location *names,
			size_t n, uint32_t *ret, struct sf_error *err)
{
	*ret = intern_functions(recording, 0, names, n);
	return *ret || sf_fail_memory(err);
}

/* No function has the number 0, so no other place is the same as a pending one. */
bool sf_recording_pending(struct sf_recording *recording, uint32_t *ret, struct sf_error *err)
{
	const struct sf_managed_function unique = { .line = ++recording->n_pending };
	uint32_t place = intern(recording, &unique, 1);

	if (!place)
		return sf_fail_memory(err);
	while (recording->pending.n < place) {
		if (!sf_vec_push(&recording->pending, 0))
			return sf_fail_memory(err);
	}
	recording->pending.items[place - 1] = PENDING;
	*ret = place;
	return true;
}

/* The place that has the functions: itself, or, of one that was pending, the one by which it is described. PENDING: none yet. */
static uint32_t described(const struct sf_recording *recording, uint64_t place)
{
	const uint32_t later = place && place <= recording->pending.n ? recording->pending.items[place - 1] : 0;

	return later ? later : (uint32_t)place;
}

bool sf_recording_describe_pending(struct sf_recording *recording, uint32_t place,
				   const struct sf_location *names, size_t n, uint32_t *ret,
				   struct sf_error *err)
{
	if (!sf_recording_place(recording, names, n, ret, err))
		return false;
	if (described(recording, place) == PENDING)
		recording->pending.items[place - 1] = *ret;
	return true;
}

/* The name of the method whose code is at this place; "": it has none. False: the place is pending. */
static bool place_name(const struct sf_recording *recording, uint64_t place, const char **ret)
{
	const struct sf_managed_function *functions;
	const struct sf_function_key *function;
	size_t size;

	*ret = "";
	place = described(recording, place);
	if (place == PENDING)
		return false;
	if (!place || place > sf_intern_count(recording->managed))
		return true;
	functions = sf_intern_get(recording->managed, (uint32_t)place, &size);
	if (size < sizeof(*functions))
		return true;
	function = sf_intern_get(recording->functions, functions[size / sizeof(*functions) - 1].function, NULL);
	*ret = sf_recording_string(recording, function->name);
	return true;
}

/* Gives a frame the functions with this number. False: no memory. */
static bool name_frame(struct sf_recording *recording, uint32_t frame, uint64_t place)
{
	const struct sf_managed_function *functions = NULL;
	size_t size = 0;

	if (place && place <= sf_intern_count(recording->managed))
		functions = sf_intern_get(recording->managed, (uint32_t)place, &size);
	for (size_t i = 0; i < size / sizeof(*functions); i++) {
		struct sf_frame_function row = {
			.frame = frame,
			.seq = (uint32_t)i,
			.function = functions[i].function,
			.line = functions[i].line,
			.inlined = functions[i].inlined != 0,
			.approximate = functions[i].approximate != 0,
		};

		if (!sf_vec_push(&recording->frame_functions, row))
			return false;
	}
	return true;
}

bool sf_recording_name_managed(struct sf_recording *recording, uint32_t frame, uint64_t place)
{
	const struct sf_waiting_frame waiting = { frame, (uint32_t)place };
	const uint32_t with_functions = described(recording, place);

	while (recording->named.n < frame) {
		if (!sf_vec_push(&recording->named, SF_WITHOUT_NAMES))
			return false;
	}
	recording->named.items[frame - 1] = SF_WITH_NAMES;
	if (with_functions == PENDING)
		return sf_vec_push(&recording->waiting, waiting);
	return name_frame(recording, frame, with_functions);
}

bool sf_recording_name_waiting(struct sf_recording *recording, bool last, struct sf_error *err)
{
	const struct sf_location unknown = {
		.function = "[managed code that was not described]", .linkage = "", .file = "",
	};
	uint32_t undescribed = 0;
	size_t n = 0;

	if (last && recording->waiting.n &&
	    !sf_recording_place(recording, &unknown, 1, &undescribed, err))
		return false;
	for (size_t i = 0; i < recording->waiting.n; i++) {
		const struct sf_waiting_frame waiting = recording->waiting.items[i];
		uint32_t place = described(recording, waiting.place);

		if (place == PENDING)
			place = undescribed;
		if (!place)
			recording->waiting.items[n++] = waiting;
		else if (!name_frame(recording, waiting.frame, place))
			return sf_fail_memory(err);
	}
	recording->waiting.n = n;
	return true;
}

/* The place of a stack's innermost frame; 0: it is not managed. */
static uint32_t innermost_place(const struct sf_recording *recording, uint32_t number)
{
	const struct sf_stack_key *stack = number ? sf_intern_get(recording->stacks, number, NULL) : NULL;
	const struct sf_frame_key *frame = stack ? sf_intern_get(recording->frames, stack->frame, NULL) : NULL;

	return frame && sf_kind_is_managed(frame->kind) ? (uint32_t)frame->address : 0;
}

bool sf_recording_count_managed(struct sf_recording *recording, uint32_t stack, uint64_t cpu_ns)
{
	const uint32_t place = innermost_place(recording, stack);

	while (recording->managed_ns.n < place) {
		if (!sf_vec_push(&recording->managed_ns, 0))
			return false;
	}
	if (place)
		recording->managed_ns.items[place - 1] += cpu_ns;
	return true;
}

void sf_recording_total_managed(const struct sf_recording *recording, struct sf_recording_totals *ret)
{
	for (uint32_t i = 0; i < recording->managed_ns.n; i++) {
		const uint32_t place = described(recording, i + 1);
		const struct sf_managed_function *innermost = place == PENDING ? NULL : sf_intern_get(recording->managed, place, NULL);

		ret->managed_ns += recording->managed_ns.items[i];
		if (innermost && innermost->approximate)
			ret->approximate_ns += recording->managed_ns.items[i];
	}
}

/*
 * --- native frames ---
 *
 * A place (module, address) may be behind several frames, which differ in how they were found. So native frames are also
 * kept sorted by place.
 */

static int compare_places(const void *left, const void *right)
{
	const struct sf_place *a = left, *b = right;

	return a->module != b->module ? sf_order(a->module, b->module) : sf_order(a->address, b->address);
}

static bool index_places(struct sf_recording *recording)
{
	uint32_t n = sf_intern_count(recording->frames);

	if (recording->placed_frames == n)
		return true;
	for (uint32_t number = recording->placed_frames + 1; number <= n; number++) {
		const struct sf_frame_key *key = sf_intern_get(recording->frames, number, NULL);
		struct sf_place place = { key->module, number, key->address };

		if ((key->kind == SF_KIND_NATIVE || key->kind == SF_KIND_KERNEL) &&
		    !sf_vec_push(&recording->places, place))
			return false;
		recording->placed_frames = number;
		if (recording->named.n < number && !sf_vec_push(&recording->named, SF_WITHOUT_NAMES))
			return false;
	}
	if (recording->places.n)
		qsort(recording->places.items, recording->places.n, sizeof(*recording->places.items),
		      compare_places);
	return true;
}

/* The first place that is not before this one. */
static size_t find_place(const struct sf_recording *recording, uint32_t module, uint64_t address)
{
	const struct sf_place wanted = { .module = module, .address = address };

	return sf_count_before(recording->places.n, i, compare_places(&recording->places.items[i], &wanted) < 0);
}

bool sf_recording_unnamed(struct sf_recording *recording, uint32_t module, uint64_t **ret,
			  size_t *n_ret, struct sf_error *err)
{
	SF_VEC(uint64_t) addresses = { 0 };

	if (!index_places(recording))
		return sf_fail_memory(err);
	for (size_t i = find_place(recording, module, 0); i < recording->places.n; i++) {
		const struct sf_place *place = &recording->places.items[i];

		if (place->module != module)
			break;
		if (recording->named.items[place->frame - 1] != SF_WITHOUT_NAMES)
			continue;
		recording->named.items[place->frame - 1] = SF_HANDED_OUT;
		if (addresses.n && addresses.items[addresses.n - 1] == place->address)
			continue;
		if (!sf_vec_push(&addresses, place->address)) {
			sf_vec_deinit(&addresses);
			return sf_fail_memory(err);
		}
	}
	*ret = addresses.items;
	*n_ret = addresses.n;
	return true;
}

bool sf_recording_name_place(struct sf_recording *recording, uint32_t module, uint64_t address, const struct sf_location *names, size_t n)
{
	const uint32_t description = intern_functions(recording, module, names, n);

	if (!description || !index_places(recording))
		return false;
	for (size_t i = find_place(recording, module, address); i < recording->places.n; i++) {
		const struct sf_place *place = &recording->places.items[i];

		if (place->module != module || place->address != address)
			break;
		if (recording->named.items[place->frame - 1] == SF_WITH_NAMES)
			continue;
		if (!name_frame(recording, place->frame, description))
			return false;
		recording->named.items[place->frame - 1] = SF_WITH_NAMES;
	}
	return true;
}

size_t sf_recording_waiting_names(const struct sf_recording *recording)
{
	return recording->frame_functions.n;
}

/*
 * --- innermost frames that are left out ---
 *
 * They are those of managed functions that the runtime has to get to what is sampled, and of native code, up to the next
 * managed function. A function is known by its name, which may come after the sample.
 */

enum role { OF_PROGRAM, LEFT_OUT, NATIVE, NOT_TOLD };

static enum role role_of(const struct sf_recording *recording, uint32_t frame)
{
	const struct sf_frame_key *key = sf_intern_get(recording->frames, frame, NULL);
	const char *name;

	if (!key || !sf_kind_is_managed(key->kind) || key->kind == SF_KIND_STUB)
		return NATIVE;
	if (!place_name(recording, key->address, &name))
		return recording->complete || recording->samples.n > MAX_HELD ? OF_PROGRAM : NOT_TOLD;
	return strncmp(name, recording->left_out, strlen(recording->left_out)) == 0 ? LEFT_OUT : OF_PROGRAM;
}

void sf_recording_leave_out(struct sf_recording *recording, const char *start)
{
	recording->left_out = start;
}

bool sf_recording_innermost(const struct sf_recording *recording, uint32_t stack, uint32_t *ret)
{
	bool any = false;

	*ret = stack;
	for (uint32_t number = recording->left_out ? stack : 0; number;) {
		const struct sf_stack_key *key = sf_intern_get(recording->stacks, number, NULL);
		const enum role role = role_of(recording, key->frame);

		any |= role == LEFT_OUT;
		if (role == NOT_TOLD)
			return false;
		if (role == OF_PROGRAM) {
			*ret = any ? number : stack;
			return true;
		}
		number = key->parent;
	}
	return true;
}
