/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a feed (stream_reader.h), for stream_reader.c, which decodes its records. */
#ifndef SF_CAPTURE_SIGNAL_STREAM_FEED_H
#define SF_CAPTURE_SIGNAL_STREAM_FEED_H

#include "capture/signal/stream_reader.h"

/* Nanoseconds of all samples, or the amount of all events: the first are more than 146 years. A feed with more is refused. */
#define SF_FEED_MAX_SUM (UINT64_C(1) << 62)

/* Takes room for `n` more; false: there is none, and sf_feed_note_limits() makes a note of it. */
bool sf_feed_take_room(struct sf_feed *feed, enum sf_feed_limit limit, uint64_t n);

/* The sink gets a note for each limit that has been reached since the last call. */
bool sf_feed_note_limits(struct sf_feed *feed, const struct sf_sink *sink, struct sf_error *err);

/* Another program has the process now, or another process speaks: ends its threads, and its numbers start anew. */
bool sf_feed_start_anew(struct sf_feed *feed, const struct sf_sink *sink, struct sf_error *err);

/* The process that speaks says how its clock stands (time_namespaces(7)). */
void sf_feed_set_clock(struct sf_feed *feed, const struct sf_stream_process *process);
/* A record has this time: returns it by the caller's clock. */
uint64_t sf_feed_take_time(struct sf_feed *feed, uint64_t time_ns);

/* The thread to which the sender gave this serial; NULL: no record has introduced it. */
struct sf_feed_thread *sf_feed_find_thread(struct sf_feed *feed, uint32_t serial);

/* The label with the sender's number; NULL: no record has introduced it. */
const struct sf_feed_label *sf_feed_find_label(const struct sf_feed *feed, uint32_t number);

/* Adds to the feed's sums. `thread`: whose time it is, or NULL. False: the sums are too large. */
bool sf_feed_weigh(struct sf_feed *feed, struct sf_feed_thread *thread, struct sf_weight *ret, uint64_t cpu_ns,
		   uint64_t wall_ns, uint32_t ticks, struct sf_error *err);

/* A record's frames become feed->frames. False: no memory. */
bool sf_feed_take_frames(struct sf_feed *feed, const struct sf_stream_frame *frames, uint32_t n);

#endif
