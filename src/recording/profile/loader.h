/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profile while it is being loaded: growing arrays, and the maps from a file's numbers to a
 * profile's. tables.c reads the tables. loader.c turns frames with their inlined functions into frames
 * and nodes of the profile. load.c opens the file, owns the loader, and moves the finished arrays to the
 * profile. Private to src/recording.
 */
#ifndef SF_RECORDING_PROFILE_LOADER_H
#define SF_RECORDING_PROFILE_LOADER_H

#include "base/intern.h"
#include "base/vec.h"
#include "recording/profile/profile.h"
#include "recording/profile/rows.h"

/* A row of `frames`, and which functions it has: raw_functions [first, first + n). */
struct sf_raw_frame {
	uint64_t address;
	uint32_t module;     /* index + 1, or 0 */
	uint32_t label;      /* string */
	uint8_t kind, via;
	uint32_t first, n;
	uint32_t expanded;   /* the profile's frame of its innermost function; the rest follow */
};

struct sf_raw_function {
	uint32_t function, line;
	bool inlined, approximate;
};

struct sf_raw_process {
	int32_t pid;
	uint32_t name;
};

struct sf_loader {
	const char *path;
	sqlite3 *db;
	struct sf_profile *profile;
	struct sf_load_options options;

	struct sf_intern *strings;   /* the profile's numbers: nothing but "" is 0 */
	struct sf_intern *functions;
	SF_VEC(uint32_t) named;      /* the profile's function for each row of `functions` */
	SF_VEC(int64_t) module_ids;  /* ascending */
	SF_VEC(struct sf_raw_process) processes;
	SF_VEC(struct sf_raw_frame) raw_frames;
	SF_VEC(struct sf_raw_function) raw_functions;
	SF_VEC(uint32_t) node_of;    /* the profile's node for each row of `stacks` */
	int64_t last_sample, last_key;

	SF_VEC(struct sf_profile_frame) frames;
	SF_VEC(struct sf_profile_node) nodes;
	SF_VEC(struct sf_profile_module) modules;
	SF_VEC(struct sf_profile_thread) threads;
	SF_VEC(struct sf_profile_label) labels;
	SF_VEC(struct sf_profile_note) notes;
	SF_VEC(struct sf_profile_sample) samples;
	SF_VEC(struct sf_profile_loss) losses;
	SF_VEC(struct sf_profile_hold) holds;
	uint64_t wall_sum_ns, cpu_sum_ns, amount_sum;
	SF_VEC(struct sf_profile_note) extra_notes; /* of the loader's own */
	bool inlined_left_out;
};

/* The profile's number of a text: 0 for "", UINT32_MAX when memory ran out. */
uint32_t sf_loader_string(struct sf_loader *loader, const char *text);

/* The profile's function with these properties; 0 when memory ran out. */
uint32_t sf_loader_function(struct sf_loader *loader, const struct sf_profile_function *form);

/*
 * The same function as one of this kind of frame. With options.split_kinds the name says which kind that is.
 * 0 when memory ran out.
 */
uint32_t sf_loader_function_of_kind(struct sf_loader *loader, uint32_t function, uint8_t kind, bool inlined);

/* The profile's module (index + 1) with this id; 0: there is none. */
uint32_t sf_loader_module(const struct sf_loader *loader, int64_t id);

/* Reads all tables of the file. False when it is damaged, and which row says so, or no memory. */
bool sf_loader_read_tables(struct sf_loader *loader, struct sf_error *err);

/* Makes the profile's frames out of all raw ones. */
bool sf_loader_expand_frames(struct sf_loader *loader, struct sf_error *err);

/* Adds the nodes of one raw frame on top of `parent`; 0 when memory or numbers ran out. */
uint32_t sf_loader_expand_stack(struct sf_loader *loader, uint32_t parent, uint32_t raw_frame);

/*
 * For a recording that was cut short: has the native frames that have no names named, module by module. Their rows must
 * have been read. The file stays as it is. The namer's side is in profile.h. late_names.c.
 */
bool sf_loader_name_frames(struct sf_loader *loader, const struct sf_profile_namer *namer, struct sf_error *err);

#endif
