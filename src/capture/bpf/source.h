/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source of saved registers (capture/ptrace/saved.h) that asks the BPF program of threads.bpf.c: the kernel walks over
 * threads, and the program writes a row for each. Nothing is stopped or woken, and the kernel reads no memory of a process.
 *
 * Needs Linux 5.18, the kernel's description of its types (BTF), CAP_BPF and CAP_PERFMON. Where stillframe was built without
 * the program, or for another architecture than x86-64, sf_bpf_load() says so.
 */
#ifndef SF_CAPTURE_BPF_SOURCE_H
#define SF_CAPTURE_BPF_SOURCE_H

#include "base/error.h"
#include "capture/ptrace/saved.h"

/*
 * A descriptor of the program, which is loaded once: that takes milliseconds. The caller closes it. Below 0: it cannot
 * be had here, and err says why and what would help.
 */
int sf_bpf_load(struct sf_error *err);

/* NULL: it cannot be had here, and err says why and what would help. */
const struct sf_saved_source *sf_bpf_source_open(struct sf_error *err);
void sf_bpf_source_close(const struct sf_saved_source *source); /* NULL: nothing */

#endif
