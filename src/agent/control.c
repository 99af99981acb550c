/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's end of the control channel: it calls a stillframe that waits, or runs the listener,
 * a thread that waits for `record -p`. Ordinary code, never in a signal handler.
 */
#include "agent/control.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/libc/syscall_filter.h"
#include "agent/libc/fork_lock.h"
#include "agent/libc/own_proc.h"
#include "agent/service/service.h"
#include "agent/host/spawn.h"
#include "frozen/child.h"
#include "os/channel.h"
#include "os/own_fd.h"
#include "stream/control.h"

#define ANSWER_MS 5000
#define LOOK_MS 1000
#define TABLES_NS 1000000000u  /* the start of a program waits at most so long for unwind tables */

/* Receives the START message and parses its options. On failure the caller sends the refusal. */
static bool receive_start(int channel, struct sf_agent_options *ret, struct sf_error *err)
{
	struct sf_control message;
	int got = sf_control_receive(channel, &message, NULL, ANSWER_MS, err);

	if (got < 0)
		return false;
	if (got == 0 || message.kind != SF_CONTROL_START)
		return sf_fail(err, SF_E_INPUT, "stillframe went away before it said what to do");
	return sf_agent_options_parse(ret, message.text, err);
}

/* How the start went. The channel is the service thread's on success, and closed on failure. */
static bool answer(bool ok, int channel, struct sf_agent_options *options,
		   const struct sf_error *err)
{
	if (!ok) {
		sf_control_send(channel, SF_CONTROL_REFUSED, err->text, -1, NULL);
		close(channel);
	}
	sf_agent_options_deinit(options);
	return ok;
}

bool sf_control_call(const char *path, sf_control_start_fn *start, struct sf_error *err)
{
	struct sf_agent_options options = { 0 };
	struct sf_error own = { 0 };
	int channel;
	bool ok;

	err = err ? err : &own;
	if (!sf_filter_check(SF_FILTER_CHANNEL, err))
		return false;
	channel = sf_own_fd_make(sf_channel_connect(path, err)).fd;
	if (channel < 0)
		return false;
	ok = receive_start(channel, &options, err) && start(&options, channel, err);
	if (ok)
		sf_service_wait_for_tables(TABLES_NS);
	return answer(ok, channel, &options, err);
}

/* --- listening --- */

/*
 * `turn` orders starting and stopping the listener, which takes until its thread has ended; fork() does not take it. `mutex`
 * protects the state that a forked child copies, and is never held during a wait.
 */
SF_CHILD_DATA static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t *const mutex = &sf_fork_mutexes[SF_FORK_LISTENER];
static _Thread_local enum { NO_TURN, WAITS_FOR_TURN, HAS_TURN } at_turn;

SF_CHILD_DATA static struct {
	pthread_t thread;
	sf_control_start_fn *start;
	bool running;
	int32_t pid;             /* whose thread it is: a forked child has none */
	struct sf_own_fd own;
	char path[SF_CHANNEL_PATH];
	_Atomic bool quit;
	_Atomic int waiting;     /* the channel of a caller who has not said anything yet; -1:
				  * none */
	int32_t tid;
} listener = { .own = SF_NO_OWN_FD, .waiting = -1 };

int32_t sf_control_listener_tid(void)
{
	return listener.tid;
}

/* Until a caller has said what to do the end of listening ends the conversation, too. */
static void serve_caller(int channel, struct sf_error *err)
{
	struct sf_agent_options options = { 0 };
	bool ok;

	atomic_store(&listener.waiting, channel);
	ok = !atomic_load(&listener.quit) && receive_start(channel, &options, err);
	atomic_store(&listener.waiting, -1);
	answer(ok && listener.start(&options, channel, err), channel, &options, err);
}

/* Waits for a caller; sf_control_unlisten() shuts the socket down, which ends the wait. */
static void *listen_on(void *arg)
{
	(void)arg;
	while (!atomic_load_explicit(&listener.quit, memory_order_acquire)) {
		struct pollfd wait = { .fd = listener.own.fd, .events = POLLIN };
		struct sf_error err = { 0 };
		int channel;

		/* Not for ever: a descriptor that the program has closed wakes nobody. */
		if (poll(&wait, 1, LOOK_MS) < 0 && errno != EINTR)
			break;
		sf_spawned_follow();
		if (sf_own_has_none(sf_spawned_count())) {
			sf_channel_remove(listener.path);
			break; /* the process ends with this thread */
		}
		if (!sf_own_fd_is_ours(&listener.own))
			break;
		if (atomic_load_explicit(&listener.quit, memory_order_acquire))
			break;
		if (wait.revents & (POLLERR | POLLNVAL | POLLHUP))
			break; /* the program has closed it */
		channel = sf_own_fd_make(sf_channel_accept(listener.own.fd, &err)).fd;
		if (channel >= 0)
			serve_caller(channel, &err);
	}
	return NULL;
}

static bool open_socket(struct sf_error *err)
{
	sigset_t before;

	sf_lock_from_handlers(mutex, &before);
	if (sf_channel_agent_path(getpid(), listener.path, err))
		listener.own = sf_own_fd_make(sf_channel_listen(listener.path, err));
	listener.pid = getpid();
	listener.running = listener.own.fd >= 0;
	sf_unlock_to_handlers(mutex, &before);
	return listener.running;
}

/* Not in a child that was forked meanwhile: it has no listener, and its copies are closed. */
static void close_socket(void)
{
	sigset_t before;

	sf_lock_from_handlers(mutex, &before);
	if (listener.running && listener.pid == getpid()) {
		sf_own_fd_close(&listener.own);
		listener.tid = 0;
		listener.running = false;
	}
	sf_unlock_to_handlers(mutex, &before);
}

static bool listen_now(sf_control_start_fn *start, struct sf_error *err)
{
	if (listener.running)
		return true;
	listener.start = start;
	if (!sf_filter_check(SF_FILTER_CHANNEL, err) || !open_socket(err))
		return false;
	atomic_store(&listener.quit, false);
	if (sf_spawn(&listener.thread, &listener.tid, listen_on, NULL, "sf-listen", err))
		return true;
	sf_channel_remove(listener.path);
	close_socket();
	return false;
}

static void unlisten_now(void)
{
	if (!listener.running || listener.pid != getpid())
		return;
	atomic_store_explicit(&listener.quit, true, memory_order_release);
	sf_channel_remove(listener.path);
	if (sf_own_fd_is_ours(&listener.own))
		shutdown(listener.own.fd, SHUT_RDWR);
	if (atomic_load(&listener.waiting) >= 0)
		shutdown(atomic_load(&listener.waiting), SHUT_RDWR);
	pthread_join(listener.thread, NULL);
	close_socket();
}

/* False: a handler has interrupted its own thread in it, or is in a child of such a handler. */
static bool take_turn(void)
{
	if (at_turn != NO_TURN)
		return false;
	at_turn = WAITS_FOR_TURN;
	pthread_mutex_lock(&turn);
	at_turn = HAS_TURN;
	return true;
}

static void give_turn(void)
{
	pthread_mutex_unlock(&turn);
	at_turn = NO_TURN;
}

bool sf_control_listen(sf_control_start_fn *start, struct sf_error *err)
{
	bool ok;

	if (!take_turn())
		return sf_fail(err, SF_E_SYSTEM, "this thread begins or ends listening already");
	ok = listen_now(start, err);
	give_turn();
	return ok;
}

void sf_control_unlisten(void)
{
	if (!take_turn())
		return;
	unlisten_now();
	give_turn();
}

/* --- leaving for a while --- */

static bool is_listening(void)
{
	return listener.running && listener.pid == getpid();
}

/* Connects to the listener's socket and sends nothing, so that its wait for a caller ends. */
static void wake_listener(void)
{
	int channel = sf_channel_connect(listener.path, NULL);

	if (channel >= 0)
		close(channel);
	if (atomic_load(&listener.waiting) >= 0)
		shutdown(atomic_load(&listener.waiting), SHUT_RDWR);
}

bool sf_control_leave(void)
{
	if (!take_turn())
		return false;
	if (!is_listening())
		return true;
	atomic_store_explicit(&listener.quit, true, memory_order_release);
	wake_listener();
	pthread_join(listener.thread, NULL);
	listener.tid = 0;
	return true;
}

void sf_control_return(void)
{
	if (is_listening()) {
		atomic_store(&listener.quit, false);
		if (!sf_spawn(&listener.thread, &listener.tid, listen_on, NULL, "sf-listen", NULL)) {
			sf_channel_remove(listener.path);
			close_socket();
		}
	}
	give_turn();
}

SF_CHILD_CODE void sf_control_after_fork_in_child(void)
{
	if (at_turn != HAS_TURN) /* another thread's, which is not here */
		turn = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	if (listener.running)
		sf_own_fd_close(&listener.own);
	listener.running = false;
	listener.tid = 0;
}
