/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of the agent. STILLFRAME=, sf_profile_start() and the START message use the same text:
 * "key=value,key=value" ("\," for a comma in a value). One table (options.c) drives parsing,
 * and the list in docs/agent.md is checked against it.
 */
#ifndef SF_AGENT_OPTIONS_H
#define SF_AGENT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "frozen/runtime_list.h"
#include "runtime/events.h"

enum sf_agent_walk { SF_AGENT_SAMPLER, SF_AGENT_HANDLER };
/* The order of the words of such an option (frozen/runtime_list.h). */
enum sf_agent_runtime_walk {
	SF_AGENT_WALK_OURS, SF_AGENT_WALK_THEIRS, SF_AGENT_WALK_BOTH, SF_AGENT_WALK_SHADOW, SF_AGENT_WALK_SHADOW_BOTH
};
enum sf_agent_clock { SF_AGENT_CPU, SF_AGENT_WALL, SF_AGENT_BOTH };
enum sf_agent_only { SF_AGENT_ALL, SF_AGENT_REGISTERED, SF_AGENT_MAIN };

#define SF_AGENT_OUT "stillframe-%p.sfs"

struct sf_agent_options {
	bool        start;            /* anything but an empty text, `listen` alone, or `off` */
	bool        listen;           /* wait on a socket for stillframe record -p; needs a
				       * thread */
	bool        children;         /* forked children and what they exec are sampled, too */
	const char *connect;          /* the channel of a stillframe that waits; NULL: none */
	const char *out;              /* the stream file; %p is the process id; default
				       * SF_AGENT_OUT */
	const char *cache;            /* sf_cache_id() of the stillframe that the channel leads to; NULL: it
				       * has none */
	int32_t     pid;              /* only this process (connect without children); 0: any */
	int32_t     first;            /* whose stream is `out` itself, set by lifecycle.c; others
				       * append .PID */
	uint64_t    rate_mhz;         /* as sf_capture_options; default 199 Hz */
	uint64_t    blocked_rate_mhz; /* default 20 Hz */
	int         clock;            /* enum sf_agent_clock; default both */
	int         walk;             /* enum sf_agent_walk */
	int         runtime_walks[SF_N_RUNTIMES]; /* by slot: enum sf_agent_runtime_walk */
	const char *hooks_only;       /* POSIX extended regex on names of methods, or NULL */
	bool        not_complete;     /* runtimes are left as they are: runtime/runtime.h, complete() */
	int         cpu_clock;        /* 0: the cheapest that works; else 1 + place in
				       * sf_agent_clocks */
	int         signal;           /* 0: chosen (signals.h) */
	int         only;             /* enum sf_agent_only */
	const char *event;            /* of a runtime of the program, sampled in place of time; NULL: none */
	struct sf_runtime_event_choice wanted_event; /* the same, found */
	const char *threads;          /* POSIX extended regex on thread names, or NULL */
	uint32_t    per_tick;         /* threads asked at one tick of the sampler's own clock; 0:
				       * all. Default 8 */
	uint32_t    max_depth;        /* default SF_DEFAULT_DEPTH */
	uint64_t    duration_ns;      /* 0: until stopped */
	bool        again;            /* after an exec: `out` is gone on with; set by lifecycle.c,
				       * no key */
	char       *text;             /* what the strings point into; owned */
};

/* Whether this is a walk by what hooks have noted (enum sf_agent_runtime_walk). */
static inline bool sf_agent_walks_by_hooks(int walk)
{
	return walk == SF_AGENT_WALK_SHADOW || walk == SF_AGENT_WALK_SHADOW_BOTH;
}

/* False with a message that names the key. sf_agent_options_deinit in any case. */
bool sf_agent_options_parse(struct sf_agent_options *ret, const char *text, struct sf_error *err);
void sf_agent_options_deinit(struct sf_agent_options *options);

/* The keys with their help, one to a line: a test compares the page with them. */
void sf_agent_options_help(char *ret, unsigned long size);

/*
 * The variable STILLFRAME= of this process, as child processes inherit it. Its text is the agent's, and lives as long as
 * the process. Ordinary code, one caller at a time.
 */

/* Children inherit the variable with this value, as the environment has it already. */
void sf_variable_keep(const char *text);

/*
 * The same, but where the options start a stream in a file, this process's id is added to the value, in the environment,
 * too: child processes see by the id that the file is in use. Sets options->first and options->again.
 */
void sf_variable_sign(const char *text, struct sf_agent_options *options);

/* "STILLFRAME=..."; NULL: there is none. Signal-safe. */
const char *sf_variable(void);

#endif
