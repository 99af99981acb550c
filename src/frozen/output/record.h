/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of the stream that are written while a thread is held or in its signal handler. All
 * others, and what holds for all of them, are in stream/record.h.
 */
#ifndef SF_FROZEN_OUTPUT_RECORD_H
#define SF_FROZEN_OUTPUT_RECORD_H

#include <stdint.h>

#include "frozen/output/outbox.h"

/* X(NAME, struct, what it says) */
#define SF_STREAM_TYPES(X)                                                                         \
	X(PROCESS, sf_stream_process, "the process, first; again after exec or in a forked child") \
	X(THREAD, sf_stream_thread, "a thread came into sight or changed its name")                \
	X(THREAD_END, sf_stream_thread_end, "a thread has ended, or is no longer watched")         \
	X(IMAGE, sf_stream_image, "a file that code is mapped from")                               \
	X(SAMPLE, sf_stream_sample, "where a thread stood")                                        \
	X(AGAIN, sf_stream_again, "a thread has not moved since its last sample")                  \
	X(LOSS, sf_stream_loss, "a tick without a sample")                                         \
	X(LABEL, sf_stream_label, "a label that samples may carry")                                \
	X(NOTE, sf_stream_note, "something that the user should read")                             \
	X(END, sf_stream_end, "sampling was stopped")                                             \
	X(PLACE, sf_stream_place, "the functions at a place that frames name by its key")         \
	X(MEASURE, sf_stream_measure, "the event that is counted; again at the end, with its count") \
	X(EVENT, sf_stream_event, "where an event happened")                                       \
	X(EVENT_LOSS, sf_stream_event_loss, "events of a thread that no sample stands for")

enum sf_stream_type {
	SF_STREAM_FILLER, /* 0 */
#define X(name, type, text) SF_STREAM_##name,
	SF_STREAM_TYPES(X)
#undef X
	SF_STREAM_N_TYPES
};

struct sf_stream_frame {
	uint64_t address;          /* in the file; the pc itself when image is 0; managed: the
				    * key */
	uint32_t image;            /* managed: 0 */
	uint8_t  via;              /* enum sf_via */
	uint8_t  flags;            /* enum sf_frame_flags */
	uint8_t  kind;             /* enum sf_frame_kind: native or managed (sf_kind_is_managed) */
	uint8_t  reserved;
};

struct sf_stream_sample {
	struct sf_record_header header;
	uint32_t serial, n_frames;
	uint64_t time_ns;
	uint64_t cpu_ns, wall_ns;  /* the weight of the sample */
	uint64_t hold_ns;          /* 0: not held */
	uint32_t ticks;
	uint32_t label;            /* 0: none */
	int32_t  syscall;
	uint8_t  state;            /* enum sf_state */
	uint8_t  end;              /* enum sf_end */
	uint16_t still_flags;      /* enum sf_still_flags */
	struct sf_stream_frame frames[];  /* innermost first */
};

/* A sample of an event: it stands for an amount of the measure, and for no time. */
struct sf_stream_event {
	struct sf_record_header header;
	uint32_t serial, n_frames;
	uint64_t time_ns;
	uint64_t hold_ns;          /* for which the walk kept the thread */
	uint64_t amount;           /* of the thread's events since its last sample, this one included */
	uint8_t  end;              /* enum sf_end */
	uint8_t  second_key_size;
	uint16_t key_size, value_size; /* of its label, whose text is behind the frames; key_size 0: it has none */
	uint16_t second_value_size; /* and of a second one, with its text behind that; second_key_size 0: it has none */
	struct sf_stream_frame frames[];  /* innermost first */
};

struct sf_stream_event_loss {
	struct sf_record_header header;
	uint32_t serial;           /* 0: of no known thread */
	uint32_t cause;            /* enum sf_loss */
	uint64_t amount;
};

struct sf_stream_loss {
	struct sf_record_header header;
	uint32_t serial;           /* 0: of no known thread */
	uint32_t cause;            /* enum sf_loss */
	uint64_t cpu_ns, wall_ns;
	uint32_t ticks, reserved;
};

#endif
