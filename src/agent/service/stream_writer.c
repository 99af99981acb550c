/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service thread's output: it writes records to the outbox, and empties the outbox into the
 * stream's file if no other process reads it.
 */
#include <string.h>
#include <sys/mman.h>

#include "agent/libc/fork_memory.h"
#include "agent/service/service_state.h"
#include "os/clock.h"
#include "stream/record.h"

#define PATIENCE_NS 2000000000u  /* for a reader that makes no room */
#define PAUSE_NS 2000000
#define FULL_SHARE 4             /* of the ring, that is emptied at once */

bool sf_stream_writer_init(struct sf_service *service, const char *path, struct sf_error *err)
{
	/* Of a process that was forked it may still be the parent's. */
	atomic_store(&sf_handler.output.full_bytes, 0);
	if (!path)
		return true;
	/* Touched as far as records are large, which most are not. */
	service->record = sf_map_own(SF_STREAM_MAX_RECORD, SF_NOT_THERE);
	if (!service->record)
		return sf_fail_memory(err);
	if (!(service->agent->options.again ? sf_stream_file_continue : sf_stream_file_create)(
		    path, &service->file, err)) {
		sf_stream_writer_deinit(service);
		return false;
	}
	atomic_store(&sf_handler.output.full_bytes, sf_handler.output.outbox->size / FULL_SHARE);
	return true;
}

void sf_stream_writer_deinit(struct sf_service *service)
{
	atomic_store(&sf_handler.output.full_bytes, 0);
	sf_stream_file_close(service->file);
	service->file = NULL;
	if (service->record)
		munmap(service->record, SF_STREAM_MAX_RECORD);
	service->record = NULL;
}

/* The first failure is the one to report; what comes later may find room again. */
static void note_failure(struct sf_service *service, const struct sf_error *err)
{
	if (service->file_error.code == SF_E_NONE)
		service->file_error = *err;
}

uint64_t sf_stream_writer_drain(struct sf_service *service)
{
	struct sf_outbox_header *outbox = sf_handler.output.outbox;
	const struct sf_record_header *record = service->record;
	struct sf_error err = { 0 };
	uint64_t bytes = 0;
	int got;

	if (!service->file)
		return 0;
	while ((got = sf_outbox_get(outbox, outbox->size, service->record,
				    SF_STREAM_MAX_RECORD)) > 0) {
		bytes += record->size;
		if (!sf_stream_file_put(service->file, record, &err))
			note_failure(service, &err);
	}
	if (got < 0) {
		sf_fail(&err, SF_E_INPUT, "the program has overwritten the samples in its memory");
		note_failure(service, &err);
	}
	if (bytes && !sf_stream_file_flush(service->file, &err))
		note_failure(service, &err);
	return bytes;
}

/*
 * Whether to wait for the reader. After one time-out the service thread does not wait again until the reader has made
 * room. There may be thousands of records to write, for threads and for places in managed code, and the end of the process
 * waits for the service thread.
 */
static bool is_waited_for(struct sf_service *service, uint64_t until_ns)
{
	uint64_t tail = atomic_load_explicit(&sf_handler.output.outbox->tail, memory_order_relaxed);

	if (service->in_vain && service->vain_tail == tail)
		return false;
	service->in_vain = sf_now_ns() > until_ns;
	service->vain_tail = tail;
	return !service->in_vain;
}

bool sf_stream_writer_put(struct sf_service *service, uint16_t type, const struct sf_outbox_piece *pieces,
		     unsigned n)
{
	uint64_t until_ns = sf_now_ns() + PATIENCE_NS;

	while (!sf_outbox_put(sf_handler.output.outbox, type, pieces, n)) {
		/* sf_outbox_put has counted the record as lost, but it is tried again. */
		atomic_fetch_sub_explicit(&sf_handler.output.outbox->lost, 1, memory_order_relaxed);
		if (sf_stream_writer_drain(service))
			continue;
		if (!is_waited_for(service, until_ns))
			return false;
		sf_wake_up_wait(&sf_handler.output.wake_up, sf_wake_up_count(&sf_handler.output.wake_up),
			     sf_now_ns() + PAUSE_NS);
	}
	return true;
}

bool sf_stream_writer_put_record(struct sf_service *service, uint16_t type, const void *record, size_t size,
				 const void *text, size_t text_size)
{
	const size_t header = sizeof(struct sf_record_header);
	const struct sf_outbox_piece pieces[] = {
		{ (const char *)record + header, size - header }, { text, text_size },
	};

	return sf_stream_writer_put(service, type, pieces, text_size ? 2 : 1);
}

bool sf_stream_writer_end(struct sf_service *service, uint64_t agent_cpu_ns)
{
	struct sf_stream_end end = { 0 };
	bool put;

	sf_stream_writer_drain(service);
	end.time_ns = sf_now_ns();
	end.lost_records = atomic_load_explicit(&sf_handler.output.outbox->lost, memory_order_relaxed);
	end.agent_cpu_ns = agent_cpu_ns;
	put = sf_stream_writer_put_record(service, SF_STREAM_END, &end, sizeof(end), NULL, 0);
	sf_stream_writer_drain(service);
	return put;
}
