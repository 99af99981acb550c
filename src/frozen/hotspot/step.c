/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HotSpot's functions for the walker, its side of frozen/runtime.h. The stepper for code that HotSpot made steps out of
 * compiled methods and of wrappers of native methods, and back into native code. Signal-safe. Other frames are in these files:
 *
 * - step_interpreter.c: the interpreter;
 *
 * - step_adapter.c: adapters;
 *
 * - step_prologue.c: compiled code where it has no complete frame;
 *
 * - step_routine.c: the virtual machine's own routines;
 *
 * - step_deoptimized.c: frames that are being moved or replaced.
 *
 * step_caller.c has what all of them use.
 */
#include "frozen/hotspot/step.h"

#include "frozen/frozen.h"

_Static_assert(offsetof(struct sf_hotspot, runtime) == 0, "a runtime is the first member");
_Static_assert(sizeof(struct sf_metadata_cache) <= SF_RUNTIME_SCRATCH, "a walk has room for what it takes");
_Static_assert(SF_METADATA_CACHE_BYTES <= SF_RUNTIME_PROOF, "all that a walk takes can be proved");

#define WORD 8

/* Java was called from native code here: the stub keeps a frame pointer. */
static enum sf_step step_entry(struct sf_hotspot_step *step, enum sf_end *why)
{
	struct sf_hotspot_caller caller;

	step->frame->token = step->hotspot->call_stub_return;
	*why = SF_END_REGISTER;
	if (!step->fp_known)
		return SF_STEP_FAILED;
	*why = SF_END_RUNTIME;
	if (step->fp < step->sp || step->fp - step->sp > SF_HOTSPOT_MAX_FRAME)
		return SF_STEP_FAILED;
	if (!sf_hotspot_record(step, step->fp, &caller))
		return sf_hotspot_unread(step, step->fp, 2 * WORD, why);
	return sf_hotspot_take(step, &caller, SF_VIA_RUNTIME, why);
}

uint64_t sf_hotspot_real_pc(const struct sf_hotspot_step *step, const struct sf_blob *blob, uint64_t pc,
			    uint64_t sp)
{
	uint64_t real;

	return blob->orig_pc > 0 && blob->orig_pc < SF_HOTSPOT_MAX_FRAME &&
	       (pc == blob->deopt || pc == blob->deopt_mh) &&
	       sf_read_u64(step->memory, sp + (uint64_t)blob->orig_pc, &real) &&
	       real >= blob->code_start && real < blob->code_end ? real : pc;
}

/*
 * The wrapper of Object.hashCode() returns, before it makes its frame, the hash that an object has already (HotSpot:
 * SharedRuntime::generate_native_wrapper, inline_check_hashcode_from_object_header). Its code shows the way out.
 */
static bool returns_early(const struct sf_hotspot_step *step, struct sf_hotspot_caller *ret)
{
	const struct sf_blob *blob = &step->blob;

	return step->cursor->exact && blob->class == SF_BLOB_WRAPPER && blob->frame_complete >= 0 &&
	       step->pc < blob->code_start + (uint32_t)blob->frame_complete && sf_hotspot_follow_to_return(step, ret);
}

static enum sf_step step_compiled(struct sf_hotspot_step *step, enum sf_end *why)
{
	const struct sf_blob *blob = &step->blob;
	struct sf_hotspot_caller caller;

	if (step->cursor->exact && sf_hotspot_in_static_call_stub(step) &&
	    sf_hotspot_bare(step, step->sp, &caller)) {
		step->frame->kind = SF_KIND_STUB;
		return sf_hotspot_take(step, &caller, SF_VIA_RUNTIME, why);
	}
	if (step->cursor->exact && sf_hotspot_top_compiled(step, &caller))
		return sf_hotspot_take(step, &caller, SF_VIA_RUNTIME, why);
	if (returns_early(step, &caller))
		return sf_hotspot_take(step, &caller, SF_VIA_RUNTIME, why);
	/* Code that only jumps to its target, such as MethodHandle.invokeBasic, makes no frame. */
	if (step->cursor->exact && blob->frame_size < 2 &&
	    sf_hotspot_bare(step, step->sp, &caller) && sf_hotspot_is_return(step, caller.pc))
		return sf_hotspot_take(step, &caller, SF_VIA_RUNTIME, why);
	if (!step->cursor->exact)
		step->frame->pc = sf_hotspot_real_pc(step, blob, step->pc, step->sp);
	return sf_hotspot_step_by_size(step, why);
}

static enum sf_step step_vtable(struct sf_hotspot_step *step, enum sf_end *why)
{
	struct sf_hotspot_caller caller;

	if (!sf_hotspot_bare(step, step->sp, &caller))
		return sf_hotspot_unread(step, step->sp, WORD, why);
	return sf_hotspot_take(step, &caller, SF_VIA_RUNTIME, why);
}

static enum sf_step step_blob(struct sf_hotspot_step *step, enum sf_end *why)
{
	switch ((enum sf_blob_class)step->blob.class) {
	case SF_BLOB_COMPILED:
		step->frame->kind = step->blob.level < 4 ? SF_KIND_C1 : SF_KIND_C2;
		return step_compiled(step, why);
	case SF_BLOB_WRAPPER:
		step->frame->kind = SF_KIND_NATIVE_METHOD;
		return step_compiled(step, why);
	case SF_BLOB_VTABLE:
		return step_vtable(step, why);
	case SF_BLOB_ADAPTER:
		return sf_hotspot_step_adapter(step, why);
	case SF_BLOB_DEOPT:
		return sf_hotspot_step_deopt(step, why);
	case SF_BLOB_CONTINUATIONS:
		return sf_hotspot_step_continuation(step, why);
	case SF_BLOB_INTERPRETER:
	case SF_BLOB_STUBS:
	case SF_BLOB_RUNTIME:
		break;
	}
	return sf_hotspot_step_runtime(step, why);
}

static bool find_blob(struct sf_hotspot_step *step)
{
	const bool exact = step->cursor->exact;

	/* A return address belongs to the call before it, or was put there by hand. */
	return sf_hotspot_find(step, step->pc - !exact, &step->blob) ||
	       (!exact && sf_hotspot_find(step, step->pc, &step->blob));
}

static enum sf_step step_frame(const struct sf_runtime *runtime, struct sf_cursor *cursor, enum sf_end *why)
{
	const struct sf_still *still = cursor->still;
	struct sf_trace *trace = cursor->trace;
	struct sf_hotspot_step step = {
		.cursor = cursor,
		.hotspot = (const struct sf_hotspot *)runtime,
		.memory = &still->memory,
		.outside = sf_reader_outside(&still->memory),
		.pc = cursor->regs.pc,
		.sp = cursor->regs.r[SF_X86_RSP],
		.fp = cursor->regs.r[SF_X86_RBP],
		.fp_known = sf_reg_known(&cursor->regs, SF_X86_RBP),
	};

	if (!sf_hotspot_holds(step.hotspot, step.pc) || !trace->n_frames)
		return SF_STEP_NOT_MINE;
	*why = SF_END_RUNTIME;
	step.frame = &trace->frames[trace->n_frames - 1];
	step.frame->kind = SF_KIND_STUB;
	step.frame->bci = -1;
	if (still->arch != &sf_arch_x86_64)
		return SF_STEP_FAILED;
	if (!cursor->exact && step.pc == step.hotspot->call_stub_return)
		return step_entry(&step, why);
	if (sf_hotspot_in_interpreter(step.hotspot, step.pc))
		return sf_hotspot_step_interpreter(&step, why);
	if (!find_blob(&step))
		return cursor->exact ? sf_hotspot_step_routine(&step, why) : SF_STEP_FAILED;
	step.frame->token = step.blob.address;
	step.frame->id = step.blob.compile_id;
	return step_blob(&step, why);
}

/*
 * For a walk that got stuck in native code: where the thread's own note says that its last Java frame is, if that is further
 * up. The native frames in between are missing then.
 */
static bool resume(const struct sf_runtime *runtime, struct sf_cursor *cursor)
{
	const struct sf_still *still = cursor->still;
	const struct sf_hotspot *hotspot = (const struct sf_hotspot *)runtime;
	const uint64_t thread = still->handles[runtime->slot];
	const struct sf_trace *trace = cursor->trace;
	const struct sf_reader outside = sf_reader_outside(&still->memory);
	uint64_t anchor, sp, pc = 0, fp = 0;
	uint64_t last = trace->n_frames ? trace->frames[trace->n_frames - 1].sp : 0;

	if (!thread || still->arch != &sf_arch_x86_64 ||
	    !sf_hotspot_has(hotspot, SF_HS_THREAD_ANCHOR))
		return false;
	anchor = thread + hotspot->fields[SF_HS_THREAD_ANCHOR].at;
	if (!sf_hotspot_get(hotspot, &outside, SF_HS_ANCHOR_SP, anchor, &sp) ||
	    sp <= last || sp % WORD != 0)
		return false;
	sf_hotspot_get(hotspot, &outside, SF_HS_ANCHOR_PC, anchor, &pc);
	sf_hotspot_get(hotspot, &outside, SF_HS_ANCHOR_FP, anchor, &fp);
	if ((!pc && !sf_read_u64(&still->memory, sp - WORD, &pc)) || !sf_hotspot_holds(hotspot, pc))
		return false;
	cursor->regs.known = 0;
	cursor->regs.pc = pc;
	sf_reg_set(&cursor->regs, SF_X86_RSP, sp);
	sf_reg_set(&cursor->regs, SF_X86_R15, thread);
	if (fp)
		sf_reg_set(&cursor->regs, SF_X86_RBP, fp);
	cursor->exact = false;
	cursor->via = SF_VIA_ANCHOR;
	return true;
}

/* --- frozen/runtime.h --- */

const struct sf_hotspot *sf_hotspot_of(const struct sf_code_map *map)
{
	return sf_code_map_runtime_of(map, &sf_hotspot_ops);
}

static const struct sf_region *find(const struct sf_runtime *runtime, uint64_t pc)
{
	const struct sf_hotspot *hotspot = (const struct sf_hotspot *)runtime;

	return sf_hotspot_holds(hotspot, pc) ? &hotspot->code : NULL;
}

static bool is_thread(const struct sf_runtime *runtime, const struct sf_reader *memory,
		      uint64_t handle, int32_t tid)
{
	return sf_hotspot_is_thread((const struct sf_hotspot *)runtime, memory, handle, tid);
}

static bool loads(const struct sf_runtime *runtime, uint64_t addr, uint64_t size)
{
	return sf_hotspot_loads((const struct sf_hotspot *)runtime, addr, size);
}

static void begin(void *scratch, void *cache, bool uses_it)
{
	struct sf_metadata_cache *trust = scratch;

	trust->known = cache;
	if (uses_it)
		sf_metadata_cache_begin(trust);
	else
		sf_metadata_cache_end(trust);
}

static unsigned proof(const struct sf_runtime *runtime, void *scratch,
		      const struct iovec **pieces_ret, size_t *size_ret)
{
	struct sf_metadata_cache *trust = scratch;

	*pieces_ret = trust->pieces;
	return sf_metadata_cache_pieces(trust, (const struct sf_hotspot *)runtime, size_ret);
}

static bool is_proved(const struct sf_runtime *runtime, const void *scratch, const uint8_t *bytes)
{
	return sf_metadata_cache_stands(scratch, (const struct sf_hotspot *)runtime, bytes);
}

const struct sf_runtime_ops sf_hotspot_ops = {
	.find = find,
	.step = step_frame,
	.resume = resume,
	.is_thread = is_thread,
	.loads = loads,
	.cache_size = sizeof(struct sf_known),
	.begin = begin,
	.proof = proof,
	.is_proved = is_proved,
};
