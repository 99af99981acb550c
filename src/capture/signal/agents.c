/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agents of a recording. A look takes those that call, passes on what all of them say, and ends those whose process has
 * ended or runs another program. The rest between two looks ends when an agent calls or sends a message.
 */
#include "capture/signal/signal_engine.h"

#include <sys/wait.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/process.h"

#define LIVES_NS 500000000u
#define MAX_AGENTS 1024
#define CALLS_AT_ONCE 64
#define MAX_ANCESTORS 64 /* from a process that calls to one that was chosen */
#define DRAIN_MS 20          /* between two looks, ... */
#define CROWDED_MS 5         /* ... and while outboxes fill faster */
#define CROWDED 8            /* part of its ring that fills between two looks */
#define IDLE_NS 100000000u

/* --- who calls --- */

/* The last words of an agent may be READY, DONE, and the end of the channel. */
static bool end_after_last_words(struct sf_capture *capture, struct sf_signal_agent *agent,
				 struct sf_error *err)
{
	bool fine = true;

	for (int i = 0; fine && i < 3; i++)
		fine = sf_signal_agent_hear(capture, agent, err);
	return fine && sf_signal_agent_end(capture, agent, NULL, err);
}

/* The program that was there before has gone (exec), even if a descendant keeps its channel open. */
static bool end_earlier(struct sf_capture *capture, int32_t pid, struct sf_error *err)
{
	bool fine = true;

	for (size_t i = 0; fine && pid && i < capture->agents.n; i++) {
		if (capture->agents.items[i]->pid == pid)
			fine = end_after_last_words(capture, capture->agents.items[i], err);
	}
	return fine;
}

bool sf_signal_note(struct sf_capture *capture, int32_t pid, const char *text, struct sf_error *err)
{
	const struct sf_sink *sink = capture->sink;

	return !sink->note || sink->note(sink->arg, pid, text, err);
}

/* Whether it is one of the chosen processes, or descends from one. */
static bool descends(const struct sf_capture *capture, int32_t pid)
{
	for (unsigned i = 0; pid > 1 && i < MAX_ANCESTORS; i++) {
		if (sf_capture_is_chosen(&capture->options, pid))
			return true;
		pid = sf_process_parent(pid);
	}
	return false;
}

/* Without --children only the chosen processes may call. A process of another user has to descend from one of them. */
static bool may_call(const struct sf_capture *capture, int32_t pid, bool is_own)
{
	if (!capture->options.children)
		return sf_capture_is_chosen(&capture->options, pid);
	return is_own || descends(capture, pid);
}

/* Takes one call. */
static bool answer(struct sf_capture *capture, int channel, bool is_own, uint64_t now_ns, struct sf_error *err)
{
	int32_t pid = 0;
	const bool known = sf_channel_peer(channel, &pid) && may_call(capture, pid, is_own);

	if (known && capture->agents.n < MAX_AGENTS)
		return end_earlier(capture, pid, err) &&
		       sf_signal_agent_add(capture, channel, pid, now_ns, err);
	close(channel);
	if (!known || capture->noted_crowd)
		return true;
	capture->noted_crowd = true;
	return sf_signal_note(capture, pid,
			      "more than 1,024 processes ran at once: some of them are not sampled", err);
}

/* Takes the agents that call, up to a bound, and turns away those that may not. */
static bool answer_all(struct sf_capture *capture, uint64_t now_ns, struct sf_error *err)
{
	struct sf_error failed = { 0 };

	capture->pause = false;
	for (int i = 0; capture->knocked && capture->listener >= 0 && i < CALLS_AT_ONCE; i++) {
		bool is_own = false;
		int channel = sf_channel_accept_any(capture->listener, &is_own, &failed);

		if (channel < 0 && failed.code == SF_E_NONE)
			break;
		if (channel < 0)
			capture->pause = true; /* it goes on knocking */
		if (channel < 0 || !answer(capture, channel, is_own, now_ns, err))
			return channel < 0;
	}
	return true;
}

/* --- who is there --- */

static bool has_gone(const struct sf_capture *capture, const struct sf_signal_agent *agent)
{
	struct sf_program program;

	if (agent->first && capture->child_ended)
		return true;
	return agent->pid && !sf_process_program(agent->pid, &program);
}

/*
 * Now and then: ends those whose process is not there any more, or that did not begin in time. The end of a channel does not
 * come where a descendant has it open, too.
 */
static bool end_gone(struct sf_capture *capture, uint64_t now_ns, struct sf_error *err)
{
	bool fine = true;

	if (!capture->child_ended && now_ns - capture->lives_ns < LIVES_NS)
		return true;
	capture->lives_ns = now_ns;
	for (size_t i = 0; fine && i < capture->agents.n; i++) {
		struct sf_signal_agent *agent = capture->agents.items[i];

		if (has_gone(capture, agent))
			fine = end_after_last_words(capture, agent, err);
		else if (agent->state == SF_SIGNAL_CALLED &&
			 now_ns - agent->called_ns > SF_SIGNAL_CALL_NS)
			fine = sf_signal_agent_end(capture, agent, "its agent did not begin in 10 s",
						   err);
	}
	return fine;
}

void sf_signal_forget_ended(struct sf_capture *capture)
{
	size_t kept = 0;

	for (size_t i = 0; i < capture->agents.n; i++) {
		struct sf_signal_agent *agent = capture->agents.items[i];

		if (agent->state == SF_SIGNAL_OVER)
			sf_signal_agent_free(agent);
		else
			capture->agents.items[kept++] = agent;
	}
	capture->agents.n = kept;
}

static bool has_agent(const struct sf_capture *capture, int32_t pid)
{
	for (size_t i = 0; i < capture->agents.n; i++) {
		if (capture->agents.items[i]->pid == pid)
			return true;
	}
	return false;
}

/* A process that ends was not left alone: its code goes before it, and so may the threads of its agent, which have our channel. */
static bool is_still_away(struct sf_capture *capture, const struct sf_signal_away *away, uint64_t now_ns)
{
	struct sf_program now;

	if (has_agent(capture, away->pid) || now_ns > away->since_ns + SF_SIGNAL_CALL_NS ||
	    !sf_process_program(away->pid, &now))
		return false;
	capture->left_alone |= away->first && now.code && !sf_process_is_ending(away->pid);
	return true;
}

/* Forgets the processes that have ended since their agents went, that have one again, or are not heard of for long. */
static void look_for_away(struct sf_capture *capture, uint64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < capture->away.n; i++) {
		if (is_still_away(capture, &capture->away.items[i], now_ns))
			capture->away.items[kept++] = capture->away.items[i];
	}
	capture->away.n = kept;
}

/* Whether a process that was chosen has an agent. */
static bool first_is_there(const struct sf_capture *capture)
{
	for (size_t i = 0; i < capture->agents.n; i++) {
		if (capture->agents.items[i]->first)
			return true;
	}
	return false;
}

/* --- a look, and the rest after it --- */

/* A program that was sampled and runs another one since, into which the agent does not come. */
static bool look_whether_alone(struct sf_capture *capture, uint64_t now_ns, struct sf_error *err)
{
	if (first_is_there(capture)) {
		capture->alone_ns = 0;
		return true;
	}
	if (!capture->alone_ns)
		capture->alone_ns = now_ns;
	if (!capture->any_sampled || capture->noted_alone ||
	    now_ns - capture->alone_ns < SF_SIGNAL_CALL_NS)
		return true;
	capture->noted_alone = true;
	return sf_signal_note(capture, capture->options.pid,
			      "the process runs on without an agent in it, and is sampled no longer: after "
			      "an exec of a program into which it cannot come, for example", err);
}

/* The child stays a zombie here, so that its counts in the system stay. */
static void look_at_child(struct sf_capture *capture)
{
	siginfo_t about = { 0 };

	if (capture->options.child && !capture->child_ended &&
	    waitid(P_PID, (id_t)capture->options.child, &about, WEXITED | WNOHANG | WNOWAIT) == 0 && about.si_pid) {
		capture->child_ended = true;
		capture->last_there_ns = sf_now_ns();
	}
}

static bool idle(struct sf_capture *capture, uint64_t now_ns, struct sf_error *err)
{
	if (now_ns - capture->idle_ns < IDLE_NS)
		return true;
	capture->idle_ns = now_ns;
	return capture->sink->idle(capture->sink->arg, now_ns, err);
}

static bool is_crowded(const struct sf_signal_agent *agent)
{
	return agent->outbox && sf_outbox_used(agent->outbox) > agent->ring_size / CROWDED;
}

static bool look_at(struct sf_capture *capture, struct sf_signal_agent *agent, bool *more_ret,
		    struct sf_error *err)
{
	capture->crowded |= is_crowded(agent);
	return (!agent->spoke || sf_signal_agent_hear(capture, agent, err)) &&
	       sf_signal_agent_drain(capture, agent, more_ret, err);
}

/* The child comes first: so the records that it wrote before its end are read after that. */
bool sf_signal_look(struct sf_capture *capture, bool *more_ret, struct sf_error *err)
{
	uint64_t now_ns = sf_now_ns();
	bool fine, more;

	*more_ret = capture->crowded = false;
	look_at_child(capture);
	fine = answer_all(capture, now_ns, err);
	for (size_t i = 0; fine && i < capture->agents.n; i++) {
		fine = look_at(capture, capture->agents.items[i], &more, err);
		*more_ret |= fine && more;
	}
	fine = fine && end_gone(capture, now_ns, err);
	sf_signal_forget_ended(capture);
	look_for_away(capture, now_ns);
	return fine && look_whether_alone(capture, now_ns, err) && idle(capture, now_ns, err);
}

/* A place for each, whether it is open or not: -1 is waited for, and says nothing. */
static bool poll_for(struct sf_capture *capture, int fd)
{
	return sf_vec_push(&capture->polled, (struct pollfd){ .fd = fd, .events = POLLIN });
}

/* False: the senders are unknown. */
static bool wait_for_any(struct sf_capture *capture)
{
	bool fine;

	capture->polled.n = 0;
	fine = poll_for(capture, capture->pause ? -1 : capture->listener);
	for (size_t i = 0; fine && i < capture->agents.n; i++)
		fine = poll_for(capture, capture->agents.items[i]->channel);
	return poll(capture->polled.items, (nfds_t)capture->polled.n,
		    capture->crowded ? CROWDED_MS : DRAIN_MS) >= 0 && fine;
}

void sf_signal_rest(struct sf_capture *capture, bool skip)
{
	const bool known = !skip && wait_for_any(capture);

	capture->knocked = !known || capture->polled.items[0].revents;
	for (size_t i = 0; i < capture->agents.n; i++)
		capture->agents.items[i]->spoke = !known || capture->polled.items[i + 1].revents;
}
