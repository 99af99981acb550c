/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads a profile from a file: the file's tables (tables.c) become growing arrays, and these the profile's.
 *
 * The file is hostile. SQLite is configured for this (no triggers, no views, nothing of the file's schema is
 * trusted, short limits), and the file's schema must be ours to the letter.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "base/search.h"
#include "recording/profile/loader.h"
#include "recording/store/database.h"
#include "recording/store/one_file.h"
#include "recording/store/schema.h"

SF_DEFINE_CLEANUP(struct sf_profile *, sf_profile_destroy)

/*
 * --- what no sample stands for ---
 *
 * CPU time, and events, that the kernel counted and that no sample stands for. Each loss with such becomes a sample of
 * its thread, marked `unseen`, whose stack is the one frame SF_UNSEEN_NAME. So the weights of a profile add up to what
 * was counted in every view and export, shares are shares of that, and what was not seen is a row of its own.
 */

static uint32_t unseen_node(struct sf_loader *loader)
{
	const struct sf_profile_function form = { .name = sf_loader_string(loader, SF_UNSEEN_NAME), .kind = SF_KIND_CUT };
	const uint32_t function = form.name == UINT32_MAX ? 0 : sf_loader_function(loader, &form);
	const struct sf_profile_frame frame = { .function = function, .kind = SF_KIND_CUT };
	const struct sf_profile_node node = { .frame = (uint32_t)loader->frames.n };

	if (!function || !sf_vec_push(&loader->frames, frame) || !sf_vec_push(&loader->nodes, node))
		return 0;
	return (uint32_t)loader->nodes.n - 1;
}

/* Threads that came and went are in no row of the file. Their CPU time is that of one more thread, of no known process. */
static bool add_unknown_thread(struct sf_loader *loader, uint32_t *ret)
{
	const struct sf_profile_thread thread = {
		.name = sf_loader_string(loader, SF_UNSEEN_NAME),
		.end_ns = loader->profile->duration_ns,
	};

	*ret = (uint32_t)loader->threads.n;
	return thread.name != UINT32_MAX && sf_vec_push(&loader->threads, thread);
}

static bool add_unseen(struct sf_loader *loader, const struct sf_profile_loss *loss, uint32_t node, uint32_t *unknown)
{
	struct sf_profile_sample sample = {
		.thread = loss->thread,
		.node = node,
		.cpu_ns = loss->cpu_ns,
		.wall_ns = loss->cpu_ns,
		.amount = loss->amount,
		.state = SF_STATE_RUNNING,
		.end = SF_END_EMPTY,
		.syscall = SF_SYSCALL_NONE,
		.unseen = true,
	};

	if (sample.thread == UINT32_MAX) {
		if (*unknown == UINT32_MAX && !add_unknown_thread(loader, unknown))
			return false;
		sample.thread = *unknown;
	}
	sample.time_ns = loader->threads.items[sample.thread].end_ns;
	return sf_vec_push(&loader->samples, sample);
}

static bool add_all_unseen(struct sf_loader *loader, struct sf_error *err)
{
	uint32_t node = 0, unknown = UINT32_MAX;

	for (size_t i = 0; i < loader->losses.n; i++) {
		const struct sf_profile_loss *loss = &loader->losses.items[i];

		if (!loss->cpu_ns && !loss->amount)
			continue;
		if (!node && !(node = unseen_node(loader)))
			return sf_fail_memory(err);
		if (!add_unseen(loader, loss, node, &unknown))
			return sf_fail_memory(err);
	}
	return true;
}

/* --- from the loader to the profile --- */

static int compare_samples(const void *left, const void *right)
{
	const struct sf_profile_sample *a = left, *b = right;

	return a->time_ns != b->time_ns ? sf_order(a->time_ns, b->time_ns) : sf_order(a->thread, b->thread);
}

/* The samples are nearly in order: several threads' samples arrive in turns. */
static void sort_samples(struct sf_profile *profile)
{
	for (size_t i = 1; i < profile->n_samples; i++) {
		if (profile->samples[i].time_ns < profile->samples[i - 1].time_ns) {
			qsort(profile->samples, profile->n_samples, sizeof(*profile->samples),
			      compare_samples);
			return;
		}
	}
}

/* All strings live in one block, which starts with the empty one: see sf_profile_destroy. */
static bool hand_over_strings(struct sf_loader *loader, struct sf_error *err)
{
	struct sf_profile *profile = loader->profile;
	uint32_t n = sf_intern_count(loader->strings);
	size_t total = 1, size;
	char *block;

	for (uint32_t i = 1; i <= n; i++) {
		sf_intern_get(loader->strings, i, &size);
		total += size + 1;
	}
	profile->strings = calloc((size_t)n + 1, sizeof(*profile->strings));
	block = malloc(total);
	if (!profile->strings || !block) {
		free(block);
		return sf_fail_memory(err);
	}
	profile->strings[0] = block;
	profile->n_strings = n + 1;
	*block++ = 0;
	for (uint32_t i = 1; i <= n; i++) {
		const char *text = sf_intern_get(loader->strings, i, &size);

		profile->strings[i] = memcpy(block, text, size + 1);
		block += size + 1;
	}
	return true;
}

static bool hand_over_functions(struct sf_loader *loader, struct sf_error *err)
{
	struct sf_profile *profile = loader->profile;
	uint32_t n = sf_intern_count(loader->functions);

	profile->functions = calloc((size_t)n + 1, sizeof(*profile->functions));
	if (!profile->functions)
		return sf_fail_memory(err);
	profile->n_functions = n + 1;
	for (uint32_t i = 1; i <= n; i++)
		memcpy(&profile->functions[i], sf_intern_get(loader->functions, i, NULL), sizeof(*profile->functions));
	return true;
}

/* An array of the loader becomes the profile's. */
#define HAND_OVER(loader, name)                                                                    \
	do {                                                                                       \
		(loader)->profile->n_##name = (__typeof__((loader)->profile->n_##name))            \
						      (loader)->name.n;                            \
		(loader)->profile->name = sf_steal(&(loader)->name.items);                         \
	} while (0)

static bool hand_over(struct sf_loader *loader, struct sf_error *err)
{
	if (!hand_over_strings(loader, err) || !hand_over_functions(loader, err))
		return false;
	HAND_OVER(loader, frames);
	HAND_OVER(loader, nodes);
	HAND_OVER(loader, modules);
	HAND_OVER(loader, threads);
	HAND_OVER(loader, labels);
	for (size_t i = 0; i < loader->extra_notes.n; i++) {
		if (!sf_vec_push(&loader->notes, loader->extra_notes.items[i]))
			return sf_fail_memory(err);
	}
	HAND_OVER(loader, notes);
	HAND_OVER(loader, samples);
	HAND_OVER(loader, losses);
	HAND_OVER(loader, holds);
	sort_samples(loader->profile);
	return true;
}

static void free_loader(struct sf_loader *loader)
{
	sf_intern_destroy(loader->strings);
	sf_intern_destroy(loader->functions);
	sf_vec_deinit(&loader->named);
	sf_vec_deinit(&loader->module_ids);
	sf_vec_deinit(&loader->processes);
	sf_vec_deinit(&loader->raw_frames);
	sf_vec_deinit(&loader->raw_functions);
	sf_vec_deinit(&loader->node_of);
	sf_vec_deinit(&loader->frames);
	sf_vec_deinit(&loader->nodes);
	sf_vec_deinit(&loader->modules);
	sf_vec_deinit(&loader->threads);
	sf_vec_deinit(&loader->labels);
	sf_vec_deinit(&loader->notes);
	sf_vec_deinit(&loader->extra_notes);
	sf_vec_deinit(&loader->samples);
	sf_vec_deinit(&loader->losses);
	sf_vec_deinit(&loader->holds);
}

/* Says so where the file is cut short. */
static bool note_missing(struct sf_loader *loader)
{
	struct sf_profile_note note = { 0 };
	uint64_t there, promised;
	char text[160];

	if (!sf_one_file_is_cut(loader->db, &there, &promised))
		return true;
	loader->profile->bytes_missing = true;
	snprintf(text, sizeof(text), "of the file's %llu bytes only %llu are there: samples, names and losses that were in the "
		 "rest are missing", (unsigned long long)promised, (unsigned long long)there);
	note.text = sf_loader_string(loader, text);
	return note.text != UINT32_MAX && sf_vec_push(&loader->extra_notes, note);
}

static bool load(sqlite3 *db, const char *path, const struct sf_load_options *options,
		 struct sf_profile *profile, struct sf_error *err)
{
	struct sf_loader loader = { .path = path, .db = db, .profile = profile };
	bool done;

	if (!sf_schema_check(db, path, err))
		return false;
	if (options)
		loader.options = *options;
	loader.strings = sf_intern_create();
	loader.functions = sf_intern_create();
	if (loader.strings && loader.functions && sf_vec_push(&loader.nodes, (struct sf_profile_node){ 0 }) &&
	    note_missing(&loader))
		done = sf_loader_read_tables(&loader, err) && add_all_unseen(&loader, err) && hand_over(&loader, err);
	else
		done = sf_fail_memory(err);
	free_loader(&loader);
	return done;
}

/* Its writer holds a flock for as long as it lives. */
static bool has_writer(int fd)
{
	if (flock(fd, LOCK_SH | LOCK_NB) != 0)
		return errno == EWOULDBLOCK;
	flock(fd, LOCK_UN);
	return false;
}

bool sf_profile_load(const char *path, const struct sf_load_options *options, struct sf_profile **ret,
		     struct sf_error *err)
{
	SF_CLEANUP(sf_profile_destroy) struct sf_profile *profile = calloc(1, sizeof(*profile));
	SF_CLEANUP(sqlite3_close) sqlite3 *db = NULL;

	if (!profile)
		return sf_fail_memory(err);
	if (!sf_database_open_hostile(path, &db, err))
		return false;
	profile->being_written = has_writer(sf_one_file_fd(db));
	if (!load(db, path, options, profile, err))
		return false;
	*ret = sf_steal(&profile);
	return true;
}
