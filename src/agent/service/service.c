/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service thread (service.h): its loop, its start and its end. It may block and allocate; while
 * it waits, no thread is held by it.
 */
#include "agent/service/service.h"
#include "agent/clocks/clocks.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/service/service_state.h"
#include "agent/interpose/sampling_signal.h"
#include "agent/host/spawn.h"
#include "agent/sampler/threads.h"
#include "agent/threads/exec_preparation.h"
#include "frozen/child.h"
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

enum { BEGAN = 1, FAILED }; /* sf_service.began */

SF_CHILD_DATA static struct sf_service the_service; /* one profile at a time; never freed, so a late flush() finds it */

/* --- a turn --- */

/* True: it is over. The end of the channel, and anything but a STOP, is one, too. */
static bool is_to_stop(struct sf_service *service)
{
	struct sf_control message;
	struct sf_error err = { 0 };
	int got;

	if (service->channel.fd < 0)
		return false;
	if (!sf_own_fd_is_ours(&service->channel))
		return true; /* the program has closed it */
	got = sf_control_receive(service->channel.fd, &message, NULL, 0, &err);
	return got >= 0 || err.os_errno != ETIMEDOUT;
}

static bool is_over(struct sf_service *service, uint64_t now_ns)
{
	uint64_t duration_ns = service->agent->options.duration_ns;

	if (atomic_load(&service->agent->deserted) || (duration_ns && now_ns - service->started_ns >= duration_ns))
		return true;
	return is_to_stop(service);
}

/* Until when the thread sleeps without a wake-up; `want_ns`: when the map's next turn is due. */
static uint64_t until_ns(const struct sf_service *service, uint64_t now_ns, bool busy, uint64_t want_ns)
{
	const uint64_t soon_ns = now_ns + SHORT_TURN_NS;
	const uint64_t late_ns = now_ns + (sf_runtimes_any(&service->runtimes.all) ? PLACES_TURN_NS : TURN_NS);
	const uint64_t duration_ns = service->agent->options.duration_ns;

	if (duration_ns && want_ns > service->started_ns + duration_ns)
		want_ns = service->started_ns + duration_ns;
	if (busy || want_ns < soon_ns)
		return soon_ns;
	return want_ns < late_ns ? want_ns : late_ns;
}

/* Until when it sleeps. */
static uint64_t turn(struct sf_service *service, uint64_t now_ns)
{
	uint32_t asked = atomic_load(&service->flush_asked);
	uint64_t want_ns;
	bool busy;

	/*
	 * First: the stream's file gets samples and the descriptions of their frames together, in case the program is
	 * killed next.
	 */
	busy = sf_runtime_publisher_turn(service, now_ns);
	sf_stream_writer_drain(service);
	if (atomic_exchange(&service->flushed, asked) != asked)
		sf_raw_futex_wake(&service->flushed, INT_MAX);
	want_ns = sf_map_publisher_turn(service, now_ns);
	busy = busy || service->urgent || now_ns - service->started_ns < YOUNG_NS;
	if (now_ns - service->signal_checked_ns >= SIGNAL_CHECK_NS) {
		service->signal_checked_ns = now_ns;
		if (!sf_agent_exec_under_way()) /* what the program ignores is ignored there in place of ours (interpose/exec.c) */
			sf_agent_signal_check();
		sf_spawned_follow();
	}
	return until_ns(service, now_ns, busy, want_ns);
}

/* The last that the thread does: nothing is sampled any more. */
static void finish(struct sf_service *service)
{
	sf_runtime_publisher_end(service);
	service->ended = sf_stream_writer_end(service, service->agent_cpu_ns);
	if (service->owns_channel && sf_own_fd_is_ours(&service->channel))
		sf_control_send(service->channel.fd, SF_CONTROL_DONE, service->agent->why, -1, NULL);
	if (service->owns_channel)
		sf_own_fd_close(&service->channel);
	sf_stream_writer_deinit(service);
}

static void reply(struct sf_service *service, uint32_t how)
{
	atomic_store(&service->began, how);
	sf_raw_futex_wake(&service->began, 1);
}

/* Takes the descriptors into the thread's own table; the starting thread then closes its copies. */
static void move_out(struct sf_service *service)
{
	const int kept[] = { service->channel.fd, service->file ? sf_stream_file_fd(service->file) : -1,
			     sf_handler.code.memory.mem_fd };

	service->apart = sf_own_table(kept, 3);
	reply(service, BEGAN);
}

/* Puts them back where the last thread had them. */
static bool take_over(struct sf_service *service)
{
	const int kept[] = { service->parcel->socket.fd, sf_handler.code.memory.mem_fd };
	bool ok = sf_own_table(kept, 2) && sf_parcel_take(service->parcel);

	service->parcel = NULL;
	reply(service, ok ? BEGAN : FAILED);
	return ok;
}

/* False: the descriptors cannot wait. */
static bool step_out(struct sf_service *service)
{
	sf_stream_writer_drain(service);
	if (service->apart && !sf_parcel_fill(service->parcel)) {
		snprintf(service->agent->why, sizeof(service->agent->why), "its agent had to step aside, and could not keep its files");
		return false;
	}
	service->agent->threads->own_ended_cpu_ns += sf_raw_thread_cpu_ns();
	service->agent_cpu_ns += sf_raw_thread_cpu_ns();
	service->left = true;
	return true;
}

static void *run(void *arg)
{
	struct sf_service *service = arg;

	if (!service->parcel)
		move_out(service);
	else if (!take_over(service))
		return NULL;
	while (!atomic_load(&service->quit)) {
		uint32_t heard = sf_wake_up_count(&sf_handler.output.wake_up);
		uint64_t now_ns = sf_now_ns(), wake_ns;

		if (is_over(service, now_ns) && service->stop())
			return NULL; /* nothing here is ours any more */
		wake_ns = turn(service, now_ns);
		if (!atomic_load(&service->quit))
			sf_wake_up_wait(&sf_handler.output.wake_up, heard, wake_ns);
	}
	if (!service->parcel || !step_out(service))
		finish(service);
	return NULL;
}

/* --- start and stop --- */

/* The words that a late flush() may wait on go on from where they were. The images that a child has from its parent stay. */
SF_CHILD_CODE static void reset(struct sf_service *service)
{
	uint32_t asked = atomic_load(&service->flush_asked);

	*service = (struct sf_service){ .channel = SF_NO_OWN_FD, .inherited = service->inherited };
	atomic_store(&service->flush_asked, asked);
	atomic_store(&service->flushed, asked);
}

static bool wait_for_begin(struct sf_service *service)
{
	while (!atomic_load(&service->began))
		sf_raw_futex_wait(&service->began, 0, 0);
	return atomic_load(&service->began) == BEGAN;
}

bool sf_service_start(struct sf_agent *agent, int channel, const char *path, bool (*stop)(void),
		      struct sf_error *err)
{
	struct sf_service *service = &the_service;

	reset(service);
	service->agent = agent;
	service->stop = stop;
	service->channel = sf_own_fd_of(channel);
	service->pid = getpid();
	service->started_ns = sf_now_ns();
	if (!sf_stream_writer_init(service, path, err))
		return false;
	if (!sf_map_publisher_init(service, err)) {
		sf_stream_writer_deinit(service);
		return false;
	}
	agent->keep = service;
	if (!sf_spawn(&service->thread, &agent->threads->own[1], run, service, "sf-service", err)) {
		agent->keep = NULL;
		sf_map_publisher_deinit(service);
		sf_stream_writer_deinit(service);
		return false;
	}
	wait_for_begin(service);
	if (service->apart && service->file)
		sf_stream_file_leave(service->file);
	return true;
}

void sf_service_take_channel(struct sf_agent *agent, struct sf_own_fd *channel)
{
	agent->keep->owns_channel = true;
	if (agent->keep->apart)
		sf_own_fd_leave(channel);
	*channel = SF_NO_OWN_FD;
}

static uint64_t own_cpu_ns(const struct sf_service *service)
{
	uint64_t ns;

	return sf_agent_thread_cpu(service->agent->threads->own[1], &ns) ? ns : 0;
}

static void end_thread(struct sf_service *service)
{
	atomic_store(&service->quit, true);
	if (pthread_equal(pthread_self(), service->thread)) {
		pthread_detach(service->thread);
		finish(service);
		return;
	}
	sf_wake_up_post(&sf_handler.output.wake_up);
	pthread_join(service->thread, NULL);
}

bool sf_service_stop(struct sf_agent *agent, uint64_t sampler_cpu_ns, struct sf_error *err)
{
	struct sf_service *service = agent->keep;
	uint64_t cpu_ns = own_cpu_ns(service);
	bool ok;

	service->agent_cpu_ns += sampler_cpu_ns + cpu_ns;
	end_thread(service);
	ok = service->ended ||
	     sf_fail(err, SF_E_SYSTEM, "nobody reads what is sampled any more");
	sf_map_publisher_deinit(service);
	if (service->file_error.code != SF_E_NONE) {
		if (err)
			*err = service->file_error;
		ok = false;
	}
	agent->keep = NULL;
	return ok;
}

bool sf_service_leave(struct sf_agent *agent, struct sf_parcel *parcel)
{
	struct sf_service *service = agent->keep;

	service->left = false;
	service->parcel = parcel;
	atomic_store(&service->quit, true);
	sf_wake_up_post(&sf_handler.output.wake_up);
	pthread_join(service->thread, NULL);
	agent->threads->own[1] = 0;
	return service->left;
}

/* Without a table of its own nothing has to be taken over. */
bool sf_service_return(struct sf_agent *agent, struct sf_parcel *parcel)
{
	struct sf_service *service = agent->keep;

	service->parcel = service->apart ? parcel : NULL;
	atomic_store(&service->began, 0);
	atomic_store(&service->quit, false);
	if (!sf_spawn(&service->thread, &agent->threads->own[1], run, service, "sf-service", NULL))
		return false;
	if (wait_for_begin(service))
		return true;
	pthread_join(service->thread, NULL);
	return false;
}

void sf_service_wait_for_tables(uint64_t timeout_ns)
{
	struct sf_service *service = &the_service;
	const uint64_t until_ns = sf_now_ns() + timeout_ns;
	uint64_t now_ns;

	while (atomic_load(&service->incomplete) && !atomic_load(&service->quit) &&
	       (now_ns = sf_now_ns()) < until_ns)
		sf_sleep_until(now_ns + LOOK_NS);
}

/* The sampler puts the samples of all kept stills into the outbox; in vain where it gets no CPU until then. */
static void settle_kept(uint64_t until_ns)
{
	struct sf_kept_stills *kept = sf_handler.link.kept;

	if (!sf_kept_stills_any(kept))
		return;
	atomic_store(&kept->hurry, 1);
	sf_wake_up_post(&sf_handler.link.wake_up);
	while (sf_kept_stills_any(kept) && sf_now_ns() < until_ns)
		sf_raw_futex_wait(&kept->hurry, 1, LOOK_NS);
	atomic_store(&kept->hurry, 0);
}

bool sf_service_flush(uint64_t timeout_ns, struct sf_error *err)
{
	struct sf_service *service = &the_service;
	uint64_t until_ns = sf_now_ns() + timeout_ns, now_ns;
	uint32_t wanted, flushed;

	settle_kept(until_ns - timeout_ns / 2);
	wanted = atomic_fetch_add(&service->flush_asked, 1) + 1;
	sf_wake_up_post(&sf_handler.output.wake_up);
	while ((int32_t)((flushed = atomic_load(&service->flushed)) - wanted) < 0) {
		now_ns = sf_now_ns();
		if (atomic_load(&service->quit) || now_ns >= until_ns)
			return sf_fail(err, SF_E_SYSTEM, "the stream file was not written in time");
		sf_raw_futex_wait(&service->flushed, flushed, FLUSH_PIECE_NS < until_ns - now_ns ?
				  FLUSH_PIECE_NS : until_ns - now_ns);
	}
	if (service->file_error.code == SF_E_NONE)
		return true;
	if (err)
		*err = service->file_error;
	return false;
}

SF_CHILD_CODE void sf_service_forget(bool images_are_whole)
{
	struct sf_service *service = &the_service;

	/* Maps and buffers may be half changed, and perhaps the images: they are left where they are, in this copy. */
	service->inherited = images_are_whole && !service->missing.n ? service->images : NULL;
	if (service->file && !service->apart)
		sf_stream_file_abandon(service->file);
	if (!service->apart)
		sf_own_fd_close(&service->channel);
	reset(service);
}
