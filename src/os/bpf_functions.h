/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of the BPF programs in the kernel, as the processor runs them. Not those of seccomp's and sockets' classic
 * filters.
 */
#ifndef SF_OS_BPF_FUNCTIONS_H
#define SF_OS_BPF_FUNCTIONS_H

#include <stdint.h>

#include "base/vec.h"

struct sf_bpf_function {
	uint64_t start, size;
};

struct sf_bpf_functions {
	SF_VEC(struct sf_bpf_function) items; /* by start */
};

/* Those that this user may see (CAP_SYS_ADMIN, and addresses as in kernel_symbols.h); perhaps not all. Zeroed memory to begin. */
void sf_bpf_functions_load(struct sf_bpf_functions *functions);
void sf_bpf_functions_deinit(struct sf_bpf_functions *functions);

/* Where the function that starts here ends; 0: it is not known. */
uint64_t sf_bpf_functions_end(const struct sf_bpf_functions *functions, uint64_t start);

#endif
