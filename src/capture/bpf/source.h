/* SPDX-License-Identifier: Apache-2.0 */
/* The source of saved registers (capture/ptrace/saved.h) that asks the BPF program. */
#ifndef SF_CAPTURE_BPF_SOURCE_H
#define SF_CAPTURE_BPF_SOURCE_H

#include "base/error.h"
#include "capture/ptrace/saved.h"

/* NULL: it cannot be had here, and err says why and what would help. */
const struct sf_saved_source *sf_bpf_source_open(struct sf_error *err);
void sf_bpf_source_close(const struct sf_saved_source *source); /* NULL: nothing */

#endif
