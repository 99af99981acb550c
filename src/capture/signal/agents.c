/* SPDX-License-Identifier: Apache-2.0 */
/* The agents of a recording: takes those that call, and ends those whose process has ended or runs another program. */
#include "capture/signal/signal_engine.h"

#include <unistd.h>

#include "os/process.h"

#define LIVES_NS 500000000u
#define MAX_AGENTS 1024
#define CALLS_AT_ONCE 64
#define MAX_ANCESTORS 64 /* from a process that calls to one that was chosen */

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

bool sf_signal_answer_all(struct sf_capture *capture, uint64_t now_ns, struct sf_error *err)
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

/* The end of a channel does not come where a descendant has it open, too. */
bool sf_signal_end_gone(struct sf_capture *capture, uint64_t now_ns, struct sf_error *err)
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

/* A process that is about to end has no code any more: its memory goes before its descriptors, and so before our channel. */
static bool is_still_away(struct sf_capture *capture, const struct sf_signal_away *away, uint64_t now_ns)
{
	struct sf_program now;

	if (has_agent(capture, away->pid) || now_ns > away->since_ns + SF_SIGNAL_CALL_NS ||
	    !sf_process_program(away->pid, &now))
		return false;
	capture->left_alone |= away->first && now.code;
	return true;
}

void sf_signal_look_for_away(struct sf_capture *capture, uint64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < capture->away.n; i++) {
		if (is_still_away(capture, &capture->away.items[i], now_ns))
			capture->away.items[kept++] = capture->away.items[i];
	}
	capture->away.n = kept;
}

bool sf_signal_first_is_there(const struct sf_capture *capture)
{
	for (size_t i = 0; i < capture->agents.n; i++) {
		if (capture->agents.items[i]->first)
			return true;
	}
	return false;
}
