/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of an engine that samples from outside, and its parts. For the engines in ptrace/ and perf/ only: all other
 * code uses the engines by engine.h. All of it belongs to the holding thread, which is the only one that samples.
 */
#ifndef SF_CAPTURE_PTRACE_PTRACE_H
#define SF_CAPTURE_PTRACE_PTRACE_H

#include <stdatomic.h>

#include "capture/engine.h"
#include "capture/ptrace/displaced.h"
#include "capture/ptrace/hold_time.h"
#include "capture/ptrace/overhead_limit.h"
#include "capture/ptrace/saved.h"
#include "capture/ptrace/watch.h"
#include "os/hold.h"

/* What tick.c has found at the last tick that looked at threads. */
struct sf_ptrace_rest {
	bool     all_asleep;        /* all were passed over, and none of them has run */
	uint64_t tick_ns;
	uint32_t last_serial;       /* of the threads that there were */
	uint64_t asked_ns;          /* when the CPU clocks were last read without a look at threads */
	uint64_t all_ns;            /* the last look at all threads */
};

struct sf_capture {
	struct sf_capture_options options;
	struct sf_watch watch;
	struct sf_relay *relay;
	struct sf_hold_time hold_time;
	struct sf_displacement displacement;
	struct sf_overhead_limit limit;
	struct sf_pages pages;
	const struct sf_saved_source *saved; /* not owned; NULL: there is none */
	uint64_t sampled_ns;        /* how long, in all */
	uint64_t period_ns, blocked_period_ns;
	uint64_t random;
	int n_requested;
	unsigned n_looked;          /* threads, at this tick */
	int n_awake, n_awake_before; /* threads that were awake at this tick, at the one before */
	int child_status;
	struct sf_ptrace_rest rest;
	bool last_tick;             /* it ends what is sampled, and is due for every thread */
	bool child_ended;
	bool counts_waits;          /* accounts are kept by sf_thread_measure(): by the kernel's counts, not by the states of looks */
	bool records_sleeps;        /* the engine has records of the ends of sleeps: a look's sample is one whose end is to come */
	enum sf_hold refusal;       /* the last reason for which a thread could not be held */
	int32_t refused_pid, refused_tid;
	bool held_any;
	bool read_asleep;           /* a thread that slept was read, or held */
	_Atomic bool stopped;
};

/* Holds a thread that is awake, or one that sleeps and must be, for a sample of the tick at now_ns. */
void sf_ptrace_hold(struct sf_capture *capture, struct sf_thread *thread, uint64_t now_ns);

/* --- tick.c --- */

/* Looks at the threads that are due, and holds or reads those that a sample is due of. */
void sf_ptrace_tick(struct sf_capture *capture, uint64_t now_ns);

/* Whether none of the threads that are watched has run lately. So none of them has begun another thread, or a program. */
bool sf_ptrace_all_sleep(const struct sf_capture *capture, uint64_t now_ns);

/* --- displaced.c: the sample --- */

/* CPU time of a thread, plus 1, for which a sample at its displacement is to stand. 0: its samples come otherwise. */
typedef uint64_t sf_ptrace_need_fn(const struct sf_capture *capture, const struct sf_thread *thread);
#define SF_PTRACE_NEEDS_NONE 1

/*
 * Before a sleep until until_ns: moves the holding thread to the CPU of one of the threads that need a sample, chosen at
 * random by what they need. False: there is none.
 */
bool sf_ptrace_aim(struct sf_capture *capture, sf_ptrace_need_fn *need, uint64_t until_ns);

/* After that sleep: the thread that was displaced by its end, if that can be proven and the thread may need a sample. Or NULL. */
struct sf_thread *sf_ptrace_displaced(struct sf_capture *capture, sf_ptrace_need_fn *need);

/*
 * A sample of CPU time of that thread, after a look at it: it is held if it is awake, and read where it sleeps. The sample
 * takes its weight from the account as that of a thread that is awake.
 */
void sf_ptrace_sample_displaced(struct sf_capture *capture, struct sf_thread *thread, uint64_t now_ns);

/* Handles the next thread that stopped or has ended; false when there was none before the alarm. */
bool sf_ptrace_answer(struct sf_capture *capture, bool wait);

/* At the end: waits a little for threads whose holds were requested, and counts the rest as late. */
void sf_ptrace_let_all_go(struct sf_capture *capture);

/* Releases the threads that have stopped by now, without samples, while there is no room for one. `arg`: the capture. */
void sf_ptrace_let_go_while_waiting(void *arg);

/* Whether the last sample of a thread stands for its sleep as long as that goes on: nothing more is to be read. */
bool sf_ptrace_sleep_is_known(const struct sf_capture *capture, const struct sf_thread *thread);

/* A sample of a thread that sleeps, if it still does. */
void sf_ptrace_sample_asleep(struct sf_capture *capture, struct sf_thread *thread, uint64_t now_ns);

/*
 * The weight and state of a sample of a thread that is awake, or was at the moment of the sample: `in_call`, in a system
 * call; on_cpu: there is evidence that it ran there. hold_ns: how long it was held; it grows by holds that gave no sample.
 * False: no sample, and its time waits for the next one.
 */
bool sf_ptrace_weigh_awake(const struct sf_capture *capture, struct sf_thread *thread, bool in_call, bool on_cpu, uint64_t *hold_ns,
			   struct sf_stack_copy *copy, struct sf_weight *ret);

/* Copies the stack of a thread that slept at the last look, without a hold. */
enum sf_copy_result sf_ptrace_copy_asleep(struct sf_capture *capture, struct sf_thread *thread, const struct sf_copy_plan *plan,
					  struct sf_stack_copy *copy);

/* Counts a loss for the time that the thread's next sample would have stood for. */
void sf_ptrace_lose(struct sf_capture *capture, struct sf_thread *thread, enum sf_loss cause);

/* Blocked, or stopped: by job control, by a debugger, or amid its code by the freezer of its control group. */
uint8_t sf_ptrace_state_asleep(const struct sf_thread *thread);

/* --- outside_run.c: what the engines that sample from outside have in common --- */

/* Fills a zeroed capture. sf_outside_close in any case. */
bool sf_outside_open(struct sf_capture *capture, const struct sf_capture_options *options, struct sf_error *err);
void sf_outside_close(struct sf_capture *capture);

/*
 * Runs `sample` on the holding thread, whose samples a walking thread passes to the sink, until `sample` returns. Then
 * ends all threads and processes.
 */
bool sf_outside_run(struct sf_capture *capture, const struct sf_sink *sink, void (*sample)(struct sf_capture *capture),
		    struct sf_error *err);

/* xorshift64: a period between 3/4 and 5/4 of the wanted one, so that no thread can keep step with the samples. */
uint64_t sf_outside_jitter(struct sf_capture *capture, uint64_t period_ns);

#define SF_OUTSIDE_OPTION_MAX_COST                                                                                                     \
	{                                                                                                                              \
		.name = "max-cost", .kind = SF_OPTION_COUNT, .argument = "PERCENT", .minimum = 1, .maximum = 100,                      \
		.help = "engines outside: of all CPUs together, what sampling and walking may take "                                   \
			"(default 5, and 2 while no CPU is idle)",                                                                     \
	}

/* The options of these engines: the limit of what sampling and walking cost. */
extern const struct sf_option sf_outside_options[];

/* Sets the limit as the options say. Returns the time. On the holding thread, as the next one. */
uint64_t sf_outside_begin_limit(struct sf_capture *capture);

/* The cost of the recording so far. Now and then this also reads whether CPUs are idle. */
struct sf_overhead_limit_clocks sf_outside_look_at_costs(struct sf_capture *capture);

/* When a run that began at start_ns ends; whether it is over; and whether there is no use in going on. */
uint64_t sf_outside_end(const struct sf_capture *capture, uint64_t start_ns);
bool sf_outside_over(const struct sf_capture *capture, uint64_t end_ns, uint64_t now_ns);
bool sf_outside_given_up(const struct sf_capture *capture);

/* Fields of the engines (engine.h). */
void sf_outside_stop(struct sf_capture *capture);
int sf_outside_child_status(const struct sf_capture *capture);

/* --- dump_engine.c: fields of the engine (engine.h) --- */

bool sf_ptrace_check_dump(int32_t pid, struct sf_error *err);
bool sf_ptrace_dump(int32_t pid, const struct sf_dump_sink *sink, struct sf_dump_cost *cost,
		    struct sf_error *err);

/* The same for an engine that has a source: only threads that are on a CPU are held. */
bool sf_ptrace_dump_saved(int32_t pid, const struct sf_saved_source *source, const struct sf_dump_sink *sink,
			  struct sf_dump_cost *cost, struct sf_error *err);

#endif
