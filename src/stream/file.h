/* SPDX-License-Identifier: Apache-2.0 */
/* Stream files: written by an agent with no stillframe around, read by every command. */
#ifndef SF_STREAM_FILE_H
#define SF_STREAM_FILE_H

#include <stdbool.h>

#include "base/error.h"
#include "stream/record.h"

struct sf_stream_file;

/* Whether the open file begins as a stream does; false also when it cannot be read. */
bool sf_stream_is(int fd);

/*
 * Makes a file of mode 0600 under this name. An existing file is replaced only if it is a stream or empty,
 * and ours by the rules of base/output_file.h; its readers keep the old file. After success the caller
 * must call sf_stream_file_close.
 */
bool sf_stream_file_create(const char *path, struct sf_stream_file **ret, struct sf_error *err);

/*
 * Reads the stream behind an open file from its start. The descriptor stays the caller's and its
 * position is not used, so a file can be read twice without its name. `name` is for messages.
 */
bool sf_stream_file_read(int fd, const char *name, struct sf_stream_file **ret,
			 struct sf_error *err);

/* sf_foreign_open_user and sf_stream_file_read. */
bool sf_stream_file_open(const char *path, struct sf_stream_file **ret, struct sf_error *err);

/*
 * Goes on behind the last whole record of a stream that another program of this process wrote
 * (before an exec). Where there is none, or it is damaged, as sf_stream_file_create.
 */
bool sf_stream_file_continue(const char *path, struct sf_stream_file **ret, struct sf_error *err);

/*
 * Whether the open file may be replaced by a stream: it is one, or empty. `name` is for the message.
 */
bool sf_stream_may_replace(int fd, const char *name, struct sf_error *err);

/* Appends a record. Buffered up to sf_stream_file_flush. False: the disk is full, or the like. */
bool sf_stream_file_put(struct sf_stream_file *file, const struct sf_record_header *record,
			struct sf_error *err);
bool sf_stream_file_flush(struct sf_stream_file *file, struct sf_error *err);

/*
 * The next record, checked; valid until the next call. NULL with err->code SF_OK at the end; a file
 * that was cut off in the middle of a record ends there. Else NULL and an error.
 */
const struct sf_record_header *sf_stream_file_next(struct sf_stream_file *file,
						   struct sf_error *err);

/* After sf_stream_file_next found the end: whether the last record was not whole. */
bool sf_stream_file_is_cut(const struct sf_stream_file *file);

void sf_stream_file_close(struct sf_stream_file *file); /* takes NULL; flushes, errors are lost */

/*
 * In a forked child: only the descriptor is closed. The parent writes the records that are in the buffer.
 * The memory is not freed, as another thread may have been changing it when the process was copied.
 */
void sf_stream_file_abandon(struct sf_stream_file *file);

/*
 * Its descriptor, and: another thread's table has that, too (os/own_fd.h); here it is closed, and
 * the file is that thread's.
 */
int sf_stream_file_fd(const struct sf_stream_file *file);
void sf_stream_file_leave(const struct sf_stream_file *file);

#endif
