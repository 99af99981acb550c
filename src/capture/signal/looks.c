/* SPDX-License-Identifier: Apache-2.0 */
/* A look at everything that a recording watches, and the rest between two looks, which a call or a message ends. */
#include "capture/signal/signal_engine.h"

#include <sys/wait.h>

#include "os/clock.h"

#define DRAIN_MS 20          /* between two looks, ... */
#define CROWDED_MS 5         /* ... and while outboxes fill faster */
#define CROWDED 8            /* part of its ring that fills between two looks */
#define IDLE_NS 100000000u

/* A program that was sampled and runs another one since, into which the agent does not come. */
static bool look_whether_alone(struct sf_capture *capture, uint64_t now_ns, struct sf_error *err)
{
	if (sf_signal_first_is_there(capture)) {
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
		capture->child_ended_ns = sf_now_ns();
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
	fine = sf_signal_answer_all(capture, now_ns, err);
	for (size_t i = 0; fine && i < capture->agents.n; i++) {
		fine = look_at(capture, capture->agents.items[i], &more, err);
		*more_ret |= fine && more;
	}
	fine = fine && sf_signal_end_gone(capture, now_ns, err);
	sf_signal_forget_ended(capture);
	sf_signal_look_for_away(capture, now_ns);
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
