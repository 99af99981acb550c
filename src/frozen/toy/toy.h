/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A runtime for tests only (tests/programs/toy_vm.c): a bytecode interpreter whose frames of the interpreted
 * program lie between native ones. It shows that the interface for runtimes is complete (frozen/runtime.h), and
 * is part of a build with -Dtest_runtime=true.
 *
 * The structs are the program's own, as they lie in its memory.
 */
#ifndef SF_FROZEN_TOY_H
#define SF_FROZEN_TOY_H

#include <stdint.h>

#include "frozen/unwind/code_map.h"

#define SF_TOY_MAGIC UINT64_C(0x31794f54734f4653)

/* The symbol sf_toy_vm of the program. */
struct sf_toy_vm {
	uint64_t magic;
	uint64_t enter, enter_end;      /* the code whose frames are those of methods */
	uint64_t threads, n_threads;    /* struct sf_toy_thread */
	uint64_t copy;                  /* of the code at `enter`, at another address from time to time; 0: none */
};

struct sf_toy_thread {
	uint64_t tid;                   /* 0: none */
	uint64_t top;                   /* address of the innermost frame's index; 0: no frame */
	char name[32];
};

struct sf_toy_method {
	uint64_t name, file;            /* strings */
	uint64_t first_line;            /* of the bytecode with index 0; one line for each */
	uint64_t code;
};

/*
 * The code at `enter`. Its frame, from the stack pointer at the call upwards: padding, the index of the bytecode, the
 * method, the return address. No frame pointer, no unwind rules.
 */
enum {
	SF_TOY_PUSHED_METHOD = 1,       /* offsets from `enter`: from here on this is on the stack */
	SF_TOY_PUSHED_INDEX = 3,
	SF_TOY_PUSHED_PADDING = 10,
	SF_TOY_RETURN = 15,             /* where the interpreter's loop returns to */
	SF_TOY_POPPED = 19,             /* only the return address is left */
	SF_TOY_SIZE = 20,
};

struct sf_toy {
	struct sf_runtime runtime;      /* first */
	struct sf_region codes[2];      /* the code at `enter`, and its copy; no copy: empty */
};

extern const struct sf_runtime_ops sf_toy_ops;

#endif
