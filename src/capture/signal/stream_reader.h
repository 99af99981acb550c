/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns the records of one process into calls of a sink: the sender's serials become the session's, and labels become
 * their texts. Used for a channel (one feed for each process that has one) and for a stream file.
 * Ordinary code, one thread at a time for all feeds of one sink.
 */
#ifndef SF_CAPTURE_SIGNAL_STREAM_READER_H
#define SF_CAPTURE_SIGNAL_STREAM_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/intern.h"
#include "base/vec.h"
#include "capture/sink.h"
#include "stream/record.h"

#define SF_FEED_ENGINE "signal" /* the engine whose records these are */

struct sf_feed_thread {
	uint32_t serial;          /* the session's */
	uint64_t cpu_ns;          /* of its samples and losses so far, each by the kernel's count */
	bool ended;
	bool full_name;           /* it is the whole one; the system's would be less */
};

struct sf_feed_label {
	const char *key, *value;  /* key owns the memory of both */
};

/* The quantities that are limited for all feeds of a sink together. stream_feed.c has the numbers. */
enum sf_feed_limit {
	SF_FEED_PROCESSES,
	SF_FEED_THREADS,
	SF_FEED_IMAGES,
	SF_FEED_LABELS,
	SF_FEED_LABEL_TEXT,
	SF_FEED_NOTES,
	SF_FEED_N_LIMITS,
};

/* The state that the feeds of one sink share, zero at first. It outlives them. */
struct sf_feeds {
	uint32_t n_serials;       /* the session's serials that are in use */
	uint64_t used[SF_FEED_N_LIMITS];
	char     measure[64], unit[16]; /* of the event that they count; "": none */
	uint32_t n_counting, n_counted; /* measures that began, and that ended with their count */
	uint64_t counted;         /* the sum of these */
	unsigned full, noted;     /* bits: the limits that something was left out for; those of which the sink has a note */
};

struct sf_feed {
	int32_t pid;              /* the process's; 0: not known yet */
	bool pid_given;           /* by the caller: what the records say does not matter */
	struct sf_feeds *feeds;
	bool left_out;            /* its process is one too many */
	int64_t ahead_ns;         /* so far its clock is behind the caller's, where they are in different time namespaces */
	struct sf_intern *numbers;               /* the sender's serial: its place in threads + 1 */
	SF_VEC(struct sf_feed_thread) threads;
	struct sf_intern *label_numbers;         /* the sender's number: its place in labels + 1 */
	SF_VEC(struct sf_feed_label) labels;
	struct sf_intern *event_labels;          /* those that events carry, key and value; NULL: none yet */
	SF_VEC(struct sf_frame) frames;          /* of the sample at hand */
	uint64_t noted_lost;      /* lost records that the sink has as losses */
	uint64_t cpu_ns, wall_ns, ticks, amount; /* of all samples and losses so far */

	/* For the caller. */
	uint64_t last_ns;         /* the latest time in any record, by the caller's clock */
	bool ended;               /* END was there */
};

/*
 * `pid` is the process's if the caller knows it better than the process itself (the socket's
 * peer); 0: its PROCESS record has it.
 */
bool sf_feed_init(struct sf_feed *feed, int32_t pid, struct sf_feeds *feeds, struct sf_error *err);
void sf_feed_deinit(struct sf_feed *feed);

/*
 * Passes one record to the sink. sf_stream_check has accepted the record before.
 *
 * A reference to a thread, image or label that no record has introduced is no error. A sample of such a thread is a loss
 * of no known thread: its THREAD record was lost for want of room. Such a frame or label is unknown.
 *
 * A record beyond a limit is treated as if it had not come, and the sink gets one note for each limit. False when the
 * sink failed, memory ran out, or the times add up to more than any recording can have.
 */
bool sf_feed_record(struct sf_feed *feed, const struct sf_sink *sink,
		    const struct sf_record_header *record, struct sf_error *err);

/*
 * Passes the sender's count of lost records (outbox, END) to the sink. `total` counts from the beginning; the sink gets
 * the difference to the last call.
 */
bool sf_feed_lost(struct sf_feed *feed, const struct sf_sink *sink, uint64_t total,
		  struct sf_error *err);

/* The stream is over: ends the threads that have not ended, at feed->last_ns. */
bool sf_feed_finish(struct sf_feed *feed, const struct sf_sink *sink, struct sf_error *err);

/* All streams are over: passes on what was counted of the event, if they counted one, and all of them to the end. */
bool sf_feeds_finish(const struct sf_feeds *feeds, const struct sf_sink *sink, struct sf_error *err);

#endif
