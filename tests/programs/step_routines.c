/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps a thread of a Java virtual machine through its code, one instruction after the other, and has our walker say
 * who called the routine that it stands in. The truth is the list of calls that were stepped over and have not
 * returned. The interpreter pushes return addresses without a call, so the truth says nothing of what it jumps to
 * (adapters, say): only hand-written routines are judged. Each address is walked twice at most.
 *
 *     step_routines PID TID STEPS
 *
 * Only steps in the machine's generated code count. Native code that it calls is run through.
 * Prints a line for each answer that is not proved and right, and at the end how many there were of each.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "frozen/hotspot/hotspot.h"
#include "stepping.h"

#define TABLE (1u << 20)
#define VISITS 2

static struct stepping stepping;
static uint64_t visited[TABLE];
static uint8_t visits[TABLE];
static unsigned long proved, guessed, wrong, missing, elsewhere;

static bool is_due(uint64_t pc)
{
	uint32_t i = (uint32_t)(pc * 0x9e3779b97f4a7c15u >> 44);

	while (visited[i] && visited[i] != pc)
		i = (i + 1) % TABLE;
	visited[i] = pc;
	return visits[i]++ < VISITS;
}

static const struct sf_runtime *machine(void)
{
	const struct sf_process_runtimes *runtimes = sf_walker_runtimes(&stepping.walker, stepping.pid);

	return runtimes ? runtimes->all.attached[SF_RUNTIME_HOTSPOT] : NULL;
}

static bool read_machine(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size)
{
	(void)reader;
	return stepping_read(&stepping, ret, addr, size);
}

static bool is_hand_written(const struct sf_runtime *runtime, uint64_t pc)
{
	const struct sf_reader memory = { .read = read_machine };
	struct sf_blob blob;

	return sf_hotspot_blob((const struct sf_hotspot *)runtime, &memory, pc, &blob) && blob.class == SF_BLOB_STUBS;
}

static void complain(const char *what, const struct sf_trace *trace)
{
	const struct sf_frame *frames = trace->frames;
	const uint64_t pc = stepping.regs.rip;

	printf("%s at 0x%" PRIx64 " (%+" PRId64 "): called from 0x%" PRIx64 ", not 0x%" PRIx64 " by %s\n", what, pc,
	       (int64_t)(pc - frames[0].token), stepping_call(&stepping, 0)->pc, trace->n_frames > 1 ? frames[1].pc : 0,
	       trace->n_frames > 1 ? sf_via_word(frames[1].via) : "nothing");
}

static void judge(void)
{
	const struct sf_trace *trace = stepping_walk(&stepping);
	const struct stepping_call *call = stepping_call(&stepping, 0);
	const struct sf_frame *frames = trace->frames;

	if (trace->n_frames < 2)
		missing++, complain("no caller", trace);
	else if (frames[1].pc != call->pc || frames[1].sp != call->sp + 8)
		wrong++, complain(frames[1].via == SF_VIA_GUESS ? "a wrong guess" : "wrong", trace);
	else if (frames[1].via == SF_VIA_GUESS)
		guessed++, complain("a right guess", trace);
	else
		proved++;
}

/* Deoptimization replaces frames, and with them return addresses. */
static void look(const struct sf_runtime *runtime)
{
	if (!stepping.n_calls || !is_due(stepping.regs.rip))
		return;
	if (stepping_stands(&stepping, 0) && is_hand_written(runtime, stepping.regs.rip))
		judge();
	else
		elsewhere++;
}

static bool is_generated(const struct sf_runtime *runtime, uint64_t pc)
{
	return pc >= runtime->start && pc < runtime->end;
}

/* It stands at the first instruction of native code that generated code has called. */
static bool has_called_native(const struct sf_runtime *runtime)
{
	return !is_generated(runtime, stepping.regs.rip) && stepping.n_calls &&
	       stepping_call(&stepping, 0)->sp == stepping.regs.rsp && is_generated(runtime, stepping_call(&stepping, 0)->pc);
}

static bool go_through(unsigned long steps)
{
	for (unsigned long i = 0; i < steps;) {
		const struct sf_runtime *runtime = machine();

		if (!stepping_step(&stepping))
			return false;
		if (runtime && has_called_native(runtime) && !stepping_run_call(&stepping))
			return false;
		if (runtime && is_generated(runtime, stepping.regs.rip)) {
			look(runtime);
			i++;
		}
	}
	return true;
}

int main(int argc, char **argv)
{
	bool fine;

	if (argc != 4)
		return 2;
	if (!stepping_open(&stepping, atoi(argv[1]), atoi(argv[2])) || !machine() || !stepping_seize(&stepping))
		return 1;
	fine = go_through(strtoul(argv[3], NULL, 10));
	stepping_release(&stepping);
	printf("proved %lu, guessed %lu, wrong %lu, without a caller %lu; elsewhere %lu\n", proved, guessed, wrong, missing,
	       elsewhere);
	return fine ? 0 : 1;
}
