/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stepping out of the routine that the poll of a loop leads to. Such a poll is a load that
 * faults: the signal's handler sends the thread here with nothing pushed, and notes in the
 * JavaThread where it was. The routine makes room for a return address, and puts it there only
 * right before it calls the machine (HotSpot: SharedRuntime::generate_handler_blob). No table
 * says where the note is; the routine's own instructions do:
 *
 *   push rbx; push rbp; mov rbp, rsp; ...; mov rbx, [r15+note]; mov [rbp+8], rbx; ...; call
 */
#include <string.h>

#include "frozen/hotspot/step.h"

#include "frozen/frozen.h"

#define WORD 8
#define MAX_DISTANCE 2048    /* bytes from the start to the store: all registers are saved first */
#define PIECE 128
#define LOAD_SIZE 7
#define FETCH_SIZE 11        /* of load and store */
#define FRAME_SET 5          /* bytes from the start to behind "mov rbp, rsp" */

/* mov rbx, [r15+d32]; mov [rbp+8], rbx: or by way of rdi, as JDK 8 does it. */
static bool is_fetch(const uint8_t *code)
{
	return code[0] == 0x49 && code[1] == 0x8b && (code[2] == 0x9f || code[2] == 0xbf) &&
	       code[7] == 0x48 && code[8] == 0x89 && code[9] == (code[2] == 0x9f ? 0x5d : 0x7d) &&
	       code[10] == 0x08;
}

static bool begins_with_room(const struct sf_hotspot_step *step)
{
	uint8_t code[FRAME_SET];

	return sf_read(&step->outside, code, step->blob.code_start, sizeof(code)) &&
	       code[0] == 0x53 && code[1] == 0x55 && code[2] == 0x48 &&
	       ((code[3] == 0x8b && code[4] == 0xec) || (code[3] == 0x89 && code[4] == 0xe5));
}

/*
 * Where the store is, and which field of the JavaThread is stored. A piece at a time: a
 * handler's stack is small.
 */
static bool find_fetch(const struct sf_hotspot_step *step, uint64_t *store_ret, uint32_t *field_ret)
{
	const uint64_t size = step->blob.code_end - step->blob.code_start;
	uint8_t code[PIECE];

	for (uint64_t from = 0; from + PIECE <= size && from < MAX_DISTANCE;
	     from += PIECE - FETCH_SIZE + 1) {
		if (!sf_read(&step->outside, code, step->blob.code_start + from, sizeof(code)))
			return false;
		for (unsigned i = 0; i + FETCH_SIZE <= PIECE; i++) {
			if (!is_fetch(code + i))
				continue;
			*store_ret = step->blob.code_start + from + i + LOAD_SIZE;
			memcpy(field_ret, code + i + 3, sizeof(*field_ret));
			return true;
		}
	}
	return false;
}

/* The caller, by the words that the code before pc has pushed, and by the saved fp. */
static bool leave_frame(const struct sf_hotspot_step *step, struct sf_hotspot_caller *ret)
{
	const uint64_t offset = step->pc - step->blob.code_start;
	const uint64_t pushed = offset == 0 ? 0 : offset == 1 ? WORD : 2 * WORD;

	*ret = (struct sf_hotspot_caller){ .sp = step->sp + pushed, .fp = step->fp,
					   .fp_known = step->fp_known };
	if (offset < FRAME_SET)
		return true;
	return step->fp_known && step->fp >= step->sp && step->fp % WORD == 0 &&
	       step->fp - step->sp <= (uint64_t)(uint32_t)step->blob.frame_size * WORD &&
	       sf_hotspot_record(step, step->fp, ret);
}

/* The note is of this moment, the stack may be a copy of an earlier one: the method must fit. */
static bool fits(const struct sf_hotspot_step *step, const struct sf_hotspot_caller *caller)
{
	struct sf_blob blob;
	uint64_t behind;

	return sf_hotspot_holds(step->hotspot, caller->pc) &&
	       sf_hotspot_find(step, caller->pc, &blob) &&
	       blob.class == SF_BLOB_COMPILED && blob.frame_size >= 2 &&
	       sf_read_u64(step->memory, caller->sp + (uint64_t)(blob.frame_size - 1) * WORD,
			   &behind) &&
	       sf_hotspot_is_return(step, behind);
}

bool sf_hotspot_at_poll(const struct sf_hotspot_step *step, struct sf_hotspot_caller *ret)
{
	const uint64_t thread = sf_hotspot_java_thread(step);
	uint64_t store;
	uint32_t field;

	return thread && begins_with_room(step) && find_fetch(step, &store, &field) &&
	       step->pc <= store && leave_frame(step, ret) &&
	       sf_read_u64(&step->outside, thread + field, &ret->pc) && fits(step, ret);
}
