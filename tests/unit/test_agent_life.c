/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ordinary side of the agent (start, stop, pause, service thread, listener) from several threads at once, for
 * the sanitizers. No thread is watched, so no signal of ours comes: a handler that interrupts the thread
 * sanitizer's own code is more than that can bear. Tables of descriptors are not parted, so that a
 * sanitizer's report is seen.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/agent.h"
#include "agent/control.h"
#include "agent/libc/fork_lock.h"
#include "agent/libc/syscall_filter.h"
#include "agent/java/jvm_tool.h"
#include "agent/sampler/threads.h"
#include "agent/threads/api_guard.h"
#include "agent/threads/thread_register.h"
#include "frozen/signal/handler.h"
#include "os/channel.h"
#include "os/own_fd.h"
#include "sanitizer.h"
#include "stream/control.h"
#include "stream/file.h"

#define TURNS 8
#define PATIENCE_MS 60000 /* with what is to come, however busy the machine */
#define NOBODY "clock=wall,threads=^nobody$"

static char folder[] = "/tmp/stillframe-life-XXXXXX";
static _Atomic bool over;

static bool start(const char *text, struct sf_error *err)
{
	struct sf_agent_options options;
	bool ok = sf_agent_options_parse(&options, text, err) && sf_agent_start(&options, -1, err);

	sf_agent_options_deinit(&options);
	return ok;
}

static void *pause_and_flush(void *arg)
{
	while (!over) {
		sf_api_guard_begin();
		sf_agent_pause(true);
		sf_agent_pause(false);
		sf_api_guard_end();
		sf_agent_flush(NULL);
		sf_agent_running();
	}
	return arg;
}

static void *say_things(void *arg)
{
	char text[32];

	for (unsigned i = 0; !over; i++) {
		snprintf(text, sizeof(text), "value %u", i % 100);
		assert_true(sf_agent_thread_register(NULL));
		assert_true(sf_agent_thread_label("key", text, NULL));
		assert_true(sf_agent_thread_rename(text, NULL));
		usleep(500);
		sf_agent_thread_unregister();
	}
	return arg;
}

static void *start_too(void *arg)
{
	struct sf_error err;

	while (!over) {
		err = (struct sf_error){ 0 };
		if (!start(arg, &err))
			assert_int_equal(err.os_errno, EBUSY);
		usleep(3000);
	}
	return NULL;
}

/* The stream's records, or -1 where it is not whole. */
static int count_records(const char *path)
{
	struct sf_stream_file *file;
	struct sf_error err = { 0 };
	uint16_t last = 0;
	int n = 0;

	assert_true(sf_stream_file_open(path, &file, &err));
	for (const struct sf_record_header *record; (record = sf_stream_file_next(file, &err)); n++)
		last = record->type;
	sf_stream_file_close(file);
	return err.code == SF_E_NONE && last == SF_STREAM_END ? n : -1;
}

static void many_start_stop_and_pause(void **state)
{
	char text[256], other[256], path[128];
	pthread_t threads[4];
	struct sf_error err = { 0 };
	(void)state;

	snprintf(path, sizeof(path), "%s/a.sfs", folder);
	snprintf(text, sizeof(text), "out=%s," NOBODY, path);
	snprintf(other, sizeof(other), "out=%s/b.sfs," NOBODY, folder);
	pthread_create(&threads[0], NULL, pause_and_flush, NULL);
	pthread_create(&threads[1], NULL, say_things, NULL);
	pthread_create(&threads[2], NULL, say_things, NULL);
	pthread_create(&threads[3], NULL, start_too, other);
	for (int i = 0; i < TURNS; i++) {
		if (!start(text, &err))
			assert_int_equal(err.os_errno, EBUSY);
		usleep(20000);
		assert_true(sf_agent_stop(NULL, &err));
	}
	over = true;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_true(sf_agent_stop(NULL, &err));
	assert_true(start(text, &err));
	usleep(100000);
	assert_true(sf_agent_stop(NULL, &err));
	assert_true(count_records(path) > 3); /* PROCESS, images, END */
}

/* --- a stillframe that calls --- */

static int call(void)
{
	char path[SF_CHANNEL_PATH];
	struct sf_error err = { 0 };
	int channel;

	assert_true(sf_channel_agent_path(getpid(), path, &err));
	channel = sf_channel_connect(path, &err);
	assert_true(channel >= 0);
	return channel;
}

static void converse(bool says_stop)
{
	struct sf_control message;
	struct sf_error err = { 0 };
	int channel = call(), outbox = -1;

	assert_true(sf_control_send(channel, SF_CONTROL_START, NOBODY, -1, &err));
	assert_int_equal(sf_control_receive(channel, &message, &outbox, PATIENCE_MS, &err), 1);
	if (message.kind != SF_CONTROL_READY)
		fail_msg("%s", message.text);
	assert_true(outbox >= 0);
	close(outbox);
	/* READY comes a moment before. */
	for (int i = 0; !sf_agent_running(); i++) {
		assert_true(i < PATIENCE_MS);
		usleep(1000);
	}
	if (says_stop) {
		assert_true(sf_control_send(channel, SF_CONTROL_STOP, NULL, -1, &err));
		assert_int_equal(sf_control_receive(channel, &message, NULL, PATIENCE_MS, &err), 1);
		assert_int_equal(message.kind, SF_CONTROL_DONE);
		assert_int_equal(sf_control_receive(channel, &message, NULL, PATIENCE_MS, &err), 0);
	}
	close(channel);
	for (int i = 0; sf_agent_running(); i++) {
		assert_true(i < PATIENCE_MS);
		usleep(1000);
	}
	assert_true(sf_agent_stop(NULL, &err)); /* waits for the service thread, which may not have freed all of it yet */
}

/* Each is over by itself, in the service thread's thread. */
static void callers_come_and_go(void **state)
{
	struct sf_error err = { 0 };
	(void)state;

	assert_true(sf_control_listen(sf_agent_start, &err));
	for (int i = 0; i < 4; i++)
		converse(i % 2 == 0);
	sf_control_unlisten();
	assert_int_equal(sf_control_listener_tid(), 0);
}

/* The same with tables of their own: nothing is left open, and the end of the channel is seen at once. */
static void callers_come_and_go_apart(void **state)
{
	int before, after;

	if (IS_THREAD_SANITIZER) /* it takes a process to have one table */
		skip();
	sf_own_table_refused = false;
	before = dup(0);
	callers_come_and_go(state);
	after = dup(0);
	assert_int_equal(before + 1, after);
	close(after);
	close(before);
	sf_own_table_refused = true;
}

/* --- a forked child --- */

static bool has_open(const char *name)
{
	struct dirent *entry;
	DIR *folder_of_fds = opendir("/proc/self/fd");
	char path[320], target[256];
	bool found = false;
	ssize_t n;

	while (!found && (entry = readdir(folder_of_fds))) {
		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		n = readlink(path, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = 0;
		found = strstr(target, name) != NULL;
	}
	closedir(folder_of_fds);
	return found;
}

static bool all_slots_are_free(void)
{
	for (uint32_t i = 0; i < sf_handler.link.n_slots; i++) {
		if (sf_slot_state(atomic_load(&sf_handler.link.slots[i].word)) != SF_SLOT_FREE)
			return false;
	}
	return sf_handler.link.n_slots > 0;
}

/* Says by its status what is wrong. */
static int be_a_child(const char *own)
{
	struct sf_agent_options options;
	struct sf_error err = { 0 };

	if (!has_open("/a.sfs"))
		return 10; /* it proves nothing */
	atomic_store(&sf_handler.link.wake_up.sleeper, 1); /* as if its parent's sampler slept */
	sf_fork_renew_all();
	if (!sf_agent_after_fork_in_child(false, &options) || sf_agent_running())
		return 11;
	if (atomic_load(&sf_handler.link.wake_up.sleeper))
		return 15;
	if (!all_slots_are_free())
		return 12;
	if (has_open("/a.sfs"))
		return 13;
	if (IS_THREAD_SANITIZER) /* it cannot start threads in such a child */
		return 0;
	if (!start(own, &err) || !sf_agent_stop(NULL, &err))
		return 14;
	return 0;
}

/*
 * Neither its parent's slots, which threads held that it does not have, nor its service thread's file, to which it
 * never writes.
 */
static void a_child_keeps_nothing(void **state)
{
	char text[256], other[256], path[128];
	struct sf_error err = { 0 };
	struct sf_slot *held[2];
	int status;
	pid_t child;
	(void)state;

	snprintf(path, sizeof(path), "%s/a.sfs", folder);
	snprintf(text, sizeof(text), "out=%s," NOBODY, path);
	snprintf(other, sizeof(other), "out=%s/b.sfs," NOBODY, folder);
	assert_true(start(text, &err));
	for (int i = 0; i < 2; i++)
		held[i] = sf_slot_claim(sf_handler.link.slots, sf_handler.link.n_slots, (uint32_t)i);
	sf_fork_lock_all();
	child = fork();
	if (child == 0)
		_exit(be_a_child(other));
	sf_fork_unlock_all();
	assert_int_equal(waitpid(child, &status, 0), child);
	for (int i = 0; i < 2; i++)
		sf_slot_leave(held[i]);
	assert_true(sf_agent_stop(NULL, &err));
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_true(count_records(path) > 3);
}

/* --- what a child that starts anew has of its parent --- */

/* Whether a child of a parent with a profile reads unwind tables. looked_at: while the parent's maps are being looked at. */
static bool reads_tables(bool looked_at, const char *cache, const char *own)
{
	pthread_mutex_t *lock = &sf_fork_mutexes[SF_FORK_IMAGES];
	struct sf_agent_options options;
	struct sf_error err = { 0 };
	int status;
	pid_t child;

	pthread_mutex_lock(lock);
	if (!looked_at)
		pthread_mutex_unlock(lock);
	do {
		sf_fork_lock_all();
		if (looked_at || sf_fork_has(SF_FORK_IMAGES))
			break;
		sf_fork_unlock_all();
	} while (true);
	child = fork();
	if (child == 0) {
		const bool whole = sf_fork_has(SF_FORK_IMAGES);

		sf_fork_renew_all();
		if (!sf_agent_after_fork_in_child(whole, &options) || !start(own, &err) || !sf_agent_stop(NULL, &err))
			_exit(2);
		_exit(access(cache, F_OK) == 0); /* it is made when a table is looked for */
	}
	sf_fork_unlock_all();
	if (looked_at)
		pthread_mutex_unlock(lock);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
	return WEXITSTATUS(status);
}

/* Its files are the parent's, and so are their tables: unless they were just being changed. */
static void a_child_goes_on_with_the_tables(void **state)
{
	char text[256], other[256], cache[128], moved[128];
	struct sf_error err = { 0 };
	(void)state;

	if (IS_THREAD_SANITIZER) {
		print_message("a thread sanitizer starts no threads in such a child\n");
		skip();
	}
	snprintf(text, sizeof(text), "out=%s/a.sfs," NOBODY, folder);
	snprintf(other, sizeof(other), "out=%s/b.sfs," NOBODY, folder);
	snprintf(cache, sizeof(cache), "%s/cache", folder);
	snprintf(moved, sizeof(moved), "%s/moved", folder);
	assert_int_equal(setenv("XDG_CACHE_HOME", cache, 1), 0);
	assert_true(start(text, &err));
	assert_int_equal(rename(cache, moved), 0);
	assert_false(reads_tables(false, cache, other));
	assert_true(reads_tables(true, cache, other));
	assert_true(sf_agent_stop(NULL, &err));
	unsetenv("XDG_CACHE_HOME");
}

static bool becomes(_Atomic uint32_t *word, uint32_t wanted)
{
	for (unsigned i = 0; i < PATIENCE_MS && atomic_load(word) != wanted; i++)
		usleep(1000);
	return atomic_load(word) == wanted;
}

/* Its child would go on with images that are half changed. */
static void maps_are_not_looked_at_during_a_fork(void **state)
{
	pthread_mutex_t *lock = &sf_fork_mutexes[SF_FORK_IMAGES];
	char text[256];
	struct sf_error err = { 0 };
	(void)state;

	snprintf(text, sizeof(text), "out=%s/a.sfs," NOBODY, folder);
	assert_true(start(text, &err));
	pthread_mutex_lock(lock);
	sf_handler_note_gone_code(&sf_handler);
	usleep(200000); /* for many turns of the service thread */
	assert_int_equal(atomic_load(&sf_handler.code.map_stale), SF_MAP_MISLEADS);
	pthread_mutex_unlock(lock);
	assert_true(becomes(&sf_handler.code.map_stale, 0));
	assert_true(sf_agent_stop(NULL, &err));
}

/* As in a system() that has not begun its program yet. */
static void who_lets_no_signal_in_for_a_moment_is_sampled(void **state)
{
	char text[256];
	struct sf_error err = { 0 };
	sigset_t all, before;
	(void)state;

	snprintf(text, sizeof(text), "out=%s/a.sfs," NOBODY, folder);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	assert_true(start(text, &err));
	assert_int_equal(sf_handler.config.signal, SIGPROF);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	assert_true(sf_agent_stop(NULL, &err));
}

/* --- a fork while a start is under way --- */

static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER; /* locked: no start gets on */
static _Atomic int n_at_door;
static _Atomic bool is_day_ahead;                        /* as if it were set back soon */

bool __real_sf_jvm_tool_begin(const struct sf_agent_options *options, struct sf_error *err);
bool __wrap_sf_jvm_tool_begin(const struct sf_agent_options *options, struct sf_error *err);
int __real_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);

bool __wrap_sf_jvm_tool_begin(const struct sf_agent_options *options, struct sf_error *err)
{
	atomic_fetch_add(&n_at_door, 1);
	pthread_mutex_lock(&door);
	pthread_mutex_unlock(&door);
	return __real_sf_jvm_tool_begin(options, err);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
	int result = __real_clock_gettime(clock, ret);

	if (clock == CLOCK_REALTIME && atomic_load(&is_day_ahead))
		ret->tv_sec += 3600;
	return result;
}

static void *start_once(void *arg)
{
	struct sf_error err = { 0 };

	assert_true(start(arg, &err));
	return NULL;
}

/* It goes on without, after some seconds: also by a clock that somebody sets back. */
static void a_fork_does_not_wait_for_ever(void **state)
{
	int before = atomic_load(&n_at_door);
	struct sf_error err = { 0 };
	pthread_t thread;
	char text[256];
	(void)state;

	snprintf(text, sizeof(text), "out=%s/a.sfs," NOBODY, folder);
	pthread_mutex_lock(&door);
	pthread_create(&thread, NULL, start_once, text);
	while (atomic_load(&n_at_door) == before)
		usleep(1000);
	atomic_store(&is_day_ahead, true);
	sf_fork_lock_all();
	atomic_store(&is_day_ahead, false);
	sf_fork_unlock_all();
	pthread_mutex_unlock(&door);
	pthread_join(thread, NULL);
	assert_true(sf_agent_stop(NULL, &err));
}

/* --- a handler that forks while its thread is in the agent --- */

int __real_pthread_join(pthread_t thread, void **ret);
int __wrap_pthread_join(pthread_t thread, void **ret);
int __real_bind(int fd, const struct sockaddr *address, socklen_t size);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t size);

static _Thread_local bool signals_in_join, signals_in_bind; /* once */
static volatile sig_atomic_t n_forks;
static volatile sig_atomic_t child_status;

static void signal_if(bool *wanted)
{
	bool now = *wanted;

	*wanted = false;
	if (now)
		raise(SIGUSR1);
}

int __wrap_pthread_join(pthread_t thread, void **ret)
{
	signal_if(&signals_in_join);
	return __real_pthread_join(thread, ret);
}

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t size)
{
	signal_if(&signals_in_bind);
	return __real_bind(fd, address, size);
}

/* As the library does at each fork (agent/lifecycle.c, which this test does not have). */
static void fork_in_handler(int number)
{
	int status = -1;
	pid_t child;
	(void)number;

	sf_fork_lock_all();
	child = fork();
	if (child == 0) {
		sf_fork_renew_all();
		sf_control_after_fork_in_child();
		_exit(sf_control_listener_tid() == 0 ? 0 : 1);
	}
	sf_fork_unlock_all();
	waitpid(child, &status, 0);
	child_status = status;
	n_forks++;
}

/* Where the agent waits for its own thread, alarm() ends the test. */
static void a_handler_may_fork_while_listening_begins_or_ends(void **state)
{
	const struct sigaction action = { .sa_handler = fork_in_handler };
	struct sigaction before;
	struct sf_error err = { 0 };
	(void)state;

	if (IS_THREAD_SANITIZER) /* it puts handlers off */
		skip();
	n_forks = 0;
	assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
	alarm(60);
	for (int i = 1; i <= 3; i++) {
		signals_in_bind = true;
		assert_true(sf_control_listen(sf_agent_start, &err));
		assert_int_equal(n_forks, 2 * i - 1);
		assert_int_equal(child_status, 0);
		signals_in_join = true;
		sf_control_unlisten();
		assert_int_equal(n_forks, 2 * i);
		assert_int_equal(child_status, 0);
		assert_int_equal(sf_control_listener_tid(), 0);
	}
	alarm(0);
	assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
}

/* The child of such a handler goes on where its parent was interrupted, and has no thread to wait for. */
static void go_on_in_child(int number)
{
	(void)number;
	sf_fork_lock_all();
	if (fork() == 0) {
		sf_fork_renew_all();
		sf_control_after_fork_in_child();
		alarm(60);
		n_forks = -1;
		return;
	}
	sf_fork_unlock_all();
	n_forks++;
}

static void its_child_may_go_on(void **state)
{
	const struct sigaction action = { .sa_handler = go_on_in_child };
	struct sigaction before;
	struct sf_error err = { 0 };
	int status = -1;
	(void)state;

	/* The child makes a thread. The address sanitizer's locks may be another thread's at the fork (before LLVM 18: its #75290). */
	if (IS_THREAD_SANITIZER || IS_ADDRESS_SANITIZER)
		skip();
	n_forks = 0;
	assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
	alarm(60);
	assert_true(sf_control_listen(sf_agent_start, &err));
	signals_in_join = true;
	sf_control_unlisten();
	if (n_forks < 0) /* the child: it can listen again */
		_exit(sf_control_listen(sf_agent_start, NULL) && sf_control_listener_tid() ? 0 : 1);
	assert_int_equal(n_forks, 1);
	assert_true(wait(&status) > 0);
	assert_int_equal(status, 0);
	alarm(0);
	assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
}

static int make_folder(void **state)
{
	(void)state;
	sf_own_table_refused = true;
	setenv("XDG_RUNTIME_DIR", mkdtemp(folder), 1);
	return chmod(folder, 0700);
}

static int remove_folder(void **state)
{
	char path[200];
	(void)state;

	for (const char *name = "ab"; *name; name++) {
		snprintf(path, sizeof(path), "%s/%c.sfs", folder, *name);
		unlink(path);
	}
	snprintf(path, sizeof(path), "rm -rf %s/stillframe %s/cache %s/moved", folder, folder, folder); /* with what a killed child left there */
	return system(path) | rmdir(folder);
}

/* Nothing is sampled from then on. The thread of a forked child does not handle its own. */
static void a_thread_handles_its_system_calls(void **state)
{
	const struct sf_filter_call on = { SYS_prctl, { PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON } };
	const struct sf_filter_call off = { SYS_prctl, { PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF } };
	struct sf_error err = { 0 };
	(void)state;

	assert_false(sf_filter_notes_dispatch(&off));
	assert_true(sf_filter_check(SF_FILTER_SAMPLING, &err));
	assert_true(sf_filter_notes_dispatch(&on));
	assert_true(sf_filter_has_dispatch());
	assert_false(sf_filter_check(SF_FILTER_SAMPLING, &err));
	assert_false(sf_filter_check_after(&off, SF_FILTER_SAMPLING, &err));
	sf_filter_after_fork_in_child();
	assert_true(sf_filter_check(SF_FILTER_SAMPLING, &err));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_handles_its_system_calls),
		cmocka_unit_test(many_start_stop_and_pause),
		cmocka_unit_test(callers_come_and_go),
		cmocka_unit_test(callers_come_and_go_apart),
		cmocka_unit_test(a_child_keeps_nothing),
		cmocka_unit_test(a_child_goes_on_with_the_tables),
		cmocka_unit_test(maps_are_not_looked_at_during_a_fork),
		cmocka_unit_test(who_lets_no_signal_in_for_a_moment_is_sampled),
		cmocka_unit_test(a_fork_does_not_wait_for_ever),
		cmocka_unit_test(a_handler_may_fork_while_listening_begins_or_ends),
		cmocka_unit_test(its_child_may_go_on),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
