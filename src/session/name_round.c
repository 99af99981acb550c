/* SPDX-License-Identifier: Apache-2.0 */
/* Takes, looks up and writes the names of one round (session/name_round.h). */
#include "session/name_round.h"

#include <stdlib.h>

static bool add_image(struct sf_name_round *round, struct sf_recording *recording, const struct sf_image *image,
		      struct sf_error *err)
{
	struct sf_round_image added = {
		.round = round, .module = image->number, .is_kernel = image->is_kernel,
		.lookup = { .fd = image->fd, .path = image->path, .is_perf_map = image->is_perf_map },
	};
	uint64_t *addresses;

	if (!sf_recording_unnamed(recording, image->number, &addresses, &added.lookup.n, err))
		return false;
	added.lookup.addresses = addresses;
	if (!added.lookup.n || sf_vec_push(&round->images, added)) {
		if (!added.lookup.n)
			free(addresses);
		return true;
	}
	free(addresses);
	return sf_fail_memory(err);
}

/* An image that cannot be read names nothing. A perf map has all its names at the end only. */
static bool has_names(struct sf_image *image, bool is_last)
{
	return image->is_kernel || (image->fd >= 0 && !sf_image_is_rewritten(image) && (is_last || !image->is_perf_map));
}

bool sf_name_round_take(struct sf_name_round *round, struct sf_recording *recording, struct sf_images *images, bool is_last,
			struct sf_error *err)
{
	if (!round->texts)
		round->texts = sf_intern_create();
	if (!round->texts)
		return sf_fail_memory(err);
	for (uint32_t number = 1; number <= sf_images_count(images); number++) {
		struct sf_image *image = sf_images_get(images, number);

		if (has_names(image, is_last) && !add_image(round, recording, image, err))
			return false;
	}
	return true;
}

static const char *keep_text(struct sf_name_round *round, const char *text)
{
	const uint32_t number = sf_intern_string(round->texts, text);

	return number ? sf_intern_get(round->texts, number, NULL) : NULL;
}

static bool keep_location(struct sf_name_round *round, const struct sf_location *location)
{
	struct sf_location kept = *location;

	kept.function = keep_text(round, location->function);
	kept.linkage = keep_text(round, location->linkage);
	kept.file = keep_text(round, location->file);
	return kept.function && kept.linkage && kept.file && sf_vec_push(&round->locations, kept);
}

static void on_location(size_t index, const struct sf_location *locations, size_t n, void *arg)
{
	const struct sf_round_image *image = arg;
	struct sf_name_round *round = image->round;
	struct sf_round_name name = { .module = image->module, .address = image->lookup.addresses[index], .first = round->locations.n };
	const size_t left_out = sf_inlined_left_out(n);

	name.n = (uint32_t)(n - left_out);
	for (size_t i = left_out; i < n && !round->no_memory; i++)
		round->no_memory = !keep_location(round, &locations[i]);
	if (!round->no_memory)
		round->no_memory = !sf_vec_push(&round->names, name);
}

/* Addresses without a name stay without. */
static void name_kernel(struct sf_round_image *image, struct sf_kernel_names *names)
{
	const struct sf_kernel_symbols *symbols = sf_kernel_names_for(names, image->lookup.addresses, image->lookup.n);

	for (size_t i = 0; i < image->lookup.n; i++) {
		const char *name = sf_kernel_symbols_find(symbols, image->lookup.addresses[i]);
		const struct sf_location location = { .function = name, .linkage = name, .file = "" };

		if (name)
			on_location(i, &location, 1, image);
	}
}

void sf_name_round_look_up(struct sf_name_round *round, struct sf_name_sources *sources)
{
	SF_VEC(struct sf_lookup_image) files = { 0 };

	for (size_t i = 0; i < round->images.n && !round->no_memory; i++) {
		struct sf_round_image *image = &round->images.items[i];

		image->lookup.arg = image;
		if (image->is_kernel)
			name_kernel(image, &sources->kernel);
		else
			round->no_memory = !sf_vec_push(&files, image->lookup);
	}
	if (!round->no_memory)
		sf_lookup_resolve(&sources->lookup, files.items, files.n, on_location, NULL);
	sf_vec_deinit(&files);
}

bool sf_name_round_put(struct sf_name_round *round, struct sf_recording *recording, size_t max_rows, bool *done_ret,
		       struct sf_error *err)
{
	if (round->no_memory)
		return sf_fail_memory(err);
	for (; round->n_put < round->names.n && sf_recording_waiting_names(recording) < max_rows; round->n_put++) {
		const struct sf_round_name *name = &round->names.items[round->n_put];

		if (!sf_recording_names(recording, name->module, name->address, &round->locations.items[name->first], name->n, err))
			return false;
	}
	*done_ret = round->n_put == round->names.n;
	return true;
}

void sf_name_round_deinit(struct sf_name_round *round)
{
	for (size_t i = 0; i < round->images.n; i++)
		free((uint64_t *)round->images.items[i].lookup.addresses);
	sf_vec_deinit(&round->images);
	sf_vec_deinit(&round->names);
	sf_vec_deinit(&round->locations);
	sf_intern_destroy(round->texts);
	*round = (struct sf_name_round){ 0 };
}
