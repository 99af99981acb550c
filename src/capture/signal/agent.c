/* SPDX-License-Identifier: Apache-2.0 */
/* An agent at the other end of a channel. A fault of the agent ends this agent with a note; the recording goes on. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "capture/signal/signal_engine.h"
#include "os/clock.h"
#include "stream/check.h"

#define MIN_RING (UINT64_C(1) << 12)
#define MAX_RING (UINT64_C(1) << 30)
#define RECORDS_AT_ONCE 20000 /* then others have their turn, and the end of the time is looked at */

bool sf_signal_agent_add(struct sf_capture *capture, int channel, int32_t pid, uint64_t now_ns,
			 struct sf_error *err)
{
	struct sf_signal_agent *agent = calloc(1, sizeof(*agent));

	if (!agent || !sf_feed_init(&agent->feed, pid, &capture->feeds, err)) {
		free(agent);
		close(channel);
		return sf_fail_memory(err);
	}
	agent->channel = channel;
	agent->pid = pid;
	agent->first = sf_capture_is_chosen(&capture->options, pid);
	agent->called_ns = now_ns;
	agent->spoke = true;
	if (agent->first)
		capture->left_alone = false;
	if (!sf_vec_push(&capture->agents, agent)) {
		sf_signal_agent_free(agent);
		return sf_fail_memory(err);
	}
	/* Where it has gone meanwhile, the end of its channel says so at the next look. */
	sf_control_send(channel, SF_CONTROL_START, capture->start, -1, NULL);
	return true;
}

void sf_signal_agent_free(struct sf_signal_agent *agent)
{
	if (agent->outbox)
		munmap(agent->outbox, agent->mapped_size);
	if (agent->channel >= 0)
		close(agent->channel);
	sf_feed_deinit(&agent->feed);
	free(agent);
}

/* --- its outbox --- */

/*
 * The outbox must be memory that nobody can take away under us (SIGBUS): a memfd with F_SEAL_SHRINK, and of
 * ordinary pages, which are there when they are touched. NULL, or what is wrong with it.
 */
static const char *check_memory(int fd, uint64_t *size_ret)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs system;
	struct stat about;

	if (seals < 0 || fstat(fd, &about) != 0 || fstatfs(fd, &system) != 0 ||
	    (uint64_t)system.f_type != TMPFS_MAGIC)
		return "its outbox is no shared memory";
	if (!(seals & F_SEAL_SHRINK))
		return "its outbox might shrink";
	if (about.st_size < (off_t)(sizeof(struct sf_outbox_header) + MIN_RING) ||
	    (uint64_t)about.st_size > 2 * MAX_RING)
		return "its outbox is too small or too large";
	*size_ret = (uint64_t)about.st_size;
	return NULL;
}

/* The ring as large as the memory has room for; what its header says must be the same. */
static uint64_t ring_size_of(uint64_t memory_size)
{
	uint64_t size = MIN_RING;

	while (size < MAX_RING && 2 * size <= memory_size - sizeof(struct sf_outbox_header))
		size *= 2;
	return size;
}

static const char *map_outbox(struct sf_signal_agent *agent, int fd)
{
	uint64_t size;
	const char *wrong = check_memory(fd, &size);
	void *memory;

	if (wrong)
		return wrong;
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return "its outbox cannot be mapped";
	agent->outbox = memory;
	agent->mapped_size = size;
	agent->ring_size = ring_size_of(size);
	if (agent->outbox->magic != SF_OUTBOX_MAGIC || agent->outbox->size != agent->ring_size)
		return "its outbox does not look like one";
	if (agent->outbox->version != SF_STREAM_VERSION)
		return "its outbox is of another version of stillframe";
	return NULL;
}

/*
 * Passes one record on. Returns 1, or 0 if there is none, or -1 if the recording cannot go on. *wrong_ret: a fault, for
 * which the agent is ended.
 */
static int pass_one(struct sf_capture *capture, struct sf_signal_agent *agent,
		    const char **wrong_ret, struct sf_error *err)
{
	int got = sf_outbox_get(agent->outbox, agent->ring_size, capture->record,
				SF_STREAM_MAX_RECORD);
	struct sf_error why = { 0 };

	if (got == 0)
		return 0;
	*wrong_ret = got < 0 ? "its outbox holds what cannot be a record"
			     : sf_stream_check(capture->record, capture->record->size);
	if (*wrong_ret || sf_feed_record(&agent->feed, capture->sink, capture->record, &why))
		return 1;
	if (why.code == SF_E_INPUT) {
		*wrong_ret = "its samples add up to more time than there was";
		return 1;
	}
	if (err)
		*err = why;
	return -1;
}

bool sf_signal_agent_drain(struct sf_capture *capture, struct sf_signal_agent *agent, bool *more_ret,
			   struct sf_error *err)
{
	const char *wrong = NULL;

	*more_ret = false;
	for (int i = 0; agent->outbox && agent->state != SF_SIGNAL_OVER; i++) {
		int passed = i < RECORDS_AT_ONCE ? pass_one(capture, agent, &wrong, err) : 0;

		if (wrong) {
			agent->spoiled = true;
			return sf_signal_agent_end(capture, agent, wrong, err);
		}
		if (passed <= 0) {
			*more_ret = i == RECORDS_AT_ONCE;
			return passed == 0;
		}
	}
	return true;
}

/* --- what it says --- */

static bool take_ready(struct sf_capture *capture, struct sf_signal_agent *agent, int fd,
		       struct sf_error *err)
{
	const char *wrong = "it is ready twice, or without an outbox";

	if (fd >= 0 && !agent->outbox && agent->state == SF_SIGNAL_CALLED)
		wrong = map_outbox(agent, fd);
	if (fd >= 0)
		close(fd);
	if (wrong)
		return sf_signal_agent_end(capture, agent, wrong, err);
	agent->state = SF_SIGNAL_SAMPLING;
	agent->sampled = true;
	if (!capture->any_sampled)
		capture->start_ns = sf_now_ns();
	capture->any_sampled = true;
	return true;
}

static bool take_message(struct sf_capture *capture, struct sf_signal_agent *agent,
			 const struct sf_control *message, int fd, struct sf_error *err)
{
	switch (message->kind) {
	case SF_CONTROL_READY:
		return take_ready(capture, agent, fd, err);
	case SF_CONTROL_REFUSED:
		return sf_signal_agent_end(capture, agent, message->text, err);
	case SF_CONTROL_DONE:
		return sf_signal_agent_end(capture, agent, *message->text ? message->text : NULL, err);
	default:
		return sf_signal_agent_end(capture, agent, "it says what only stillframe may say",
					   err);
	}
}

/* Of an agent that was told to stop, nothing more is wanted: its program may be ending at the same time. */
static bool note_away(struct sf_capture *capture, const struct sf_signal_agent *agent)
{
	const struct sf_signal_away away = { agent->pid, agent->first, sf_now_ns() };

	return !agent->sampled || agent->state == SF_SIGNAL_STOPPING || sf_vec_push(&capture->away, away);
}

bool sf_signal_agent_hear(struct sf_capture *capture, struct sf_signal_agent *agent,
			  struct sf_error *err)
{
	struct sf_control message;
	struct sf_error wrong = { 0 };
	int fd, got;

	if (agent->state == SF_SIGNAL_OVER)
		return true;
	got = sf_control_receive(agent->channel, &message, &fd, 0, &wrong);
	if (got > 0)
		return take_message(capture, agent, &message, fd, err);
	if (got < 0 && wrong.os_errno == ETIMEDOUT)
		return true;
	if (got < 0)
		return sf_signal_agent_end(capture, agent, wrong.text, err);
	if (!note_away(capture, agent))
		return sf_fail_memory(err);
	return sf_signal_agent_end(capture, agent,
				   agent->sampled ? NULL : "it went away before it began", err);
}

void sf_signal_agent_stop(struct sf_signal_agent *agent)
{
	if (agent->state != SF_SIGNAL_CALLED && agent->state != SF_SIGNAL_SAMPLING)
		return;
	agent->state = SF_SIGNAL_STOPPING;
	/* Where this fails the channel is closed, which says the same. */
	sf_control_send(agent->channel, SF_CONTROL_STOP, NULL, -1, NULL);
}

/* --- its end --- */

static bool note(struct sf_capture *capture, const struct sf_signal_agent *agent, const char *why,
		 struct sf_error *err)
{
	char text[1024];

	if (agent->first && !agent->sampled && !capture->refusal[0]) {
		snprintf(capture->refusal, sizeof(capture->refusal), "%.255s", why);
		capture->refused_pid = agent->pid;
	}
	snprintf(text, sizeof(text), "process %d is %s: %.*s", agent->pid,
		 agent->sampled ? "sampled no longer" : "not sampled", (int)strcspn(why, "\n"), why);
	return !capture->sink->note || capture->sink->note(capture->sink->arg, agent->pid, text, err);
}

/* Passes on the present content of the outbox, and no more: a process that runs wild may go on writing. */
static bool drain_last(struct sf_capture *capture, struct sf_signal_agent *agent,
		       const char **wrong_ret, struct sf_error *err)
{
	uint64_t left = agent->ring_size;
	int passed = 1;

	while (passed > 0 && !*wrong_ret && left) {
		passed = pass_one(capture, agent, wrong_ret, err);
		if (passed > 0 && !*wrong_ret)
			left -= left < capture->record->size ? left : capture->record->size;
	}
	return passed >= 0;
}

/* Counts the records that were lost for want of room, and one whose writer was killed before it was complete. */
static bool count_lost(struct sf_capture *capture, struct sf_signal_agent *agent,
		       struct sf_error *err)
{
	struct sf_outbox_header *box = agent->outbox;
	struct sf_error why = { 0 };
	bool torn = atomic_load(&box->head) != atomic_load(&box->tail);

	if (sf_feed_lost(&agent->feed, capture->sink, atomic_load(&box->lost) + torn, &why) ||
	    why.code == SF_E_INPUT)
		return true;
	if (err)
		*err = why;
	return false;
}

bool sf_signal_agent_end(struct sf_capture *capture, struct sf_signal_agent *agent, const char *why,
			 struct sf_error *err)
{
	const char *wrong = NULL;

	if (agent->state == SF_SIGNAL_OVER)
		return true;
	agent->state = SF_SIGNAL_OVER;
	close(agent->channel);
	agent->channel = -1;
	if (agent->sampled && !agent->spoiled && !drain_last(capture, agent, &wrong, err))
		return false;
	if (agent->sampled && !count_lost(capture, agent, err))
		return false;
	capture->any_ticks |= agent->feed.ticks > 0;
	if ((why || wrong) && !note(capture, agent, why ? why : wrong, err))
		return false;
	return sf_feed_finish(&agent->feed, capture->sink, err);
}
