/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the names of all frames of a dump. The addresses of all threads are sorted by image and address, each once, and
 * are resolved an image at a time. Then every trace is expanded from the results.
 */
#include "session/dump_names.h"

#include <stdlib.h>
#include <string.h>

#include "symbols/lookup.h"

/* A place to look up, and its functions: a run of `n` in the flat array from `first`. */
struct place {
	uint32_t image;
	uint32_t first, n;
	uint64_t address;
};

struct naming {
	struct sf_dump *dump;
	struct sf_process_runtimes *runtimes; /* NULL: none */
	SF_VEC(struct place) places;
	SF_VEC(struct sf_dump_frame) functions;
	struct place *of_image;     /* the first place of the image that is being resolved */
	struct sf_lookup lookup;
	bool no_memory;
};

static struct place place_of(const struct sf_frame *frame)
{
	bool exact = frame->flags & SF_FRAME_EXACT;

	return (struct place){ .image = frame->image, .address = frame->address - !exact };
}

static bool is_native(const struct sf_frame *frame)
{
	return !sf_kind_is_managed(frame->kind);
}

static int compare(const void *a, const void *b)
{
	const struct place *left = a, *right = b;

	if (left->image != right->image)
		return left->image < right->image ? -1 : 1;
	return (left->address > right->address) - (left->address < right->address);
}

static bool collect(struct naming *naming)
{
	size_t n = 0;

	for (size_t i = 0; i < naming->dump->threads.n; i++) {
		const struct sf_dump_thread *thread = &naming->dump->threads.items[i];

		for (size_t j = 0; j < thread->trace.n; j++) {
			if (is_native(&thread->trace.items[j]) &&
			    !sf_vec_push(&naming->places, place_of(&thread->trace.items[j])))
				return false;
		}
	}
	if (!naming->places.n)
		return true;
	if (naming->places.n)
		qsort(naming->places.items, naming->places.n, sizeof(struct place), compare);
	for (size_t i = 1; i < naming->places.n; i++) {
		if (compare(&naming->places.items[n], &naming->places.items[i]) != 0)
			naming->places.items[++n] = naming->places.items[i];
	}
	naming->places.n = n + 1;
	return true;
}

/* A frame with its names only. */
static struct sf_dump_frame name_of(struct sf_dump *dump, const struct sf_location *location)
{
	return (struct sf_dump_frame){
		.function = sf_dump_text(dump, location->function),
		.file = *location->file ? sf_dump_text(dump, location->file) : 0,
		.line = location->line,
		.inlined = location->inlined,
		.approximate = location->approximate,
	};
}

static void on_location(size_t index, const struct sf_location *locations, size_t n, void *arg)
{
	struct naming *naming = arg;
	struct place *place = &naming->of_image[index];

	if (!sf_vec_reserve(&naming->functions, n)) {
		naming->no_memory = true;
		return;
	}
	place->first = (uint32_t)naming->functions.n;
	place->n = (uint32_t)n;
	for (size_t i = 0; i < n; i++)
		naming->functions.items[naming->functions.n++] = name_of(naming->dump, &locations[i]);
}

static void resolve_image(struct naming *naming, size_t first, size_t n)
{
	const struct sf_image *image =
		sf_images_get(naming->dump->walker.images, naming->places.items[first].image);
	uint64_t *addresses = malloc(n * sizeof(*addresses));

	naming->of_image = &naming->places.items[first];
	for (size_t i = 0; addresses && i < n; i++)
		addresses[i] = naming->of_image[i].address;
	if (addresses && image->fd >= 0)
		sf_lookup_resolve(&naming->lookup, image->fd, image->path, addresses, n, on_location,
				 naming, NULL);
	naming->no_memory = naming->no_memory || !addresses;
	free(addresses);
}

static void resolve(struct naming *naming)
{
	for (size_t first = 0, n; first < naming->places.n; first += n) {
		uint32_t image = naming->places.items[first].image;

		for (n = 1; first + n < naming->places.n; n++) {
			if (naming->places.items[first + n].image != image)
				break;
		}
		if (image)
			resolve_image(naming, first, n);
	}
}

static bool add_frame(struct sf_dump_thread *thread, const struct sf_frame *frame,
		      struct sf_dump_frame named)
{
	named.pc = frame->pc;
	named.address = frame->address;
	named.image = frame->image;
	named.via = frame->via;
	named.kind = frame->kind;
	return sf_vec_push(&thread->frames, named);
}

static bool expand_native(const struct naming *naming, struct sf_dump_thread *thread,
			  const struct sf_frame *frame)
{
	struct place key = place_of(frame);
	const struct place *place = bsearch(&key, naming->places.items, naming->places.n,
					    sizeof(key), compare);

	if (!place->n && !add_frame(thread, frame, (struct sf_dump_frame){ 0 }))
		return false;
	for (uint32_t j = 0; j < place->n; j++) {
		if (!add_frame(thread, frame, naming->functions.items[place->first + j]))
			return false;
	}
	return true;
}

static bool expand_managed(const struct naming *naming, struct sf_dump_thread *thread,
			const struct sf_frame *frame)
{
	const struct sf_location *functions;
	struct sf_runtimes *runtimes = &naming->runtimes->all;
	size_t n = sf_runtimes_functions(runtimes, frame, sf_runtimes_place(runtimes, frame),
					 &functions);

	for (size_t i = 0; i < n; i++) {
		if (!add_frame(thread, frame, name_of(naming->dump, &functions[i])))
			return false;
	}
	return n > 0;
}

static bool expand(const struct naming *naming, struct sf_dump_thread *thread)
{
	for (size_t i = 0; i < thread->trace.n; i++) {
		const struct sf_frame *frame = &thread->trace.items[i];

		if (!(is_native(frame) || !naming->runtimes ? expand_native(naming, thread, frame)
							    : expand_managed(naming, thread, frame)))
			return false;
	}
	return true;
}

/* The system keeps 15 bytes of a thread's name; a runtime has all of it. */
static void name_thread(const struct naming *naming, struct sf_dump_thread *thread)
{
	char name[SF_DUMP_NAME];

	if (sf_process_runtimes_name(naming->runtimes, naming->dump->pid, thread->tid, name,
				     sizeof(name)))
		memcpy(thread->name, name, sizeof(name));
}

/* Images are opened by their paths as they are; these are copies to be shown. */
static bool take_paths(struct sf_dump *dump)
{
	struct sf_images *images = dump->walker.images;

	for (uint32_t i = 1; i <= sf_images_count(images); i++) {
		if (!sf_vec_push(&dump->paths, sf_dump_text(dump, sf_images_get(images, i)->path)))
			return false;
	}
	return true;
}

bool sf_dump_name(struct sf_dump *dump, struct sf_error *err)
{
	struct naming naming = { .dump = dump,
				 .runtimes = sf_walker_runtimes(&dump->walker, dump->pid),
				 .lookup = sf_lookup_begin(NULL) };
	bool fine = take_paths(dump) && collect(&naming);

	for (size_t i = 0; naming.runtimes && i < dump->threads.n; i++)
		name_thread(&naming, &dump->threads.items[i]);

	if (fine)
		resolve(&naming);
	if (!dump->note)
		dump->note = sf_lookup_note(&naming.lookup);
	for (size_t i = 0; fine && !naming.no_memory && i < dump->threads.n; i++)
		fine = expand(&naming, &dump->threads.items[i]);
	sf_vec_deinit(&naming.places);
	sf_vec_deinit(&naming.functions);
	return fine && !naming.no_memory ? true : sf_fail_memory(err);
}
