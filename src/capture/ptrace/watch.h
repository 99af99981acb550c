/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes and threads that the ptrace engine watches. Repeated scans find them: no tracer is attached to the target
 * for its clones, forks and execs. Scans take at most 1 % of a CPU. Threads are listed when their number has changed, and
 * every 50 ms.
 */
#ifndef SF_CAPTURE_PTRACE_WATCH_H
#define SF_CAPTURE_PTRACE_WATCH_H

#include <regex.h>

#include "base/use_shares.h"
#include "base/vec.h"
#include "capture/engine.h"
#include "capture/ptrace/relay.h"
#include "capture/ptrace/thread.h"
#include "os/process.h"

struct sf_watched_process {
	int32_t  pid, parent;
	int32_t  origin;        /* the process whose code and name it has until an exec */
	bool     listed;        /* its threads were: another one that is found has begun since */
	struct sf_program program;
	uint64_t cpu_ns;        /* CPU time of all its threads when it came into sight, or when it was launched ... */
	uint64_t last_cpu_ns;   /* ... and at the last scan */
	bool     is_32_bit;     /* its program is */
	bool     is_refused;    /* it does not fit the filter: it is not passed on, and has no threads here */
	uint32_t user;          /* as of the last time that it could be read */
	bool     only_awake;    /* its threads are not read while they sleep: of the kernel, or this process */
	bool     is_new;        /* it began while it was watched, or was launched: the whole CPU time of its threads counts */
	bool     ended;         /* as of the last scan */
	uint64_t exited_ns;     /* the first exit of a first thread with its id, by a record; 0: none */
	uint64_t forked_ns;     /* the last beginning of a process with its id, by a record; 0: none */
	bool     executes;      /* the last scan has found another program in it, and has left that to the record of its exec */
	bool     first;         /* it was chosen, and no ancestor of it was */
	uint64_t children_cpu_ns; /* of such a process: the CPU time of its children before it was watched */
	char     name[SF_TASK_NAME]; /* as an engine has seen it; "": it has not */
	uint64_t threads_cpu_ns;/* what its threads used while they were watched, of those that ended */
	struct sf_use_shares little; /* of its threads that use little (unsampled.h) */
};

struct sf_watch {
	const struct sf_capture_options *options;
	struct sf_relay *relay;
	SF_VEC(struct sf_watched_process) processes;
	SF_VEC(struct sf_thread *) threads; /* by tid, outside of a scan */
	struct sf_ids ids;       /* scratch */
	struct sf_ids unreaped;  /* processes whose end was counted: until their parents wait for them, searches find them again */
	int cgroup;              /* the folder of the control group that is watched; 0: none */
	regex_t  names;          /* of threads, if ... */
	bool     has_names;
	uint32_t last_serial, n_scans;
	uint64_t listed_cpu_ns;  /* CPU time of all processes when their threads were last listed */
	uint64_t named_cpu_ns;   /* CPU time of all processes when names were last renewed */
	uint32_t ran_scan;       /* the last scan that found more CPU time than the scan before it */
	uint64_t begun;          /* the first scan, by sf_process_start_clock; 0 where a command is launched: what it starts is new */
	uint64_t next_scan_ns, next_list_ns, next_children_ns;
	bool     over;           /* the recording ends: its threads need not */

	/* The engine has records: */
	bool by_samples;         /* new threads come into sight by their samples (sf_watch_knows_by_samples) */
	bool knows_children;     /* of all processes that begin: a search for them would only find them later */
	bool keeps_ended;        /* of ends and execs: what a scan finds ended, or in a new program, is left until the next scan */
	bool has_kept;           /* the last scan has kept one */
	bool any_replaced;       /* the id of a process may be another one's (sf_watch_is_anothers) */
	uint64_t recorded_until_ns; /* of sleeps: all records until then have been read */
	struct sf_switches switches; /* of records of them */
	uint64_t most_unsampled_ns; /* CPU time in the control group, at most, of which there are no samples; 0: not known */

	/* For notes: threads and processes that are not watched. */
	uint32_t n_without_files, most_without_files; /* threads for which no file could be opened: in the last list, at most */
	uint32_t n_32_bit;       /* processes with 32-bit programs; the first of them: */
	int32_t  first_32_bit;
	char     name_32_bit[SF_TASK_NAME];

	/* CPU time that is in no thread's account. */
	uint64_t cpu_ns;         /* of all processes, as sf_watch_others_ran() found it */
	int64_t  others_ns;      /* of the processes, that is in no thread's run: at the least */
	size_t   n_first;        /* first processes that live */
	bool     lost_firsts;    /* the last of them has just ended */
	uint64_t children_cpu_ns; /* of the children of first processes that have ended, while these were watched */
	uint64_t ended_cpu_ns;   /* of the descendants that have ended */
	uint64_t lost_cpu_ns;    /* of threads that have ended, and for which no sample stands */
};

bool sf_watch_open(struct sf_watch *watch, const struct sf_capture_options *options,
		   struct sf_error *err);
void sf_watch_close(struct sf_watch *watch); /* every thread must have been ended */

/*
 * Whether processes and threads come into sight by their first samples only: all of the machine, without those that
 * sleep. A thread without a sample is not looked at. A thread's first sample stands for its share of a CPU's clock, and
 * the others, with the rest at its end, for what it has used since. On average the first sample stands for what came before
 * it, and for the threads that have no sample. So the sum is right, but for the rests of threads whose ends are not known.
 */
static inline bool sf_watch_is_sampled(const struct sf_watch *watch)
{
	return watch->options->all && !watch->options->blocked_rate_mhz;
}

/*
 * The same of one thread: those of the kernel and of this process, too, where others are known by looks; and those that
 * had no sample at `by_samples`, or came into sight since.
 */
static inline bool sf_watch_knows_by_samples(const struct sf_watch *watch, const struct sf_thread *thread)
{
	return sf_watch_is_sampled(watch) || thread->only_awake || thread->by_samples;
}

/*
 * Scans for new and ended processes and threads, if it is time, and passes them to the relay. False: all are gone, and
 * no other will come.
 */
bool sf_watch_scan(struct sf_watch *watch, uint64_t now_ns);

/* The next one is due, and lists all threads: something has changed, or has ended. */
static inline void sf_watch_scan_soon(struct sf_watch *watch)
{
	watch->next_scan_ns = watch->next_list_ns = 0;
}

/* Ends what the last scan has kept, without a look at the others: the last records of it are read. */
void sf_watch_end_kept(struct sf_watch *watch, uint64_t now_ns);

/*
 * For how long threads have run that have not been looked at lately: the processes' own CPU clocks show so much more than
 * the looks at all others explain. After all have been looked at, sf_watch_looked_at_all() says so.
 */
uint64_t sf_watch_others_ran(struct sf_watch *watch);
void sf_watch_looked_at_all(struct sf_watch *watch);

/*
 * By the processes' own CPU clocks. The same as cpu_ns: no thread has run since sf_watch_others_ran(), apart from one that
 * runs at this moment, of which the kernel adds to the clocks at its ticks.
 */
uint64_t sf_watch_cpu_ns(const struct sf_watch *watch);

/*
 * The time that is counted as asleep belongs to the sleep that the last sample shows: before a look that may find
 * another one.
 */
void sf_watch_extend_sleep(struct sf_watch *watch, struct sf_thread *thread, uint64_t now_ns);

/*
 * A look at a thread that may be held now, where accounts are kept by sf_thread_measure(). False: it is gone, and the next scan
 * ends it, unless it has exited as the first thread of a process that goes on.
 */
bool sf_watch_look_to_hold(struct sf_watch *watch, struct sf_thread *thread, uint64_t now_ns);

/*
 * Of a control group only: a thread that has used much more CPU time than its samples show (sampled_ns) was elsewhere. Its
 * account keeps what they show. Where records of samples were lost nothing shows that.
 */
void sf_watch_forget_elsewhere(const struct sf_watch *watch, struct sf_thread *thread, uint64_t sampled_ns);

/* Ends one thread's accounts (the rest is a loss) and hands it to the relay. */
void sf_watch_end_thread(struct sf_watch *watch, size_t index, uint64_t now_ns);

/* Ends all threads and processes, and counts the CPU time that no thread's account holds. */
void sf_watch_end(struct sf_watch *watch, uint64_t now_ns);

/*
 * For an engine that has records of the beginnings of processes and threads. A new process, with the name from its record
 * ("": there is none, and it has its parent's); and a new thread, whose whole CPU time counts. Either may have ended
 * already. The thread is NULL if there is no memory, or the process does not fit the filter.
 */
void sf_watch_add_process(struct sf_watch *watch, int32_t pid, int32_t parent, const char *name);
bool sf_watch_has_process(const struct sf_watch *watch, int32_t pid);
/* The name that an engine or a scan has seen of a watched process; "" if there is none. */
void sf_watch_process_name(const struct sf_watch *watch, int32_t pid, char ret[SF_TASK_NAME]);
/* Whether the process does not fit the filter. */
bool sf_watch_is_refused(const struct sf_watch *watch, int32_t pid);
struct sf_thread *sf_watch_add_thread(struct sf_watch *watch, int32_t pid, int32_t tid, uint64_t now_ns);

/*
 * The process began while it was watched: an engine has the record of its start. A scan may have found the process
 * before. Its whole CPU time counts, as that of a new one.
 */
void sf_watch_process_begins(struct sf_watch *watch, int32_t pid);

/*
 * The first thread of a process has exited; a process has begun that has the id of a watched one. The id of a process that has
 * ended is used again: until a scan has found that, what comes after the beginning is of another process.
 */
void sf_watch_first_exits(struct sf_watch *watch, int32_t pid, uint64_t exit_ns);
void sf_watch_id_begins(struct sf_watch *watch, int32_t pid, uint64_t fork_ns);
bool sf_watch_is_anothers(const struct sf_watch *watch, int32_t pid, uint64_t time_ns);

/*
 * The process, which was added, begins now: where it has ended already it has the name and the code that its parent has
 * now. When it was added these may have been of an earlier program of the parent.
 */
void sf_watch_fork(struct sf_watch *watch, int32_t pid);

/*
 * The process, which was added, has run no program of its own: where it has ended already it has the code of `origin`, its
 * parent or an ancestor of that. The ones between need not have come into sight.
 */
void sf_watch_originates(struct sf_watch *watch, int32_t pid, int32_t origin);

/* The process has executed a program, which gives it this name. */
void sf_watch_exec(struct sf_watch *watch, int32_t pid, const char *name);

/*
 * The process has executed a program at exec_ns. Where its first thread had exited before, the only one that has not did that, and
 * goes on under the first one's id (execve(2), "Effect on process attributes"). To be called before the first one's counts are
 * read again.
 */
void sf_watch_take_over(const struct sf_watch *watch, int32_t pid, uint64_t exec_ns);

/* The thread has another name now. */
void sf_watch_rename(struct sf_watch *watch, int32_t tid, const char *name, uint64_t now_ns);

/* The thread with this id, or NULL. */
struct sf_thread *sf_watch_find(const struct sf_watch *watch, int32_t tid);

#endif
