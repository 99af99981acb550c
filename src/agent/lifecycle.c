/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the library is loaded, when the process forks, when it ends. Compiled into the shared
 * library itself, so that a unit test that links the rest starts nothing.
 *
 * Nothing is printed but one line where STILLFRAME= cannot be understood, and with
 * STILLFRAME_VERBOSE what failed: the program's output is its own.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/aside.h"
#include "agent/control.h"
#include "agent/host/spawn.h"
#include "agent/interpose/interpose.h"
#include "agent/interpose/program.h"
#include "agent/libc/fork_lock.h"
#include "agent/libc/heap.h"
#include "agent/libc/own_proc.h"
#include "agent/lifecycle.h"
#include "agent/threads/api_guard.h"
#include "agent/threads/exec_preparation.h"
#include "agent/threads/thread_entries.h"
#include "base/cache_folder.h"
#include "frozen/child.h"
#include "frozen/signal/handler.h"

/* The options of the environment, for forked children. Strings live as long as the process. */
static struct sf_agent_options asked;
SF_CHILD_DATA static pid_t loaded_pid;
SF_CHILD_DATA static bool is_forked; /* in another PID namespace it may have its parent's number */
static bool not_meant;     /* the options are for another process, and for none that this one starts */
SF_CHILD_DATA static bool gone_for_good; /* a profile that ended so that the program could go on alone; its children call the same stillframe */

void sf_lifecycle_complain(const struct sf_error *err, bool always)
{
	const char *verbose = secure_getenv("STILLFRAME_VERBOSE");

	if (always || (verbose && *verbose))
		dprintf(STDERR_FILENO, "stillframe: %.*s\n", (int)strcspn(err->text, "\n"),
			err->text);
}

static bool is_for_us(const struct sf_agent_options *options)
{
	pid_t own = getpid();

	if (options->pid && options->pid != own)
		return false;
	/* `out` is somebody else's file: without `children` we are not meant. */
	return options->children || !options->first || options->first == own;
}

/* Takes the strings: sf_agent_start() frees them with the profile, so it gets its own copy. */
static bool copy_options(const char *text, struct sf_agent_options *ret, struct sf_error *err)
{
	bool ok = sf_agent_options_parse(ret, text, err);

	if (ok) {
		ret->first = asked.first;
		ret->again = asked.again;
	}
	return ok;
}

static bool start(const char *text, struct sf_error *err)
{
	struct sf_agent_options options;
	bool ok;

	if (asked.connect)
		return sf_control_call(asked.connect, sf_agent_start, err);
	ok = copy_options(text, &options, err) && sf_agent_start(&options, -1, err);
	sf_agent_options_deinit(&options);
	return ok;
}

/* Begins everything that the options demand. Reports the first failure. */
static bool begin(const char *text, struct sf_error *err)
{
	bool ok = true;

	/* First: the listener must be known by its id before threads are looked for. */
	if (asked.listen)
		ok = sf_control_listen(sf_agent_start, err);
	if (!asked.start)
		return ok;
	sf_api_guard_begin();
	ok = start(text, ok ? err : NULL) && ok;
	sf_api_guard_end();
	return ok;
}

static void obey(const char *text)
{
	struct sf_error err = { 0 };

	if (!sf_agent_options_parse(&asked, text, &err)) {
		sf_lifecycle_complain(&err, true);
		asked = (struct sf_agent_options){ 0 };
		return;
	}
	if (!is_for_us(&asked)) {
		sf_variable_keep(text);
		not_meant = !asked.listen;
		asked = (struct sf_agent_options){ 0 };
		return;
	}
	sf_variable_sign(text, &asked);
	if (!begin(text, &err))
		sf_lifecycle_complain(&err, false);
}

bool sf_lifecycle_obey(const char *text, struct sf_error *err)
{
	struct sf_agent_options options;
	bool listens = asked.listen, fine = sf_agent_options_parse(&options, text, err);

	if (!fine || !is_for_us(&options)) {
		sf_agent_options_deinit(&options);
		return fine;
	}
	/* The environment's profile goes on: it began first, and there is one at a time. */
	if (sf_agent_running()) {
		asked.listen |= options.listen;
		sf_agent_options_deinit(&options);
		return !asked.listen || sf_control_listen(sf_agent_start, err);
	}
	asked = options;
	asked.listen |= listens;
	return begin(text, err);
}

/* --- a filter --- */

/* Our threads are under it only if it is for all. */
static unsigned uses_under(const struct sf_filter_call *call)
{
	bool for_all = call->number == SYS_seccomp && call->args[1] & SECCOMP_FILTER_FLAG_TSYNC;

	return SF_FILTER_SAMPLING | (for_all ? SF_FILTER_PERF | SF_FILTER_CHANNEL : 0);
}

/* The program is about to forbid itself system calls: if it would be ended for ours, we end first. */
static void before_filter(const struct sf_filter_call *call)
{
	struct sf_error err = { 0 };

	/* The child of a vfork shares our memory: it is about to exec, and nothing samples it. */
	if (getpid() != loaded_pid || !(sf_agent_running() || sf_control_listener_tid()) ||
	    sf_filter_check_after(call, uses_under(call), &err))
		return;
	sf_api_guard_begin();
	sf_control_unlisten();
	sf_agent_stop(err.text, NULL);
	sf_api_guard_end();
	sf_lifecycle_complain(&err, false);
}

/* --- what the interposers call --- */

#define FLUSH_NS 200000000 /* an exec waits at most so long for the stream's file */

/* Not in a child that no handler of a fork has seen: it has the word of its parent's sampler, and would move that one. */
static void thread_made(void)
{
	if (sf_agent_running() && getpid() == loaded_pid)
		sf_agent_threads_expect();
}

static void code_gone(void)
{
	if (sf_agent_running())
		sf_handler_note_gone_code(&sf_handler);
}

static bool before_exec(void)
{
	if (!sf_agent_running() || !sf_agent_thread_before_exec())
		return false;
	sf_agent_flush_within(FLUSH_NS);
	return true;
}

static bool drop_sent(void)
{
	return sf_agent_running() && sf_agent_thread_drop_sent(); /* else a filter may forbid it */
}

/*
 * Where the options name one process, the agent does nothing in its children, nor in what these execute. Programs of another
 * libc do not run with the agent. In a process without the variable nothing is looked at.
 */
static const char *useless_variable(const char *program, bool child)
{
	if (not_meant || (sf_variable() && sf_program_has_musl(program)))
		return sf_variable();
	if (!asked.start || asked.children || asked.listen || !(asked.pid || asked.first))
		return NULL;
	return child || is_forked || !is_for_us(&asked) ? sf_variable() : NULL;
}

/* --- calls that demand something of all threads --- */

/* False also in the child of a vfork, which shares our memory and has none of our threads. */
static bool step_aside(enum sf_demand demand)
{
	if (getpid() != loaded_pid || !(sf_agent_running() || sf_control_listener_tid()))
		return false;
	/* In a process of more threads the kernel refuses, as it would without us. */
	if (demand == SF_DEMAND_ALIKE ? sf_spawned_have_own_rights() : sf_own_has_others(sf_spawned_count()))
		return false;
	if (demand != SF_DEMAND_ALONE_FOR_GOOD)
		return sf_aside_begin();
	gone_for_good = sf_agent_running();
	sf_aside_for_good("the program has moved its children into another PID or time namespace; it can have no more threads");
	return false;
}

static void thread_ends(void)
{
	if (!(sf_agent_running() || sf_control_listener_tid()))
		return; /* a filter may leave the thread its end and no other call */
	if (getpid() == loaded_pid && gettid() == loaded_pid)
		sf_first_thread_ends();
}

/* --- fork --- */

static void before_fork(void)
{
	int error = errno;

	sf_fork_lock_all();
	sf_agent_thread_table_before_fork();
	errno = error;
}

static void after_fork(void)
{
	int error = errno;

	sf_fork_unlock_all();
	errno = error;
}

/* The child's own stream: by a call to the same stillframe, or in a file of its own. */
static void start_child(struct sf_agent_options *options, pid_t parent)
{
	struct sf_error err = { 0 };
	bool ok;

	options->again = false;
	if (!options->first)
		options->first = parent;
	sf_api_guard_begin();
	if (options->connect)
		ok = sf_control_call(options->connect, sf_agent_start, &err);
	else
		ok = sf_agent_start(options, -1, &err);
	sf_api_guard_end();
	if (!ok)
		sf_lifecycle_complain(&err, false);
}

SF_CHILD_CODE static void after_fork_in_child(void)
{
	struct sf_agent_options options;
	pid_t parent = loaded_pid;
	int error = errno;
	/* No start or stop was under way, nor a look at the maps. */
	const bool whole = sf_fork_has(SF_FORK_PROFILE) && sf_fork_has(SF_FORK_IMAGES);
	bool was;

	loaded_pid = getpid();
	is_forked = true;
	sf_fork_renew_all();
	sf_heap_after_fork_in_child();
	sf_filter_after_fork_in_child();
	sf_spawned_forked();
	sf_exec_preparation_forked();
	was = sf_agent_after_fork_in_child(whole, &options) || (gone_for_good && asked.connect);
	gone_for_good = false;
	sf_control_after_fork_in_child();
	if (was && (options.children || asked.children)) {
		if (!options.connect)
			options.connect = asked.connect;
		start_child(&options, parent);
	}
	if (asked.children && asked.listen)
		sf_control_listen(sf_agent_start, NULL);
	errno = error;
}

static const struct sf_interpose_hooks hooks = {
	.thread_made = thread_made,
	.code_gone = code_gone,
	.before_exec = before_exec,
	.after_exec = sf_agent_thread_after_exec,
	.useless_variable = useless_variable,
	.is_sent = sf_agent_thread_is_sent,
	.drop_sent = drop_sent,
	.before_filter = before_filter,
	.step_aside = step_aside,
	.come_back = sf_aside_end,
	.own_threads = sf_spawned_count,
	.thread_ends = thread_ends,
	.before_fork = before_fork,
	.after_fork = after_fork,
	.after_fork_in_child = after_fork_in_child,
};

/* --- the life of the library --- */

/*
 * exit() and the return of main(): everything is written. _exit() and a crash leave what was
 * written up to then, at most a fifth of a second ago.
 */
static void finish(void)
{
	int error = errno, cancel_state;
	struct sf_error err = { 0 };

	/* The child of a vfork shares our memory, and must not exit() in the first place. */
	if (getpid() == loaded_pid) {
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state); /* as exit(), which is no point of cancellation */
		if (sf_agent_running())
			sf_api_guard_begin();
		sf_control_unlisten();
		if (!sf_agent_stop(NULL, &err))
			sf_lifecycle_complain(&err, false);
		pthread_setcancelstate(cancel_state, NULL);
	}
	errno = error;
}

/*
 * Reading files of a program takes some of the stack. A program may have been started with less than that (RLIMIT_STACK), so
 * then a thread with a stack of its own does it.
 */
#define ROOM (512u << 10)

static void *obey_apart(void *text)
{
	obey(text);
	return NULL;
}

static bool has_stack(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= ROOM;
}

static void obey_at_start(const char *text)
{
	struct sf_error err = { 0 };
	pthread_t thread;
	int32_t tid;

	if (has_stack())
		obey(text);
	else if (sf_spawn(&thread, &tid, obey_apart, (void *)text, "sf-start", &err))
		pthread_join(thread, NULL);
	else
		sf_lifecycle_complain(&err, false);
}

__attribute__((constructor)) static void loaded(void)
{
	int error = errno;
	const char *text;

	loaded_pid = getpid();
	sf_cache_read_environment();
	atomic_store(&sf_interpose_hooks, &hooks);
	sf_interpose_init();
	sf_interpose_signal_init();
	sf_interpose_syscall_init();
	sf_interpose_fork_init();
	at_quick_exit(finish);
	text = secure_getenv("STILLFRAME");
	if (text && *text)
		obey_at_start(text);
	errno = error;
}

__attribute__((destructor)) static void unloaded(void)
{
	finish();
}
