/* SPDX-License-Identifier: Apache-2.0 */
/* The engines that there are, and the decisions that need all of them: the choice of one, and which options are for which. */
#ifndef SF_CAPTURE_CHOICE_ENGINES_H
#define SF_CAPTURE_CHOICE_ENGINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/engine.h"

/* All engines, best first, NULL at the end; and the one with this name, or NULL. */
extern const struct sf_engine *const sf_engines[];
const struct sf_engine *sf_engine_by_name(const char *name);

/* The engine that takes the words of runtimes (options.runtime). */
const struct sf_engine *sf_engine_of_runtimes(void);

/*
 * The engine for these processes; options->child waits before it runs its program. Returns `named` if it is not NULL
 * and works, else the best that works and is not limited here, else a limited one. NULL and err: none. *passed has the
 * reason for which a better engine does not work here, and what would help; without a text: there is none, or one was
 * named.
 */
const struct sf_engine *sf_engine_choose(const struct sf_engine *named, const struct sf_capture_options *options,
					 struct sf_error *passed, struct sf_error *err);

/*
 * The engine that dumps this process: `named`; or, if that is NULL, the first one that holds no thread that does not
 * run. Where none of these can, *passed has the reason, and the engine is the first that can. NULL: none can, and err
 * has the reason of the best one.
 */
const struct sf_engine *sf_engine_for_dump(const struct sf_engine *named, int32_t pid, struct sf_error *passed,
					   struct sf_error *err);

/* The options of all engines, each name once: fills ret, returns how many. */
size_t sf_engine_options(const struct sf_option *ret[SF_MAX_SETTINGS]);

/*
 * Whether the given settings go together and are for the engine that was named. NULL: none was; then only those of
 * the best engine are accepted.
 */
bool sf_engine_check_settings(const struct sf_engine *named, const struct sf_setting *settings,
			      struct sf_error *err);

#endif
