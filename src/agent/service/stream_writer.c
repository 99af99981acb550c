/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service thread's output: it writes records to the outbox, and empties the outbox into the
 * stream's file if no other process reads it.
 */
#include <string.h>
#include <sys/mman.h>

#include "agent/service/service_state.h"
#include "os/clock.h"
#include "stream/record.h"

#define PATIENCE_NS 2000000000u  /* for a reader that makes no room */
#define PAUSE_NS 2000000
#define FULL_SHARE 4             /* of the ring, that is emptied at once */

bool sf_stream_writer_init(struct sf_service *keep, const char *path, struct sf_error *err)
{
	/* Of a process that was forked it may still be the parent's. */
	atomic_store(&sf_handler.outbox_full, 0);
	if (!path)
		return true;
	/* Touched as far as records are large, which most are not. */
	keep->record = mmap(NULL, SF_STREAM_MAX_RECORD, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (keep->record == MAP_FAILED) {
		keep->record = NULL;
		return sf_fail_memory(err);
	}
	if (!(keep->agent->options.again ? sf_stream_file_continue : sf_stream_file_create)(
		    path, &keep->file, err)) {
		sf_stream_writer_deinit(keep);
		return false;
	}
	atomic_store(&sf_handler.outbox_full, sf_handler.outbox->size / FULL_SHARE);
	return true;
}

void sf_stream_writer_deinit(struct sf_service *keep)
{
	atomic_store(&sf_handler.outbox_full, 0);
	sf_stream_file_close(keep->file);
	keep->file = NULL;
	if (keep->record)
		munmap(keep->record, SF_STREAM_MAX_RECORD);
	keep->record = NULL;
}

/* The first failure is the one to tell; what comes later may find room again. */
static void note_failure(struct sf_service *keep, const struct sf_error *err)
{
	if (keep->file_error.code == SF_E_NONE)
		keep->file_error = *err;
}

uint64_t sf_stream_writer_drain(struct sf_service *keep)
{
	struct sf_outbox_header *outbox = sf_handler.outbox;
	const struct sf_record_header *record = keep->record;
	struct sf_error err = { 0 };
	uint64_t bytes = 0;
	int got;

	if (!keep->file)
		return 0;
	while ((got = sf_outbox_get(outbox, outbox->size, keep->record,
				    SF_STREAM_MAX_RECORD)) > 0) {
		bytes += record->size;
		if (!sf_stream_file_put(keep->file, record, &err))
			note_failure(keep, &err);
	}
	if (got < 0) {
		sf_fail(&err, SF_E_INPUT, "the program has overwritten the samples in its memory");
		note_failure(keep, &err);
	}
	if (bytes && !sf_stream_file_flush(keep->file, &err))
		note_failure(keep, &err);
	return bytes;
}

/*
 * Whether to wait for the reader. After one time-out the service thread does not wait again until the reader has made
 * room. There may be thousands of records to write, for threads and for places in managed code, and the end of the process
 * waits for the service thread.
 */
static bool is_waited_for(struct sf_service *keep, uint64_t until_ns)
{
	uint64_t tail = atomic_load_explicit(&sf_handler.outbox->tail, memory_order_relaxed);

	if (keep->in_vain && keep->vain_tail == tail)
		return false;
	keep->in_vain = sf_now_ns() > until_ns;
	keep->vain_tail = tail;
	return !keep->in_vain;
}

bool sf_stream_writer_put(struct sf_service *keep, uint16_t type, const struct sf_outbox_piece *pieces,
		     unsigned n)
{
	uint64_t until_ns = sf_now_ns() + PATIENCE_NS;

	while (!sf_outbox_put(sf_handler.outbox, type, pieces, n)) {
		/* sf_outbox_put has counted the record as lost, but it is tried again. */
		atomic_fetch_sub_explicit(&sf_handler.outbox->lost, 1, memory_order_relaxed);
		if (sf_stream_writer_drain(keep))
			continue;
		if (!is_waited_for(keep, until_ns))
			return false;
		sf_wake_up_wait(&sf_handler.keeper_bell, sf_wake_up_count(&sf_handler.keeper_bell),
			     sf_now_ns() + PAUSE_NS);
	}
	return true;
}

bool sf_stream_writer_end(struct sf_service *keep, uint64_t agent_cpu_ns)
{
	struct sf_stream_end end = { 0 };
	const struct sf_outbox_piece piece = { (const char *)&end + sizeof(end.header),
					       sizeof(end) - sizeof(end.header) };
	bool put;

	sf_stream_writer_drain(keep);
	end.time_ns = sf_now_ns();
	end.lost_records = atomic_load_explicit(&sf_handler.outbox->lost, memory_order_relaxed);
	end.agent_cpu_ns = agent_cpu_ns;
	put = sf_stream_writer_put(keep, SF_STREAM_END, &piece, 1);
	sf_stream_writer_drain(keep);
	return put;
}
