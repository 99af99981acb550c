/* SPDX-License-Identifier: Apache-2.0 */
/* Takes a dump: walks the stills that the engine yields, and keeps the trace of each thread's last still. */
#include "session/dump.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/output.h"
#include "os/process.h"
#include "os/syscalls.h"
#include "session/dump_names.h"

/* The verdict asks for all registers where native frames are missing without them. */
static struct sf_verdict on_still(void *arg, struct sf_still *still, struct sf_error *err)
{
	struct sf_dump *dump = arg;
	struct sf_verdict verdict = { .end = sf_walker_walk(&dump->walker, still) };

	(void)err;
	if (dump->walker.lacks_registers && verdict.end != SF_END_COPY)
		verdict.end = SF_END_REGISTER;
	return verdict;
}

/* The trace of the thread's last still. */
static bool keep_trace(const struct sf_trace *trace, struct sf_dump_thread *thread)
{
	if (!sf_vec_reserve(&thread->trace, trace->n_frames))
		return false;
	if (trace->n_frames)
		memcpy(thread->trace.items, trace->frames,
		       trace->n_frames * sizeof(*trace->frames));
	thread->trace.n = trace->n_frames;
	thread->end = (uint8_t)trace->end;
	return true;
}

static void describe_wait(const struct sf_dump *dump, const struct sf_dump_seen *seen,
			  struct sf_dump_thread *thread)
{
	if (seen->state != SF_STATE_BLOCKED || seen->syscall == SF_SYSCALL_NONE)
		return;
	sf_syscall_name(seen->syscall, thread->wait, sizeof(thread->wait));
	if (seen->syscall >= 0)
		sf_syscall_describe(dump->pid, seen->syscall, seen->args, thread->detail,
				    sizeof(thread->detail));
}

static bool on_thread(void *arg, const struct sf_dump_seen *seen, struct sf_error *err)
{
	struct sf_dump *dump = arg;
	struct sf_dump_thread thread = {
		.tid = seen->tid,
		.state = seen->state,
		.end = SF_END_EMPTY,
		.unheld = seen->unheld,
		.loss = seen->loss,
		.syscall = seen->syscall,
		.held_ns = seen->held_ns,
	};

	memcpy(thread.name, seen->name, sizeof(seen->name));
	describe_wait(dump, seen, &thread);
	if ((seen->loss < 0 && !keep_trace(&dump->walker.trace, &thread)) ||
	    !sf_vec_push(&dump->threads, thread)) {
		sf_vec_deinit(&thread.trace);
		return sf_fail_memory(err);
	}
	return true;
}

static bool look_at_threads(struct sf_dump *dump, struct sf_error *err)
{
	const struct sf_dump_sink sink = { .arg = dump, .still = on_still, .thread = on_thread };

	return dump->engine->dump(dump->pid, &sink, &dump->cost, err);
}

bool sf_dump_take(struct sf_dump *ret, const struct sf_engine *engine, int32_t pid,
		  uint32_t max_depth, struct sf_error *err)
{
	*ret = (struct sf_dump){ .pid = pid, .engine = engine, .strings = sf_intern_create() };
	if (!ret->strings || !sf_walker_init(&ret->walker, max_depth, err))
		return sf_fail_memory(err);
	sf_process_name(pid, ret->name, sizeof(ret->name));
	ret->tracer = sf_task_tracer(pid, pid);
	if (ret->tracer)
		sf_process_name(ret->tracer, ret->tracer_name, sizeof(ret->tracer_name));
	return sf_walker_prepare(&ret->walker, pid, err) && look_at_threads(ret, err) &&
	       ((ret->note = sf_walker_news(&ret->walker, pid)), sf_dump_name(ret, err));
}

void sf_dump_deinit(struct sf_dump *dump)
{
	for (size_t i = 0; i < dump->threads.n; i++) {
		sf_vec_deinit(&dump->threads.items[i].trace);
		sf_vec_deinit(&dump->threads.items[i].frames);
	}
	sf_vec_deinit(&dump->threads);
	sf_vec_deinit(&dump->paths);
	sf_intern_destroy(dump->strings);
	sf_walker_deinit(&dump->walker);
}

uint32_t sf_dump_text(struct sf_dump *dump, const char *text)
{
	SF_CLEANUP(free) char *clean = NULL;

	if (sf_is_text(text))
		return sf_intern_string(dump->strings, text);
	clean = strdup(text);
	if (!clean)
		return 0;
	sf_sanitize(clean);
	return sf_intern_string(dump->strings, clean);
}

const char *sf_dump_string(const struct sf_dump *dump, uint32_t number)
{
	return number ? sf_intern_get(dump->strings, number, NULL) : "";
}

const char *sf_dump_path(const struct sf_dump *dump, uint32_t image)
{
	return image && image <= dump->paths.n
		       ? sf_dump_string(dump, dump->paths.items[image - 1]) : "";
}
