/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The relay and the records in its ring (relay.h), for relay.c, which writes them, and relay_walker.c, which reads
 * them. To add a record: its type here, a function in relay.c, a case in relay_walker.c.
 */
#ifndef SF_CAPTURE_PTRACE_RELAY_RECORD_H
#define SF_CAPTURE_PTRACE_RELAY_RECORD_H

#include <pthread.h>

#include "capture/ptrace/relay.h"
#include "frozen/output/outbox.h"
#include "os/own_thread.h"

#define SF_RELAY_PAUSE_NS 2000000    /* of a thread that has to wait for the other one */

struct sf_relay {
	struct sf_outbox_header *ring;
	struct sf_sink sink;
	pthread_t walker;
	_Atomic int32_t walker_tid;      /* set by it */
	struct sf_stuck stuck;           /* the walker, for the holding thread while that waits ... */
	uint64_t looked_ns;              /* ... and when it looked */
	void (*waiting)(void *arg);      /* called again and again then; NULL: nothing */
	void *waiting_arg;
	bool no_times;                   /* sf_relay_leave_out_times */
	struct sf_memory *memory;        /* the walker's */
	struct sf_relay_still *still;    /* the reservation under way, */
	size_t reserved;                 /* and its size */
	_Atomic uint32_t only_cut;       /* sf_relay_only_cut */
	_Atomic uint64_t usual_ns;       /* sf_relay_usual_walk_ns */
	uint64_t walked_ns;              /* the walker's: its CPU time when the last still had been walked */
	_Atomic uint64_t due_ns;         /* when the holding thread goes on */
	_Atomic uint32_t calls;          /* of the walking thread, which sleeps while this is what it was */
	_Atomic bool done;               /* the holding thread writes no more */
	_Atomic bool failed;             /* the sink failed; error is set */
	struct sf_error error;           /* the walker's, until it was joined */
};

enum sf_relay_record {
	SF_RELAY_PROCESS = 1,
	SF_RELAY_PROCESS_FORKED,
	SF_RELAY_PROCESS_NAME,
	SF_RELAY_PROCESS_END,
	SF_RELAY_MAPPING,
	SF_RELAY_THREAD,
	SF_RELAY_THREAD_END,
	SF_RELAY_AGAIN,
	SF_RELAY_WOKEN,
	SF_RELAY_LOSS,
	SF_RELAY_STILL,
};

/* Every record but a still and a mapping. Each type uses the fields that its function of the sink takes. */
struct sf_relay_event {
	uint32_t serial;
	int32_t pid, parent, tid;
	char name[SF_TASK_NAME];
	uint64_t time_ns, cpu_ns;
	enum sf_loss cause;
	struct sf_weight weight;
	struct sf_thread *thread;        /* that has ended: the walker destroys it */
};

struct sf_relay_mapped {
	struct sf_mapping mapping;       /* its path is `path` */
	int32_t pid;
	char path[];
};

struct sf_relay_still {
	struct sf_thread *thread;
	struct sf_weight weight;
	uint64_t hold_ns;
	struct sf_stack_copy copy;
};

/* The walking thread: hands all records to the sink until the relay is done and the ring is empty. arg: the relay. */
void *sf_relay_walk(void *arg);

#endif
