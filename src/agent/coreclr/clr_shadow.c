/* SPDX-License-Identifier: Apache-2.0 */
/* Sets the hooks, makes the shadow stacks, and ends both. */
#include "agent/coreclr/clr_shadow.h"

#include <regex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>

#include "agent/coreclr/clr_hooks.h"
#include "agent/coreclr/clr_method_names.h"
#include "agent/coreclr/clr_profiler.h"
#include "agent/coreclr/shadow_writer.h"
#include "agent/libc/fork_memory.h"
#include "agent/threads/note.h"
#include "frozen/coreclr/shadow_stack.h"
#include "frozen/runtime_list.h"

static bool is_wanted;
static bool came;                       /* the profiler came up in this profile */
static int32_t refused;                 /* the HRESULT, where the runtime did not take the hooks */
/* Of names of methods; stays as long as the process, once there is one. */
static regex_t only;
static bool has_only;

/* --- the stacks, which stay as long as the process: hooks may run at any time --- */

static uint32_t entries_for(uint32_t max_depth)
{
	uint32_t n = 64;

	while (n < max_depth && n < SF_SHADOW_MAX_DEPTH)
		n *= 2;
	return n;
}

static bool make_stacks(uint32_t max_depth)
{
	const uint32_t n = entries_for(max_depth);
	struct sf_shadow_table *table = sf_map_own(sizeof(*table), SF_COPIED);
	struct sf_shadow_entry *entries = sf_map_own((size_t)SF_SHADOW_THREADS * n * sizeof(*entries), SF_WIPED);

	if (!table || !entries)
		return false;
	for (size_t i = 0; i < SF_SHADOW_THREADS; i++) {
		table->stacks[i].entries = entries + i * n;
		table->stacks[i].mask = n - 1;
	}
	atomic_store(&sf_shadow_table, table);
	return true;
}

/* --- what the runtime calls --- */

static uint64_t thread_pointer(void)
{
	return (uint64_t)(uintptr_t)__builtin_thread_pointer();
}

static struct sf_shadow_stack *own_stack(void)
{
	if (!atomic_load_explicit(&sf_clr_hooks_on, memory_order_relaxed))
		return NULL;
	return sf_shadow_own(atomic_load(&sf_shadow_table), thread_pointer(), sf_handler.config.pid);
}

static void thread_assigned(uintptr_t thread)
{
	struct sf_shadow_table *table = atomic_load(&sf_shadow_table);

	(void)thread;
	if (table)
		sf_shadow_begin_thread(table, thread_pointer());
}

static void unwind_begins(uintptr_t function)
{
	struct sf_shadow_stack *stack = own_stack();

	if (stack)
		sf_shadow_unwind_begins(stack, function);
}

static void unwind_ends(uintptr_t none)
{
	struct sf_shadow_stack *stack = own_stack();

	(void)none;
	if (stack)
		sf_shadow_unwind_ends(stack);
}

static void caught(uintptr_t function)
{
	struct sf_shadow_stack *stack = own_stack();

	(void)function;
	if (stack)
		sf_shadow_caught(stack);
}

/* FunctionIDMapper2, before a method is compiled. On several threads at once. */
static uintptr_t map_function(uintptr_t function, void *info, int32_t *hooks_ret)
{
	struct sf_clr_method_names names;
	char name[2 * SF_CLR_METHOD_NAME];

	*hooks_ret = 0;
	if (sf_clr_read_method_names(info, function, &names)) {
		snprintf(name, sizeof(name), "%s.%s", names.type, names.method);
		*hooks_ret = regexec(&only, name, 0, NULL, 0) == 0;
	}
	return function;
}

static int32_t set_hooks(struct sf_clr_info *info)
{
	void *enter, *leave;
	int32_t result = SF_CLR_E_FAIL;

	if (sf_clr_hooks(&enter, &leave))
		result = sf_clr_set_hooks(info, enter, leave, leave);
	if (result >= 0 && has_only)
		result = sf_clr_set_mapper(info, map_function, info);
	return result;
}

static void came_up(struct sf_clr_info *info)
{
	refused = set_hooks(info);
	came = true;
	atomic_store(&sf_clr_hooks_on, refused >= 0);
}

/* Without hooks, shadow stacks are out of date. */
static void leaves(struct sf_clr_info *info)
{
	(void)info;
	atomic_store(&sf_handler.code.held_walk, NULL);
	atomic_store(&sf_clr_hooks_on, 0);
}

static const struct sf_clr_part part = {
	.events_low = SF_CLR_MONITOR_THREADS | SF_CLR_MONITOR_EXCEPTIONS | SF_CLR_MONITOR_ENTER_LEAVE,
	.is_main = true,
	.came_up = came_up,
	.leaves = leaves,
	.thread_assigned = thread_assigned,
	.unwind_begins = unwind_begins,
	.unwind_ends = unwind_ends,
	.caught = caught,
};

/* --- the profile --- */

static bool take_pattern(const char *pattern, struct sf_error *err)
{
	if (!pattern)
		return true;
	has_only = regcomp(&only, pattern, REG_EXTENDED | REG_NOSUB) == 0;
	return has_only || sf_fail(err, SF_E_INPUT, SF_HOOKS_ONLY ": '%.80s' is no regular expression (POSIX extended)", pattern);
}

bool sf_clr_shadow_begin(const struct sf_agent_options *options, struct sf_error *err)
{
	const int walk = options->runtime_walks[SF_RUNTIME_CORECLR];
	void *enter, *leave;

	is_wanted = sf_agent_walks_by_hooks(walk);
	came = false;
	refused = 0;
	atomic_store(&sf_handler.code.held_walk, NULL); /* a forked child has its parent's */
	if (!is_wanted)
		return true;
	if (!sf_clr_hooks(&enter, &leave))
		return sf_fail(err, SF_E_UNSUPPORTED, "the .NET runtime calls hooks of stillframe on x86-64 only");
	if (!take_pattern(options->hooks_only, err))
		return false;
	if (!atomic_load(&sf_shadow_table) && !make_stacks(options->max_depth))
		return sf_fail_memory(err);
	if (!sf_clr_profiler_begin(&part, err))
		return false;
	sf_handler.config.walks_twice = walk == SF_AGENT_WALK_SHADOW_BOTH;
	atomic_store(&sf_handler.code.held_walk, sf_shadow_walk);
	return true;
}

static void note_without(uint32_t n)
{
	char text[128];

	snprintf(text, sizeof(text), "%u threads of .NET had no shadow stack, and were walked by stillframe: there are %d", n,
		 SF_SHADOW_THREADS);
	sf_note(text);
}

static void note_refused(void)
{
	char text[128];

	snprintf(text, sizeof(text), "the .NET runtime refused hooks (error 0x%08x), and stillframe's own walk was used", (uint32_t)refused);
	sf_note(text);
}

void sf_clr_shadow_stop(void)
{
	uint32_t n_without;

	if (!is_wanted)
		return;
	n_without = atomic_load(&atomic_load(&sf_shadow_table)->n_without);
	if (!came)
		sf_clr_profiler_note_absence("no .NET runtime called hooks, and stillframe's own walk was used");
	if (refused < 0)
		note_refused();
	if (n_without)
		note_without(n_without);
}

void sf_clr_shadow_end(void)
{
	if (!is_wanted)
		return;
	atomic_store(&sf_handler.code.held_walk, NULL);
	sf_clr_profiler_end(&part);
	is_wanted = false;
}
