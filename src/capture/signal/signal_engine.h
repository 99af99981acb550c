/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the signal engine, and its parts (not signal.h, which is the system's). For signal*.c only.
 * All other code uses sf_engine_signal (engine.h).
 *
 *   signal.c         the engine: from the beginning to the end of a recording
 *   agents.c         the agents of a recording: looks at the child, the callers and all agents
 *   late_calls.c     processes whose agents may call yet when the child has ended
 *   agent.c          one agent: the messages to it and from it, its outbox
 *   agent_start.c    the path of the agent's library, and its options as texts
 *   options.c        the options of `record` that go to the agent
 *   missing_agent.c  the reason why no agent came in
 *
 * All data from an agent is treated as hostile: its process may have run wild, or may be an attacker's.
 */
#ifndef SF_CAPTURE_SIGNAL_SIGNAL_ENGINE_H
#define SF_CAPTURE_SIGNAL_SIGNAL_ENGINE_H

#include <poll.h>
#include <stdatomic.h>

#include "base/vec.h"
#include "capture/engine.h"
#include "capture/signal/stream_reader.h"
#include "frozen/output/outbox.h"
#include "os/channel.h"
#include "stream/control.h"

enum sf_signal_state {
	SF_SIGNAL_CALLED,    /* it has been called to start */
	SF_SIGNAL_SAMPLING,
	SF_SIGNAL_STOPPING,  /* it has been called to stop, and has not confirmed it yet */
	SF_SIGNAL_OVER,
};

/* A process with the agent inside, from its call to the end of its channel. */
struct sf_signal_agent {
	int channel;                     /* -1: closed */
	int32_t pid;
	enum sf_signal_state state;
	bool first;                      /* it is a process that was chosen, not a descendant */
	bool sampled;                    /* it said READY */
	bool spoiled;                    /* its outbox cannot be read on */
	bool spoke;                      /* it may have something to say */
	uint64_t called_ns;
	struct sf_outbox_header *outbox; /* NULL: none yet */
	uint64_t written_at_stop;        /* what it had written when it was told to stop */
	uint64_t ring_size, mapped_size;
	struct sf_feed feed;
};

/* A process whose agent went without a word: it is about to end, or executes another program, from which an agent may call. */
struct sf_signal_away {
	int32_t pid;
	bool first;
	uint64_t since_ns;
};

struct sf_capture {
	struct sf_capture_options options;
	const struct sf_sink *sink;      /* while it runs */
	int listener;                    /* -1: no agent is expected to connect */
	char path[SF_CHANNEL_PATH];      /* the listener's */
	char start[SF_CONTROL_TEXT];     /* the text of START */
	char library[4096];              /* what a child is to load, ... */
	char *variable;                  /* ... and to have in its environment; NULL: no child */
	char *loads[SF_CHILD_VARIABLES]; /* ... too, up to the first NULL */
	SF_VEC(struct sf_signal_agent *) agents;
	struct sf_feeds feeds;           /* what theirs share */
	struct sf_record_header *record; /* room for one */
	SF_VEC(struct pollfd) polled;
	uint64_t start_ns;               /* when the first agent began to sample; before that when it was called */
	uint64_t idle_ns, lives_ns;      /* the last look of these kinds */
	uint64_t alone_ns;               /* since when no process that was chosen has an agent; 0: one has */
	bool any_sampled, any_ticks, noted_alone, noted_crowd;
	bool left_alone;                 /* a process that was chosen ran on without an agent */
	SF_VEC(struct sf_signal_away) away;
	bool pause;                      /* no descriptor is left for a caller: do not wait for one */
	bool knocked;                    /* an agent may be connecting */
	bool crowded;                    /* an outbox had little room left at the last look */
	char refusal[256];               /* why the agent of a process that was chosen did not begin */
	int32_t refused_pid;             /* ... and whose agent that is */
	bool child_ended;
	uint64_t last_there_ns;          /* when the child or, after its end, any agent was last there */
	uint64_t sought_ns;              /* the last search for processes that may call yet, ... */
	bool awaits_calls;               /* ... and whether there were any */
	_Atomic bool stopped;
};

/* For an agent to call, and to be ready. */
#define SF_SIGNAL_CALL_NS UINT64_C(10000000000)

/* --- agents.c. False only where the recording cannot go on. --- */

/* Looks once at the child, the callers and all agents. *more_ret: there is more to read at once. */
bool sf_signal_look(struct sf_capture *capture, bool *more_ret, struct sf_error *err);
/*
 * Waits until an agent calls or sends a message, and no longer than outboxes can wait. Marks the agents that the next
 * look hears: those that sent a message meanwhile. `skip`: does not wait, and marks all of them.
 */
void sf_signal_rest(struct sf_capture *capture, bool skip);
/* Frees the agents that have ended. */
void sf_signal_forget_ended(struct sf_capture *capture);
/* A note for the user, about this process. */
bool sf_signal_note(struct sf_capture *capture, int32_t pid, const char *text, struct sf_error *err);

/* --- late_calls.c --- */

/* Whether descendants of a child that has ended run, or may have begun to. */
bool sf_signal_children_go_on(struct sf_capture *capture, uint64_t now_ns);

/* --- agent.c. `err` of all: only what ends the recording; an agent's own fault ends the agent. --- */

/* Takes the channel, and tells the agent there to start. False: out of memory. */
bool sf_signal_agent_add(struct sf_capture *capture, int channel, int32_t pid, uint64_t now_ns,
			 struct sf_error *err);
/* Reads the agent's messages, if there are any. Does not wait. */
bool sf_signal_agent_hear(struct sf_capture *capture, struct sf_signal_agent *agent,
			  struct sf_error *err);
/* Passes on the records in the agent's outbox, up to a bound. *more_ret: there may be more. */
bool sf_signal_agent_drain(struct sf_capture *capture, struct sf_signal_agent *agent, bool *more_ret,
			   struct sf_error *err);
/* Sends STOP to the agent. */
void sf_signal_agent_stop(struct sf_signal_agent *agent);
/* Nothing more comes: passes on what is left, ends its threads, closes. `why`: for a note, or NULL. */
bool sf_signal_agent_end(struct sf_capture *capture, struct sf_signal_agent *agent, const char *why,
			 struct sf_error *err);
void sf_signal_agent_free(struct sf_signal_agent *agent);

/* --- agent_start.c --- */

/* The agent's library: $STILLFRAME_AGENT, else near our own program. */
bool sf_signal_library(char *ret, size_t size, struct sf_error *err);
/* "STILLFRAME=...", for a child's environment; the caller's to free. NULL when memory ran out. */
char *sf_signal_variable(const struct sf_capture_options *options, const char *socket);
/*
 * The variables by which a child's runtime loads the agent (SF_LAUNCH_LOADS), the caller's to free. False: it loads
 * another library already. `by_hooks`: the agent cannot do beside that one.
 */
bool sf_signal_loads(const char *library, bool by_hooks, char *ret[SF_CHILD_VARIABLES], struct sf_error *err);
const char *sf_signal_warning(const struct sf_capture_options *options);
/* The text of START. `socket`: where forked children are to call, or NULL. */
bool sf_signal_start_text(const struct sf_capture_options *options, const char *socket,
			  char ret[SF_CONTROL_TEXT], struct sf_error *err);

/* --- options.c: fields of the engine (engine.h) --- */

extern const struct sf_option sf_signal_options[];
/* Whether a runtime is to load the agent at its start, to walk threads in rounds. */
bool sf_signal_walks_in_rounds(const struct sf_setting *settings);
/* Whether a runtime is to load the agent at its start, to have it called by hooks. */
bool sf_signal_walks_by_hooks(const struct sf_setting *settings);
bool sf_signal_check_settings(const struct sf_setting *settings, struct sf_error *err);
void sf_signal_describe(const struct sf_setting *settings, char *ret, size_t size);

/* --- missing_agent.c --- */

/* Nothing was sampled: fills err with why, and what to do. Returns false. */
bool sf_signal_why(const struct sf_capture *capture, struct sf_error *err);

#endif
