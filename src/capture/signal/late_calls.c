/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that were just started when the child, or the last one with an agent, ended: their agents may call yet. Their
 * parents may have ended, so they are looked for among all processes, by the variable that says where an agent is to call.
 */
#include "capture/signal/signal_engine.h"

#include "os/process.h"
#include "os/task.h"

#define LAST_CALLS_NS 200000000u /* for a process that has just been started: of elapsed time, and of CPU time */
#define SEEK_NS 100000000u

/*
 * It wants a CPU, or memory from a disk, and has not had enough of it. One that sleeps does not go on to call, and one that was
 * killed wants a CPU only to end.
 */
static bool may_call_yet(const struct sf_capture *capture, int32_t pid)
{
	const char letter = sf_task_letter(pid, pid);
	uint64_t cpu_ns;

	return (letter == 'R' || letter == 'D') && sf_process_cpu(pid, &cpu_ns) && cpu_ns < LAST_CALLS_NS &&
	       sf_process_environment_has(pid, capture->path) && !sf_process_is_ending(pid);
}

static bool any_may_call_yet(const struct sf_capture *capture)
{
	struct sf_ids all = { 0 };
	bool found = false;

	if (sf_process_all(&all)) {
		for (size_t i = 0; i < all.ids.n && !found; i++)
			found = may_call_yet(capture, all.ids.items[i]);
	}
	sf_vec_deinit(&all.ids);
	return found;
}

bool sf_signal_children_go_on(struct sf_capture *capture, uint64_t now_ns)
{
	if (capture->agents.n > 0 || capture->away.n > 0)
		capture->last_there_ns = now_ns;
	if (now_ns - capture->last_there_ns < LAST_CALLS_NS)
		return true;
	if (now_ns - capture->last_there_ns >= SF_SIGNAL_CALL_NS)
		return false;
	if (now_ns - capture->sought_ns >= SEEK_NS) {
		capture->sought_ns = now_ns;
		capture->awaits_calls = any_may_call_yet(capture);
	}
	return capture->awaits_calls;
}
