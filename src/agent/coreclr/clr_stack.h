/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack of one thread by DoStackSnapshot, in two steps. Inside a suspension the stack is captured: the runtime's callback
 * copies numbers, and then the native frames that the runtime leaves out are walked, since their memory changes when the
 * threads run again. After the suspension the pieces become one trace.
 *
 * On the sampler's thread only. Nothing here allocates or takes a lock.
 */
#ifndef SF_AGENT_CLR_STACK_H
#define SF_AGENT_CLR_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/coreclr/clr_info.h"
#include "frozen/signal/workspace.h"

#define SF_CLR_N_REGS 8

/* A callback of DoStackSnapshot. */
struct sf_clr_captured {
	uint64_t function;           /* FunctionID; 0: native frames, walked from these registers */
	uint64_t ip;
	uint64_t sp;
	uint64_t regs[SF_CLR_N_REGS]; /* in the order of clr_stack.c; 0 for managed frames */
	uint32_t first, n;           /* native frames, in the frames of the pool */
	uint8_t  end;                /* of these: enum sf_end */
};

/* Room for the stacks of one suspension, made beforehand. */
struct sf_clr_pool {
	struct sf_clr_captured *captured;
	struct sf_frame *frames;     /* native frames, and whole stacks of our own walk */
	uint32_t n_captured, n_frames;
	uint32_t captured_capacity, frames_capacity;
};

/* A stack of one thread in the pool. */
struct sf_clr_stack {
	int32_t  result;             /* HRESULT of DoStackSnapshot */
	bool     is_full;            /* the pool was */
	uint32_t first, n;           /* captured, innermost first */
	uint32_t own, n_own;         /* frames of our own walk at the same moment; 0: there is none */
	uint8_t  own_end;            /* its end: enum sf_end */
	uint32_t n_own_cut;          /* of the own frames: the innermost, which are the suspension's; set by sf_clr_stack_join */
};

/* By mmap. False: no memory. */
bool sf_clr_pool_init(struct sf_clr_pool *pool);
void sf_clr_pool_deinit(struct sf_clr_pool *pool);

/*
 * Captures the stack of a thread while the runtime is suspended. `thread` is its ThreadID, `tid` its id for the kernel. Our own
 * walk is made where the thread sleeps. It has the frames above the innermost one that the runtime reports.
 */
void sf_clr_stack_capture(struct sf_clr_pool *pool, struct sf_clr_info *info, struct sf_workspace *workspace,
			  const struct sf_code_map *map, uintptr_t thread, int32_t tid, struct sf_clr_stack *ret);

/*
 * Makes the captured stack the workspace's trace. The innermost frames are left out where they are those of the suspension:
 * methods that serve it, native frames in the runtime's own image (`code_image`), and its signal handler.
 */
void sf_clr_stack_join(const struct sf_clr_pool *pool, struct sf_clr_info *info, const struct sf_code_map *map,
		       uint32_t code_image, struct sf_clr_stack *stack, struct sf_workspace *workspace);
/* Makes our own walk the workspace's trace, after sf_clr_stack_join: without the frames of the suspension, too. */
void sf_clr_stack_own(const struct sf_clr_pool *pool, const struct sf_clr_stack *stack, struct sf_workspace *workspace);

#endif
