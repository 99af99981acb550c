/* SPDX-License-Identifier: Apache-2.0 */
/* Captures stacks by DoStackSnapshot, fills the native frames, and joins both. */
#include "agent/coreclr/clr_stack.h"

#include <string.h>
#include <sys/mman.h>

#include "agent/coreclr/clr_method_names.h"
#include "agent/libc/fork_memory.h"
#include "agent/libc/own_proc.h"
#include "frozen/coreclr/coreclr.h"
#include "frozen/memory/hash.h"
#include "frozen/signal/handler.h"

#define N_CAPTURED 32768u
#define N_FRAMES 65536u              /* 64 for each thread of a round */

#define REGISTER_CONTEXT 1u          /* COR_PRF_SNAPSHOT_REGISTER_CONTEXT */

/* CONTEXT of the runtime for x86-64, which is Windows' (CoreCLR: pal/inc/pal.h). */
#define CONTEXT_SP 0x98u
#define CONTEXT_PC 0xf8u
#define CONTEXT_SIZE 0x100u          /* as far as it is read */

/* `reg` as DWARF numbers them. */
static const struct {
	uint16_t at;
	uint8_t reg;
} context_regs[SF_CLR_N_REGS] = {
	{ 0x90, 3 }, { CONTEXT_SP, 7 }, { 0xa0, 6 }, { 0xd8, 12 }, { 0xe0, 13 }, { 0xe8, 14 }, { 0xf0, 15 },
	{ CONTEXT_PC, 16 },
};

#define PC_REG 16

/* --- memory --- */

bool sf_clr_pool_init(struct sf_clr_pool *pool)
{
	*pool = (struct sf_clr_pool){
		.captured = sf_map_own(N_CAPTURED * sizeof(*pool->captured), SF_WIPED),
		.frames = sf_map_own(N_FRAMES * sizeof(*pool->frames), SF_WIPED),
		.captured_capacity = N_CAPTURED,
		.frames_capacity = N_FRAMES,
	};
	if (pool->captured && pool->frames)
		return true;
	sf_clr_pool_deinit(pool);
	return false;
}

void sf_clr_pool_deinit(struct sf_clr_pool *pool)
{
	if (pool->captured)
		munmap(pool->captured, N_CAPTURED * sizeof(*pool->captured));
	if (pool->frames)
		munmap(pool->frames, N_FRAMES * sizeof(*pool->frames));
	*pool = (struct sf_clr_pool){ 0 };
}

/* --- the runtime's walk --- */

struct capture {
	struct sf_clr_pool *pool;
	struct sf_clr_stack *stack;
};

static uint64_t word_at(const uint8_t *context, uint32_t offset)
{
	uint64_t word;

	memcpy(&word, context + offset, sizeof(word));
	return word;
}

/* The runtime's callback for one frame. It copies numbers only: a thread in native code may own any lock of the process. */
static int32_t copy_frame(uintptr_t function, uintptr_t ip, uintptr_t frame_info, uint32_t context_size,
			  const uint8_t *context, void *arg)
{
	const struct capture *capture = arg;
	struct sf_clr_pool *pool = capture->pool;
	struct sf_clr_captured *to;

	(void)frame_info;
	if (pool->n_captured == pool->captured_capacity) {
		capture->stack->is_full = true;
		return SF_CLR_E_FAIL;
	}
	to = &pool->captured[pool->n_captured++];
	*to = (struct sf_clr_captured){ .function = function, .ip = ip, .end = SF_END_RUNTIME };
	if (!context || context_size < CONTEXT_SIZE)
		return SF_CLR_OK;
	to->sp = word_at(context, CONTEXT_SP);
	for (unsigned i = 0; !function && i < SF_CLR_N_REGS; i++)
		to->regs[i] = word_at(context, context_regs[i].at);
	return SF_CLR_OK;
}

static void snapshot(struct sf_clr_pool *pool, struct sf_clr_info *info, uintptr_t thread, struct sf_clr_stack *stack)
{
	struct capture capture = { pool, stack };

	stack->first = pool->n_captured;
	stack->result = sf_clr_snapshot(info, thread, copy_frame, REGISTER_CONTEXT, &capture, NULL, 0);
	stack->n = pool->n_captured - stack->first;
}

/* --- native frames --- */

/* The still for all walks of one thread in a suspension, without its registers. */
static void prepare(struct sf_workspace *workspace, const struct sf_code_map *map, int32_t tid)
{
	struct sf_still *still = &workspace->still;

	*still = (struct sf_still){
		.arch = sf_handler.config.arch,
		.map = map,
		.pid = sf_handler.config.pid,
		.tid = tid,
		.state = SF_STATE_BLOCKED,
		.syscall = SF_SYSCALL_NONE,
		.flags = SF_STILL_UNHELD,
	};
}

/* The trace's frames into the pool. */
static void keep_frames(struct sf_clr_pool *pool, const struct sf_trace *trace, struct sf_clr_stack *stack,
			uint32_t *first_ret, uint32_t *n_ret)
{
	stack->is_full |= trace->n_frames > pool->frames_capacity - pool->n_frames;
	if (stack->is_full)
		return;
	memcpy(pool->frames + pool->n_frames, trace->frames, trace->n_frames * sizeof(*trace->frames));
	*first_ret = pool->n_frames;
	*n_ret = trace->n_frames;
	pool->n_frames += trace->n_frames;
}

/* The frame that the runtime has reported. The rules of a call are those of the byte before its return address. */
static void make_return_address(struct sf_frame *frame)
{
	frame->pc++;
	frame->address++;
	frame->flags &= (uint8_t)~SF_FRAME_EXACT;
	frame->via = SF_VIA_AGCT;
}

/* Native frames that called managed code, up to the next managed frame or the thread's first one. */
static void fill_hole(struct sf_clr_pool *pool, struct sf_workspace *workspace, struct sf_clr_stack *stack,
		      struct sf_clr_captured *hole)
{
	struct sf_still *still = &workspace->still;

	memset(&still->regs, 0, sizeof(still->regs));
	for (unsigned i = 0; i < SF_CLR_N_REGS; i++) {
		if (context_regs[i].reg == PC_REG)
			still->regs.pc = hole->regs[i] - 1;
		else
			sf_reg_set(&still->regs, context_regs[i].reg, hole->regs[i]);
	}
	still->flags |= SF_STILL_TO_RUNTIME;
	hole->end = (uint8_t)sf_workspace_walk(workspace, still);
	if (workspace->trace.n_frames)
		make_return_address(&workspace->trace.frames[0]);
	keep_frames(pool, &workspace->trace, stack, &hole->first, &hole->n);
}

static void fill_holes(struct sf_clr_pool *pool, struct sf_workspace *workspace, struct sf_clr_stack *stack)
{
	for (uint32_t i = 0; i < stack->n; i++) {
		struct sf_clr_captured *captured = &pool->captured[stack->first + i];

		if (!captured->function && captured->regs[SF_CLR_N_REGS - 1])
			fill_hole(pool, workspace, stack, captured);
	}
}

/* Where the thread sleeps. False: it does not, or is about to. */
static bool find_place(struct sf_still *still, int32_t tid)
{
	struct sf_own_place place;

	if (!sf_own_place(tid, &place) || place.awake || !place.pc)
		return false;
	memset(&still->regs, 0, sizeof(still->regs));
	still->regs.pc = place.pc;
	still->syscall = place.syscall;
	sf_reg_set(&still->regs, still->arch->sp, place.sp);
	for (int i = 0; place.syscall >= 0 && i < 6; i++)
		sf_reg_set(&still->regs, still->arch->syscall_args[i], place.args[i]);
	memcpy(still->syscall_args, place.args, sizeof(place.args));
	return true;
}

/* Our own walk of the same thread at the same moment. */
static void walk_too(struct sf_clr_pool *pool, struct sf_workspace *workspace, int32_t tid, struct sf_clr_stack *stack)
{
	const struct sf_thread_entry *entry = sf_thread_table_find(sf_handler.link.entries, tid);
	struct sf_still *still = &workspace->still;

	still->flags &= ~(uint32_t)SF_STILL_TO_RUNTIME;
	if (!find_place(still, tid))
		return;
	stack->own_end = (uint8_t)sf_handler_walk(&sf_handler.code, workspace, still, entry);
	keep_frames(pool, &workspace->trace, stack, &stack->own, &stack->n_own);
}

void sf_clr_stack_capture(struct sf_clr_pool *pool, struct sf_clr_info *info, struct sf_workspace *workspace,
			  const struct sf_code_map *map, uintptr_t thread, int32_t tid, struct sf_clr_stack *ret)
{
	*ret = (struct sf_clr_stack){ 0 };
	snapshot(pool, info, thread, ret);
	if (ret->result < 0)
		return;
	prepare(workspace, map, tid);
	fill_holes(pool, workspace, ret);
	walk_too(pool, workspace, tid, ret);
}

/* --- the runtime's own frames of a suspension: methods of the class library in which managed code polls for it, and stops --- */

#define N_KNOWN 4096u                /* 2 to the power of 12: the bits of the hash */
#define WINDOW 8u

/* To add one: a line. CoreCLR: System.Private.CoreLib, Thread.CoreCLR.cs. */
static const struct {
	const char *type, *part;     /* the whole name of the type; a part of the method's name */
} methods[] = {
	{ "System.Threading.Thread", "PollGC" },
};

/* A function that is freed leaves its place to another one, which cannot be of the class library: none of those is freed. */
static struct {
	uint64_t function;           /* 0: free */
	bool serves;
} known[N_KNOWN];

static bool look_up(struct sf_clr_info *info, uint64_t function)
{
	struct sf_clr_method_names names;
	bool serves = false;

	if (!sf_clr_read_method_names(info, function, &names))
		return false;
	for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++)
		serves |= strcmp(names.type, methods[i].type) == 0 && strstr(names.method, methods[i].part);
	return serves;
}

/* Whether this method serves a suspension only. Its name is read once for each method, while the runtime is not suspended. */
static bool serves_suspension(struct sf_clr_info *info, uint64_t function)
{
	const uint64_t first = sf_hash(function, 12);

	for (unsigned i = 0; i < WINDOW; i++) {
		const size_t at = (first + i) % N_KNOWN;

		if (known[at].function == function)
			return known[at].serves;
		if (known[at].function && i + 1 < WINDOW)
			continue;
		known[at].serves = look_up(info, function);
		known[at].function = function;
		return known[at].serves;
	}
	return false;
}

/* --- one trace --- */

static bool read_self(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size)
{
	return sf_own_memory_read(reader->arg, ret, addr, size) == size;
}

/* False: there is no room. */
static bool add_frames(struct sf_trace *trace, const struct sf_frame *frames, uint32_t n)
{
	if (n > trace->capacity - trace->n_frames)
		return false;
	memcpy(trace->frames + trace->n_frames, frames, n * sizeof(*frames));
	trace->n_frames += n;
	return true;
}

static bool add_managed(struct sf_trace *trace, const struct sf_coreclr *coreclr, const struct sf_clr_captured *captured,
			bool exact)
{
	const struct sf_reader memory = { .read = read_self, .arg = &sf_handler.code.memory };
	struct sf_frame frame = {
		.pc = captured->ip, .address = captured->ip, .sp = captured->sp, .via = SF_VIA_AGCT, .bci = -1,
		.flags = exact ? SF_FRAME_EXACT : 0,
	};

	if (!coreclr || !sf_clr_key_frame(coreclr, &memory, &frame))
		sf_handler_note_stale_map(&sf_handler);
	return add_frames(trace, &frame, 1);
}

/* The captured frames of the suspension, which are the innermost ones. */
static uint32_t n_of_suspension(const struct sf_clr_pool *pool, struct sf_clr_info *info, const struct sf_clr_stack *stack)
{
	uint32_t n = 0;

	while (n < stack->n && pool->captured[stack->first + n].function &&
	       serves_suspension(info, pool->captured[stack->first + n].function))
		n++;
	return n;
}

/* A stack that the runtime says is whole ends with native frames down to the thread's first one. */
static enum sf_end end_of(const struct sf_clr_pool *pool, const struct sf_clr_stack *stack)
{
	const struct sf_clr_captured *last = stack->n ? &pool->captured[stack->first + stack->n - 1] : NULL;

	return last && !last->function ? (enum sf_end)last->end : SF_END_RUNTIME;
}

/* The place of this frame among those of our own walk, from `i` on; their number: it is not there. */
static uint32_t find_own(const struct sf_clr_pool *pool, const struct sf_clr_stack *stack,
			 const struct sf_clr_captured *captured, uint32_t i)
{
	const struct sf_frame *own = pool->frames + stack->own;

	while (i < stack->n_own && !(own[i].pc == captured->ip && own[i].sp == captured->sp))
		i++;
	return i;
}

/*
 * Whether the thread stands at this frame's instruction, and has not called in front of it: where the runtime stopped it by a
 * signal, or a fault did. The runtime does not say which it is. Our own walk does, whose frames are searched from *from on.
 */
static bool is_exact(const struct sf_clr_pool *pool, const struct sf_clr_stack *stack, const struct sf_clr_captured *captured,
		     uint32_t *from)
{
	const uint32_t n = find_own(pool, stack, captured, *from);

	if (n == stack->n_own)
		return false;
	*from = n + 1;
	return pool->frames[stack->own + n].flags & SF_FRAME_EXACT;
}

/*
 * Of the own frames above a managed one: the innermost, where the runtime keeps the thread. These are in the runtime's
 * image, or in the handler of the signal by which the runtime stops threads. Code of no file is managed, and newer than
 * the code map.
 */
static uint32_t n_kept_by_runtime(const struct sf_frame *own, uint32_t n, uint32_t code_image)
{
	uint32_t i = 0;

	while (i < n && !sf_kind_is_managed(own[i].kind) && own[i].image)
		i++;
	return i && (own[i - 1].image == code_image || (i < n && own[i].via == SF_VIA_SIGNAL)) ? i : 0;
}

/* Frames above the innermost one that the runtime reports: native ones, and methods that are being entered from these. */
static bool add_top(struct sf_trace *trace, const struct sf_clr_pool *pool, const struct sf_clr_captured *innermost,
		    uint32_t n_cut, uint32_t code_image, struct sf_clr_stack *stack)
{
	const struct sf_frame *own = pool->frames + stack->own;
	const uint32_t n = find_own(pool, stack, innermost, 0);

	if (n == stack->n_own)
		return true;
	stack->n_own_cut = n_cut ? n : n_kept_by_runtime(own, n + 1, code_image);
	return add_frames(trace, own + stack->n_own_cut, n - stack->n_own_cut);
}

void sf_clr_stack_join(const struct sf_clr_pool *pool, struct sf_clr_info *info, const struct sf_code_map *map,
		       uint32_t code_image, struct sf_clr_stack *stack, struct sf_workspace *workspace)
{
	const struct sf_coreclr *coreclr = sf_coreclr_of(map);
	const uint32_t n_cut = n_of_suspension(pool, info, stack);
	struct sf_trace *trace = &workspace->trace;
	uint32_t from = 0;
	bool fits = true;

	trace->n_frames = 0;
	trace->by_zero = trace->off_map = false;
	if (n_cut < stack->n)
		fits = add_top(trace, pool, &pool->captured[stack->first + n_cut], n_cut, code_image, stack);
	for (uint32_t i = n_cut; fits && i < stack->n; i++) {
		const struct sf_clr_captured *captured = &pool->captured[stack->first + i];

		fits = captured->function ? add_managed(trace, coreclr, captured, is_exact(pool, stack, captured, &from)) :
					    add_frames(trace, pool->frames + captured->first, captured->n);
	}
	trace->end = fits ? end_of(pool, stack) : SF_END_DEPTH;
}

void sf_clr_stack_own(const struct sf_clr_pool *pool, const struct sf_clr_stack *stack, struct sf_workspace *workspace)
{
	workspace->trace.n_frames = 0;
	workspace->trace.by_zero = workspace->trace.off_map = false;
	add_frames(&workspace->trace, pool->frames + stack->own + stack->n_own_cut, stack->n_own - stack->n_own_cut);
	workspace->trace.end = (enum sf_end)stack->own_end;
}
