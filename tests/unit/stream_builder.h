/* SPDX-License-Identifier: Apache-2.0 */
/* Streams written by hand, a line per record, in memory: whole, cut anywhere, or spoiled. */
#ifndef SF_TESTS_STREAM_BUILDER_H
#define SF_TESTS_STREAM_BUILDER_H

#include "stream/record.h"

#define STREAM_ROOM (256u << 10)

struct stream_builder {
	_Alignas(8) uint8_t bytes[STREAM_ROOM]; /* the file's header, then records */
	size_t size;
	size_t last;                            /* where the last record starts */
};

void stream_start(struct stream_builder *b);

/*
 * `record` of `size` bytes with its header still empty, and two texts (or other bytes) behind it.
 */
void stream_add(struct stream_builder *b, enum sf_stream_type type, const void *record, size_t size,
		const void *more, size_t more_size, const void *most, size_t most_size);
struct sf_record_header *stream_last(struct stream_builder *b);

void stream_process(struct stream_builder *b, int32_t pid, const char *name, const char *command);
void stream_thread(struct stream_builder *b, uint32_t serial, int32_t tid, const char *name);
void stream_thread_end(struct stream_builder *b, uint32_t serial, uint64_t at_ms, uint64_t cpu_ms);
void stream_image(struct stream_builder *b, uint32_t number, const char *path, const void *build_id,
		  size_t build_id_size);
/*
 * `ms` of CPU time at `at_ms` from STREAM_START_NS; frames: (address, image) pairs, innermost
 * first. Image STREAM_MANAGED: compiled Java, by its key.
 */
void stream_sample(struct stream_builder *b, uint32_t serial, uint64_t at_ms, uint64_t ms,
		   uint32_t label, const uint64_t (*frames)[2], uint32_t n);
void stream_again(struct stream_builder *b, uint32_t serial, uint64_t at_ms, uint64_t ms);
void stream_loss(struct stream_builder *b, uint32_t serial, uint32_t cause, uint32_t ticks);
void stream_label(struct stream_builder *b, uint32_t number, const char *key, const char *value);
void stream_note(struct stream_builder *b, const char *text);
void stream_end(struct stream_builder *b, uint64_t at_ms, uint64_t lost);

/*
 * An event of no unit but "events"; its end, with the count; an occurrence with these frames, and its label, and a
 * second one, "size" ("" where it has none); and events without a sample.
 */
void stream_measure(struct stream_builder *b, const char *name, bool is_counted, uint64_t counted);
void stream_event(struct stream_builder *b, uint32_t serial, uint64_t amount, const char *key, const char *value,
		  const char *second, const uint64_t (*frames)[2], uint32_t n);
void stream_event_loss(struct stream_builder *b, uint32_t serial, uint32_t cause, uint64_t amount);

/* Two functions of Demo.java: one that is inlined at line 7 into the other, at line 20. */
void stream_place(struct stream_builder *b, uint64_t key, const char *inlined, const char *name);

/* Writes the first `size` bytes to a file. */
void stream_write(const struct stream_builder *b, const char *path, size_t size);

#define STREAM_START_NS 7000000000u
#define STREAM_MS 1000000u
#define STREAM_MANAGED UINT32_MAX

#endif
