/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service thread (service.h): its loop, its start and its end. It may block and allocate; while
 * it waits, no thread is held by it.
 */
#include "agent/service/service.h"

#include <limits.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/service/service_state.h"
#include "agent/sampler/cpu_affinity.h"
#include "agent/signals.h"
#include "agent/spawn.h"
#include "agent/sampler/threads.h"
#include "frozen/raw.h"
#include "os/clock.h"
#include "stream/control.h"

#define TURN_NS 200000000u           /* between two checks of the channel without a wake-up */
#define PLACES_TURN_NS 100000000u      /* ... and at places in the code of runtimes to describe */
#define SHORT_TURN_NS 10000000u      /* while much happens */
#define YOUNG_NS 1000000000u
#define SIGNAL_CHECK_NS 100000000u
#define FLUSH_PIECE_NS 100000000u
#define LOOK_NS 1000000u

static struct sf_service the_keep; /* one profile at a time; never freed, so a late flush() finds it */

/* --- a turn --- */

/* True: it is over. The end of the channel, and anything but a STOP, is one, too. */
static bool is_told_to_stop(struct sf_service *keep)
{
	struct sf_control message;
	struct sf_error err = { 0 };
	int got;

	if (keep->channel.fd < 0)
		return false;
	if (!sf_own_fd_is_ours(&keep->channel))
		return true; /* the program has closed it */
	got = sf_control_receive(keep->channel.fd, &message, NULL, 0, &err);
	return got >= 0 || err.os_errno != ETIMEDOUT;
}

static bool is_over(struct sf_service *keep, uint64_t now_ns)
{
	uint64_t duration_ns = keep->agent->options.duration_ns;

	if (duration_ns && now_ns - keep->started_ns >= duration_ns)
		return true;
	return is_told_to_stop(keep);
}

/* Until when the thread sleeps without a wake-up; `want_ns`: when the map's next turn is due. */
static uint64_t until_ns(const struct sf_service *keep, uint64_t now_ns, bool busy, uint64_t want_ns)
{
	const uint64_t soon_ns = now_ns + SHORT_TURN_NS;
	const uint64_t late_ns = now_ns + (sf_runtimes_any(&keep->runtimes.all) ? PLACES_TURN_NS : TURN_NS);
	const uint64_t duration_ns = keep->agent->options.duration_ns;

	if (duration_ns && want_ns > keep->started_ns + duration_ns)
		want_ns = keep->started_ns + duration_ns;
	if (busy || want_ns < soon_ns)
		return soon_ns;
	return want_ns < late_ns ? want_ns : late_ns;
}

/* Until when it sleeps. */
static uint64_t turn(struct sf_service *keep, uint64_t now_ns)
{
	uint32_t asked = atomic_load(&keep->flush_asked);
	uint64_t want_ns;
	bool busy;

	sf_stream_writer_drain(keep);
	if (atomic_exchange(&keep->flushed, asked) != asked)
		sf_raw_futex_wake(&keep->flushed, INT_MAX);
	want_ns = sf_map_publisher_turn(keep, now_ns);
	busy = sf_runtime_publisher_turn(keep, now_ns) || keep->urgent ||
	       now_ns - keep->started_ns < YOUNG_NS;
	if (now_ns - keep->signal_checked_ns >= SIGNAL_CHECK_NS) {
		keep->signal_checked_ns = now_ns;
		sf_agent_signal_check();
	}
	return until_ns(keep, now_ns, busy, want_ns);
}

/* The last that the thread does: nothing is sampled any more. */
static void finish(struct sf_service *keep)
{
	sf_runtime_publisher_end(keep);
	keep->ended = sf_stream_writer_end(keep, keep->agent_cpu_ns);
	if (keep->owns_channel && sf_own_fd_is_ours(&keep->channel))
		sf_control_send(keep->channel.fd, SF_CONTROL_DONE, keep->agent->why, -1, NULL);
	if (keep->owns_channel)
		sf_own_fd_close(&keep->channel);
	sf_stream_writer_deinit(keep);
}

/* Takes the descriptors into the thread's own table; the starting thread then closes its copies. */
static void move_out(struct sf_service *keep)
{
	const int kept[] = { keep->channel.fd, keep->file ? sf_stream_file_fd(keep->file) : -1,
			     sf_handler.access.mem_fd };

	keep->apart = sf_own_table(kept, 3);
	atomic_store(&keep->began, 1);
	sf_raw_futex_wake(&keep->began, 1);
}

static void *run(void *arg)
{
	struct sf_service *keep = arg;

	struct sf_cpu_affinity near;

	move_out(keep);
	sf_cpu_affinity_init(&near, NULL);
	while (!atomic_load(&keep->quit)) {
		uint32_t heard = sf_wake_up_count(&sf_handler.keeper_bell);
		uint64_t now_ns = sf_now_ns(), wake_ns;

		if (is_over(keep, now_ns) && sf_agent_stop_from_service())
			return NULL; /* nothing here is ours any more */
		sf_cpu_affinity_woke(&near, now_ns);
		wake_ns = turn(keep, now_ns);
		sf_cpu_affinity_move(&near, now_ns, wake_ns);
		if (!atomic_load(&keep->quit))
			sf_wake_up_wait(&sf_handler.keeper_bell, heard, wake_ns);
	}
	finish(keep);
	return NULL;
}

/* --- start and stop --- */

/* The words that a late flush() may wait on go on from where they were. */
static void reset(struct sf_service *keep)
{
	uint32_t asked = atomic_load(&keep->flush_asked);

	*keep = (struct sf_service){ .channel = SF_NO_OWN_FD };
	atomic_store(&keep->flush_asked, asked);
	atomic_store(&keep->flushed, asked);
}

bool sf_service_start(struct sf_agent *agent, int channel, const char *path, struct sf_error *err)
{
	struct sf_service *keep = &the_keep;

	reset(keep);
	keep->agent = agent;
	keep->channel = sf_own_fd_of(channel);
	keep->pid = getpid();
	keep->started_ns = sf_now_ns();
	if (!sf_stream_writer_init(keep, path, err))
		return false;
	if (!sf_map_publisher_init(keep, err)) {
		sf_stream_writer_deinit(keep);
		return false;
	}
	agent->keep = keep;
	if (!sf_spawn(&keep->thread, &agent->threads->own[1], run, keep, "sf-keeper", err)) {
		agent->keep = NULL;
		sf_map_publisher_deinit(keep);
		sf_stream_writer_deinit(keep);
		return false;
	}
	while (!atomic_load(&keep->began))
		sf_raw_futex_wait(&keep->began, 0, 0);
	if (keep->apart && keep->file)
		sf_stream_file_leave(keep->file);
	return true;
}

void sf_service_take_channel(struct sf_agent *agent, struct sf_own_fd *channel)
{
	agent->keep->owns_channel = true;
	if (agent->keep->apart)
		sf_own_fd_leave(channel);
	*channel = SF_NO_OWN_FD;
}

static uint64_t own_cpu_ns(const struct sf_service *keep)
{
	uint64_t ns;

	return sf_agent_thread_cpu(keep->agent->threads->own[1], &ns) ? ns : 0;
}

static void end_thread(struct sf_service *keep)
{
	atomic_store(&keep->quit, true);
	if (pthread_equal(pthread_self(), keep->thread)) {
		pthread_detach(keep->thread);
		finish(keep);
		return;
	}
	sf_wake_up_post(&sf_handler.keeper_bell);
	pthread_join(keep->thread, NULL);
}

bool sf_service_stop(struct sf_agent *agent, uint64_t sampler_cpu_ns, struct sf_error *err)
{
	struct sf_service *keep = agent->keep;
	uint64_t cpu_ns = own_cpu_ns(keep);
	bool ok;

	keep->agent_cpu_ns = sampler_cpu_ns + cpu_ns;
	end_thread(keep);
	ok = keep->ended ||
	     sf_fail(err, SF_E_SYSTEM, "nobody reads what is sampled any more");
	sf_map_publisher_deinit(keep);
	if (keep->file_error.code != SF_E_NONE) {
		if (err)
			*err = keep->file_error;
		ok = false;
	}
	agent->keep = NULL;
	return ok;
}

void sf_service_wait_for_tables(uint64_t timeout_ns)
{
	struct sf_service *keep = &the_keep;
	const uint64_t until_ns = sf_now_ns() + timeout_ns;
	uint64_t now_ns;

	while (atomic_load(&keep->incomplete) && !atomic_load(&keep->quit) &&
	       (now_ns = sf_now_ns()) < until_ns)
		sf_sleep_until(now_ns + LOOK_NS);
}

bool sf_service_flush(uint64_t timeout_ns, struct sf_error *err)
{
	struct sf_service *keep = &the_keep;
	uint32_t wanted = atomic_fetch_add(&keep->flush_asked, 1) + 1;
	uint64_t until_ns = sf_now_ns() + timeout_ns, now_ns;
	uint32_t flushed;

	sf_wake_up_post(&sf_handler.keeper_bell);
	while ((int32_t)((flushed = atomic_load(&keep->flushed)) - wanted) < 0) {
		now_ns = sf_now_ns();
		if (atomic_load(&keep->quit) || now_ns >= until_ns)
			return sf_fail(err, SF_E_SYSTEM, "the stream file was not written in time");
		sf_raw_futex_wait(&keep->flushed, flushed, FLUSH_PIECE_NS < until_ns - now_ns ?
				  FLUSH_PIECE_NS : until_ns - now_ns);
	}
	if (keep->file_error.code == SF_E_NONE)
		return true;
	if (err)
		*err = keep->file_error;
	return false;
}

void sf_service_forget(void)
{
	struct sf_service *keep = &the_keep;

	/* Maps, images and buffers may be half changed: they are left where they are, in this copy. */
	if (keep->file)
		sf_stream_file_abandon(keep->file);
	sf_own_fd_close(&keep->channel);
	if (keep->record)
		munmap(keep->record, SF_STREAM_MAX_RECORD);
	reset(keep);
}
