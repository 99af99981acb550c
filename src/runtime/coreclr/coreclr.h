/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CoreCLR in a process: finding it, the objects that walks use, and names for the frames that walks find. Ordinary code, one
 * thread at a time.
 */
#ifndef SF_RUNTIME_CORECLR_CORECLR_H
#define SF_RUNTIME_CORECLR_CORECLR_H

#include "runtime/coreclr/range_map.h"
#include "runtime/runtime.h"

#define SF_CLR_EASY_TRIES 50u    /* to attach: a version that is known by a table has code by then */

struct sf_clr;

struct sf_clr *sf_clr_create(uint32_t slot);    /* NULL: no memory */
void sf_clr_destroy(struct sf_clr *clr);

/* Whether the process has CoreCLR, and an attempt to attach may succeed. */
bool sf_clr_look(struct sf_clr *clr, const struct sf_process *process, struct sf_images *images);

/* The object for walks; owned by the caller until sf_clr_object_destroy. NULL: not now, or never. */
struct sf_coreclr *sf_clr_attach(struct sf_clr *clr, const struct sf_process *process, struct sf_images *images,
				 const struct sf_reader *memory);

/* A new object if the ranges have changed; NULL: they have not, or they cannot be read now. */
struct sf_coreclr *sf_clr_refresh(struct sf_clr *clr, const struct sf_process *process,
				  const struct sf_coreclr *present);

const char *sf_clr_news(struct sf_clr *clr);
uint32_t sf_clr_place(struct sf_clr *clr, const struct sf_frame *frame);
uint8_t sf_clr_kind(const struct sf_clr *clr, uint32_t place);
size_t sf_clr_functions(struct sf_clr *clr, uint32_t place, const struct sf_location **ret);
uint64_t sf_clr_thread(struct sf_clr *clr, int32_t tid);
enum sf_naming sf_clr_name_thread(struct sf_clr *clr, int32_t tid, char *ret, size_t size);
bool sf_clr_find_lock_wait(struct sf_clr *clr, int32_t tid, const struct sf_trace *trace, bool timed, struct sf_lock_wait *ret);
const char *sf_clr_find_purpose(struct sf_clr *clr, const struct sf_trace *trace);
uint32_t sf_clr_find_awaiters(struct sf_clr *clr, const struct sf_still *still, const struct sf_trace *trace, struct sf_frame *ret,
			      uint32_t capacity, uint32_t *at_ret);
void sf_clr_examine(const struct sf_clr *clr, const struct sf_runtime_findings *findings);

#endif
