/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's walk over threads, with the BPF program of threads.bpf.c. Nothing is stopped or woken, and the kernel
 * reads no memory of a process.
 *
 * Needs Linux 5.18, the kernel's description of its types (BTF), CAP_BPF and CAP_PERFMON. Where the program was built
 * without it, or on another architecture than x86-64, sf_bpf_load() says so.
 */
#ifndef SF_CAPTURE_BPF_ITERATOR_H
#define SF_CAPTURE_BPF_ITERATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "capture/bpf/row.h"

struct sf_bpf_rows {
	SF_VEC(struct sf_bpf_row) all;   /* by tid */
};

/* Whether stillframe has the program. */
bool sf_bpf_is_built(void);

/*
 * A descriptor of the program, which is loaded once: that takes milliseconds. The caller closes it. Below 0: it cannot
 * be had here, and err says why and what would help.
 */
int sf_bpf_load(struct sf_error *err);

/* Asks for all threads of a process, or for one thread (pid 0). False: no memory, or the kernel refuses: there are no rows. */
bool sf_bpf_read(int program, int32_t pid, int32_t tid, struct sf_bpf_rows *ret);

/* NULL: there is none. */
const struct sf_bpf_row *sf_bpf_find(const struct sf_bpf_rows *rows, int32_t tid);

#endif
