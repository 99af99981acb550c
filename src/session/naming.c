/* SPDX-License-Identifier: Apache-2.0 */
/* Names the addresses of a recording: in rounds on a thread of their own while it goes on, and in one round at its end. */
#include "session/naming.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/intern.h"
#include "base/vec.h"
#include "os/clock.h"
#include "os/own_thread.h"

#define FIRST_NS 4000000000      /* after the begin: a short recording opens each file once */
#define LAST_NS 2000000000       /* before the end: on a busy machine a round takes as long */
#define TIMES 4                  /* as much is recorded before the next round */
#define CPU_NS ((uint64_t)2 * 1000000000) /* of all rounds, of the time that names may take (symbols/lookup.c) */
#define WAITING_ROWS 20000       /* of names, until the next transaction */

/* --- the kernel's names --- */

static void *read_names(void *arg)
{
	struct sf_kernel_names *names = arg;

	sf_kernel_symbols_load_own(&names->symbols);
	return NULL;
}

/* Where there is no thread, the names are read when they are needed. */
static void begin_kernel_names(struct sf_kernel_names *names)
{
	if (!names->begun && !names->symbols.symbols.n)
		names->begun = sf_quiet_thread_start(&names->reader, read_names, names);
}

static void wait_for_reader(struct sf_kernel_names *names)
{
	if (!names->begun || names->is_read)
		return;
	pthread_join(names->reader, NULL);
	names->is_read = true;
}

static const struct sf_kernel_symbols *kernel_names_for(struct sf_kernel_names *names, const uint64_t *addresses, size_t n)
{
	wait_for_reader(names);
	for (size_t i = 0; i < n; i++) {
		if (sf_kernel_symbols_is_own(&names->symbols, addresses[i]))
			continue;
		sf_kernel_symbols_deinit(&names->symbols);
		sf_kernel_symbols_load(&names->symbols);
		break;
	}
	return &names->symbols;
}

void sf_name_sources_deinit(struct sf_name_sources *sources)
{
	wait_for_reader(&sources->kernel);
	sf_kernel_symbols_deinit(&sources->kernel.symbols);
	sources->kernel = (struct sf_kernel_names){ 0 };
}

/* --- a round --- */

struct round;

/* The addresses of an image. */
struct round_image {
	struct round *round;
	uint32_t module;
	bool is_kernel;
	struct sf_lookup_image lookup; /* the addresses are owned */
};

/* The functions at an address: a run in `locations`. */
struct round_name {
	uint32_t module, n;
	uint64_t address;
	size_t first;
};

/* Zero at the begin. */
struct round {
	SF_VEC(struct round_image) images;
	SF_VEC(struct round_name) names;
	SF_VEC(struct sf_location) locations;
	struct sf_intern *texts;       /* of the locations */
	size_t n_put;                  /* names that are in the recording */
	bool no_memory;
};

static bool add_image(struct round *round, struct sf_recording *recording, const struct sf_image *image,
		      struct sf_error *err)
{
	struct round_image added = {
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

static bool take_round(struct round *round, struct sf_recording *recording, struct sf_images *images, bool is_last,
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

static const char *keep_text(struct round *round, const char *text)
{
	const uint32_t number = sf_intern_string(round->texts, text);

	return number ? sf_intern_get(round->texts, number, NULL) : NULL;
}

static bool keep_location(struct round *round, const struct sf_location *location)
{
	struct sf_location kept = *location;

	kept.function = keep_text(round, location->function);
	kept.linkage = keep_text(round, location->linkage);
	kept.file = keep_text(round, location->file);
	return kept.function && kept.linkage && kept.file && sf_vec_push(&round->locations, kept);
}

static void on_location(size_t index, const struct sf_location *locations, size_t n, void *arg)
{
	const struct round_image *image = arg;
	struct round *round = image->round;
	struct round_name name = { .module = image->module, .address = image->lookup.addresses[index], .first = round->locations.n };
	const size_t left_out = sf_inlined_left_out(n);

	name.n = (uint32_t)(n - left_out);
	for (size_t i = left_out; i < n && !round->no_memory; i++)
		round->no_memory = !keep_location(round, &locations[i]);
	if (!round->no_memory)
		round->no_memory = !sf_vec_push(&round->names, name);
}

/* Addresses without a name stay without. */
static void name_kernel(struct round_image *image, struct sf_kernel_names *names)
{
	const struct sf_kernel_symbols *symbols = kernel_names_for(names, image->lookup.addresses, image->lookup.n);

	for (size_t i = 0; i < image->lookup.n; i++) {
		const char *name = sf_kernel_symbols_find(symbols, image->lookup.addresses[i]);
		const struct sf_location location = { .function = name, .linkage = name, .file = "" };

		if (name)
			on_location(i, &location, 1, image);
	}
}

static void look_up_round(struct round *round, struct sf_name_sources *sources)
{
	SF_VEC(struct sf_lookup_image) files = { 0 };

	for (size_t i = 0; i < round->images.n && !round->no_memory; i++) {
		struct round_image *image = &round->images.items[i];

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

static bool put_round(struct round *round, struct sf_recording *recording, size_t max_rows, bool *done_ret,
		      struct sf_error *err)
{
	if (round->no_memory)
		return sf_fail_memory(err);
	for (; round->n_put < round->names.n && sf_recording_waiting_names(recording) < max_rows; round->n_put++) {
		const struct round_name *name = &round->names.items[round->n_put];

		if (!sf_recording_names(recording, name->module, name->address, &round->locations.items[name->first], name->n, err))
			return false;
	}
	*done_ret = round->n_put == round->names.n;
	return true;
}

static void deinit_round(struct round *round)
{
	for (size_t i = 0; i < round->images.n; i++)
		free((uint64_t *)round->images.items[i].lookup.addresses);
	sf_vec_deinit(&round->images);
	sf_vec_deinit(&round->names);
	sf_vec_deinit(&round->locations);
	sf_intern_destroy(round->texts);
	*round = (struct round){ 0 };
}

/* --- early rounds --- */

struct sf_early_names {
	struct sf_recording *recording;
	struct sf_images *images;
	struct sf_name_sources *sources;
	uint64_t begun_ns, next_ns, end_ns;
	uint64_t least_left_ns;          /* of CPU time: then no round begins */
	struct round round;
	pthread_t thread;
	bool running;                    /* there is a thread, which may have done its work, ... */
	_Atomic bool done;               /* ... and then says so */
	bool found;                      /* names wait to be written */
	uint32_t n_seen;                 /* images */
};

struct sf_early_names *sf_early_names_open(struct sf_recording *recording, struct sf_images *images,
					   struct sf_name_sources *sources, uint64_t end_ns)
{
	struct sf_early_names *early = calloc(1, sizeof(*early));

	if (!early)
		return NULL;
	early->recording = recording;
	early->images = images;
	early->sources = sources;
	early->begun_ns = sf_now_ns();
	early->next_ns = early->begun_ns + FIRST_NS;
	early->end_ns = end_ns;
	early->least_left_ns = sources->lookup.cpu_left_ns > CPU_NS ? sources->lookup.cpu_left_ns - CPU_NS : 0;
	return early;
}

static void *look_up(void *arg)
{
	struct sf_early_names *early = arg;

	look_up_round(&early->round, early->sources);
	atomic_store_explicit(&early->done, true, memory_order_release);
	return NULL;
}

/* Where no thread can be started, the round is looked up at the end. */
static void start_thread(struct sf_early_names *early)
{
	atomic_store(&early->done, false);
	early->running = sf_quiet_thread_start(&early->thread, look_up, early);
}

static bool is_due(const struct sf_early_names *early, uint64_t now_ns)
{
	return now_ns >= early->next_ns && early->sources->lookup.cpu_left_ns > early->least_left_ns;
}

/* The next one is the last one where the one after it would come too late. */
static void set_next(struct sf_early_names *early, uint64_t now_ns)
{
	const uint64_t last_ns = early->end_ns - LAST_NS;

	early->next_ns = early->begun_ns + TIMES * (now_ns - early->begun_ns);
	if (now_ns >= last_ns)
		early->next_ns = UINT64_MAX;
	else if (early->next_ns > last_ns)
		early->next_ns = last_ns;
}

static bool begin_round(struct sf_early_names *early, uint64_t now_ns, struct sf_error *err)
{
	set_next(early, now_ns);
	if (!take_round(&early->round, early->recording, early->images, false, err))
		return false;
	if (early->round.images.n)
		start_thread(early);
	return true;
}

static void end_thread(struct sf_early_names *early)
{
	pthread_join(early->thread, NULL);
	early->running = false;
	early->found = true;
}

static bool write_found(struct sf_early_names *early, size_t max_rows, struct sf_error *err)
{
	bool done;

	if (!put_round(&early->round, early->recording, max_rows, &done, err))
		return false;
	if (done) {
		deinit_round(&early->round);
		early->found = false;
	}
	return true;
}

/* At once: those of the kernel are read whole, however few are needed. */
static void look_for_kernel(struct sf_early_names *early)
{
	for (; early->n_seen < sf_images_count(early->images); early->n_seen++) {
		if (sf_images_get(early->images, early->n_seen + 1)->is_kernel)
			begin_kernel_names(&early->sources->kernel);
	}
}

bool sf_early_names_tick(struct sf_early_names *early, uint64_t now_ns, struct sf_error *err)
{
	if (early->running && atomic_load_explicit(&early->done, memory_order_acquire))
		end_thread(early);
	if (early->found)
		return write_found(early, WAITING_ROWS, err);
	if (early->round.images.n)
		return true;
	look_for_kernel(early);
	return !is_due(early, now_ns) || begin_round(early, now_ns, err);
}

bool sf_early_names_close(struct sf_early_names *early, struct sf_error *err)
{
	bool fine = true;

	if (!early)
		return true;
	if (early->running)
		end_thread(early);
	else if (early->round.images.n && !early->found)
		look_up_round(&early->round, early->sources);
	if (early->round.images.n)
		fine = write_found(early, SIZE_MAX, err);
	deinit_round(&early->round);
	free(early);
	return fine;
}

/* --- at the end --- */

bool sf_session_name_all(struct sf_recording *recording, struct sf_images *images, struct sf_name_sources *sources,
			 struct sf_error *err)
{
	struct round round = { 0 };
	bool fine = take_round(&round, recording, images, true, err), done;
	const char *note;

	if (fine)
		look_up_round(&round, sources);
	fine = fine && put_round(&round, recording, SIZE_MAX, &done, err);
	deinit_round(&round);
	note = fine ? sf_lookup_note(&sources->lookup) : NULL;
	return fine && (!note || sf_recording_note(recording, 0, note, err));
}
