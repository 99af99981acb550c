/* SPDX-License-Identifier: Apache-2.0 */
/* Takes dumps: walks the stills that the engine yields, and keeps the trace of each thread's last still. */
#include "session/dump.h"

#include <stdlib.h>
#include <string.h>

#include "os/process.h"
#include "os/syscalls.h"

/* A dump that is being taken, by the walker of all. */
struct taking {
	struct sf_dump dump;
	struct sf_walker *walker;
};

/* The verdict asks for all registers where native frames are missing without them. */
static struct sf_verdict on_still(void *arg, struct sf_still *still, struct sf_error *err)
{
	struct sf_walker *walker = ((struct taking *)arg)->walker;
	struct sf_verdict verdict = { .end = sf_walker_walk(walker, still, NULL) };

	(void)err;
	if (walker->lacks_registers && verdict.end != SF_END_COPY)
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
	if (seen->state != SF_STATE_BLOCKED || seen->syscall == SF_SYSCALL_NONE || seen->syscall == SF_SYSCALL_UNTOLD)
		return;
	sf_syscall_name(seen->syscall, thread->wait, sizeof(thread->wait));
	if (seen->syscall >= 0)
		sf_syscall_describe(dump->pid, seen->syscall, seen->args, thread->detail,
				    sizeof(thread->detail));
}

static bool on_thread(void *arg, const struct sf_dump_seen *seen, struct sf_error *err)
{
	struct taking *taking = arg;
	struct sf_dump *dump = &taking->dump;
	struct sf_dump_thread thread = { .seen = *seen, .end = SF_END_EMPTY };

	memcpy(thread.name, seen->name, sizeof(seen->name));
	if (dump->frozen && seen->state == SF_STATE_BLOCKED && sf_task_is_frozen(dump->pid, seen->tid))
		thread.seen.state = SF_STATE_STOPPED;
	describe_wait(dump, &thread.seen, &thread);
	if ((seen->loss < 0 && !keep_trace(&taking->walker->trace, &thread)) ||
	    !sf_vec_push(&dump->threads, thread)) {
		sf_vec_deinit(&thread.trace);
		return sf_fail_memory(err);
	}
	return true;
}

static bool look_at_threads(struct taking *taking, struct sf_error *err)
{
	const struct sf_dump_sink sink = { .arg = taking, .still = on_still, .thread = on_thread };
	struct sf_dump *dump = &taking->dump;

	return sf_walker_prepare(taking->walker, dump->pid, err) && dump->engine->dump(dump->pid, &sink, &dump->cost, err);
}

static void name_process(struct sf_dump *dump)
{
	sf_process_name(dump->pid, dump->name, sizeof(dump->name));
	dump->frozen = sf_task_is_frozen(dump->pid, dump->pid);
	dump->tracer = sf_task_tracer(dump->pid, dump->pid);
	if (dump->tracer)
		sf_process_name(dump->tracer, dump->tracer_name, sizeof(dump->tracer_name));
}

static void deinit(struct sf_dump *dump)
{
	for (size_t i = 0; i < dump->threads.n; i++) {
		sf_vec_deinit(&dump->threads.items[i].trace);
		sf_vec_deinit(&dump->threads.items[i].frames);
	}
	sf_vec_deinit(&dump->threads);
	sf_vec_deinit(&dump->circles);
}

bool sf_dumps_look(struct sf_dumps *dumps, const struct sf_engine *engine, int32_t pid, struct sf_error *err)
{
	struct taking taking = { .dump = { .all = dumps, .pid = pid, .engine = engine }, .walker = &dumps->walker };

	name_process(&taking.dump);
	if (!look_at_threads(&taking, err)) {
		deinit(&taking.dump);
		return false;
	}
	taking.dump.note = sf_walker_news(&dumps->walker, pid);
	if (sf_vec_push(&dumps->items, taking.dump))
		return true;
	deinit(&taking.dump);
	return sf_fail_memory(err);
}

bool sf_dumps_init(struct sf_dumps *ret, uint32_t max_depth, struct sf_error *err)
{
	*ret = (struct sf_dumps){ .strings = sf_intern_create() };
	return sf_walker_init(&ret->walker, max_depth, err) && (ret->strings || sf_fail_memory(err));
}

void sf_dumps_deinit(struct sf_dumps *dumps)
{
	for (size_t i = 0; i < dumps->items.n; i++)
		deinit(&dumps->items.items[i]);
	sf_vec_deinit(&dumps->items);
	sf_vec_deinit(&dumps->paths);
	sf_intern_destroy(dumps->strings);
	sf_walker_deinit(&dumps->walker);
}

const char *sf_dump_string(const struct sf_dump *dump, uint32_t number)
{
	return number ? sf_intern_get(dump->all->strings, number, NULL) : "";
}

const char *sf_dump_path(const struct sf_dump *dump, uint32_t image)
{
	return image && image <= dump->all->paths.n
		       ? sf_dump_string(dump, dump->all->paths.items[image - 1]) : "";
}
