/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and writes stream files, inside any program (in the agent's service thread) and in stillframe. It
 * uses only libc, plain descriptors, and one buffer, which grows to the largest record that is read.
 *
 * A file is created under its own name, not renamed at the end: the records that a program wrote before
 * it crashed are the most useful ones.
 */
#include "stream/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/whole_io.h"
#include "base/foreign_file.h"
#include "base/output_file.h"
#include "os/own_fd.h"
#include "stream/check.h"

#define BUFFER (64u << 10)

struct sf_stream_file {
	struct sf_own_fd own;
	bool writing;
	bool cut;                /* reading: the last record is not whole */
	uint64_t offset;         /* in the file, of what comes after the buffer */
	size_t start, end;       /* bytes [start, end) of the buffer wait to be read; writing: start
				  * is 0 */
	size_t capacity;
	uint8_t *buffer;
	char path[];
};

static bool is_header(const struct sf_stream_file_header *header)
{
	return memcmp(header->magic, SF_STREAM_FILE_MAGIC, sizeof(SF_STREAM_FILE_MAGIC)) == 0;
}

bool sf_stream_is(int fd)
{
	struct sf_stream_file_header header;

	return pread(fd, &header, sizeof(header), 0) == sizeof(header) && is_header(&header);
}

static struct sf_stream_file *make(const char *path, int fd, bool writing)
{
	struct sf_stream_file *file = calloc(1, sizeof(*file) + strlen(path) + 1);

	if (!file)
		return NULL;
	*file = (struct sf_stream_file){ .writing = writing, .capacity = BUFFER };
	strcpy(file->path, path);
	file->buffer = malloc(BUFFER);
	if (!file->buffer) {
		free(file);
		return NULL;
	}
	file->own = sf_own_fd_make(fd);
	return file;
}

bool sf_stream_may_replace(int fd, const char *name, struct sf_error *err)
{
	struct stat status;

	if (fstat(fd, &status) != 0)
		return sf_fail_os(err, "cannot look at %s", name);
	if (status.st_size == 0 || sf_stream_is(fd))
		return true;
	sf_fail(err, SF_E_INPUT, "%s exists and is not a stream: not replaced", name);
	return sf_fail_hint(err, "Give another name with out=, or remove it first.");
}

/* Removed, not emptied: its readers keep what they have. */
static bool remove_old(const char *path, struct sf_error *err)
{
	SF_CLEANUP(close) int fd = -1;

	if (!sf_output_file_open(path, &fd, err) || !sf_stream_may_replace(fd, path, err))
		return false;
	return unlink(path) == 0 || errno == ENOENT || sf_fail_os(err, "cannot replace %s", path);
}

static int make_new(const char *path)
{
	return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
}

bool sf_stream_file_create(const char *path, struct sf_stream_file **ret, struct sf_error *err)
{
	struct sf_stream_file_header header = { .version = SF_STREAM_VERSION };
	SF_CLEANUP(close) int fd = make_new(path);
	struct sf_stream_file *file;

	if (fd < 0 && errno == EEXIST) {
		if (!remove_old(path, err))
			return false;
		fd = make_new(path);
	}
	if (fd < 0)
		return sf_fail_os(err, "cannot write %s", path);
	file = make(path, fd, true);
	if (!file)
		return sf_fail_memory(err);
	sf_steal_fd(&fd);
	memcpy(header.magic, SF_STREAM_FILE_MAGIC, sizeof(SF_STREAM_FILE_MAGIC));
	memcpy(file->buffer, &header, sizeof(header));
	file->end = sizeof(header);
	if (!sf_stream_file_flush(file, err)) {
		sf_stream_file_close(file);
		return false;
	}
	*ret = file;
	return true;
}

/*
 * The program has closed our descriptor, or put another file under its number: the file is opened
 * anew.
 */
static bool reopen(struct sf_stream_file *file, struct sf_error *err)
{
	struct sf_own_fd again =
		sf_own_fd_make(open(file->path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW));

	if (again.fd >= 0 && again.device == file->own.device && again.inode == file->own.inode &&
	    lseek(again.fd, (off_t)file->offset, SEEK_SET) >= 0) {
		file->own = again;
		return true;
	}
	sf_own_fd_close(&again);
	return sf_fail(err, SF_E_INPUT, "cannot write %s: the program has closed the descriptor, "
		       "and the file is not there any more", file->path);
}

/*
 * Records that could not be written are dropped, and the file is cut back to its last whole record.
 * Later records follow that one.
 */
bool sf_stream_file_flush(struct sf_stream_file *file, struct sf_error *err)
{
	size_t size = file->end;

	file->end = 0;
	if (!sf_own_fd_is_ours(&file->own) && !reopen(file, err))
		return false;
	if (sf_write_all(file->own.fd, file->buffer, size)) {
		file->offset += size;
		return true;
	}
	sf_fail_os(err, "cannot write %s", file->path);
	if (ftruncate(file->own.fd, (off_t)file->offset) == 0)
		lseek(file->own.fd, (off_t)file->offset, SEEK_SET);
	return false;
}

/* Makes the buffer at least this large. */
static bool grow(struct sf_stream_file *file, size_t size, struct sf_error *err)
{
	uint8_t *larger;

	if (size <= file->capacity)
		return true;
	larger = realloc(file->buffer, size);
	if (!larger)
		return sf_fail_memory(err);
	file->buffer = larger;
	file->capacity = size;
	return true;
}

bool sf_stream_file_put(struct sf_stream_file *file, const struct sf_record_header *record,
			struct sf_error *err)
{
	if (record->size > file->capacity - file->end && !sf_stream_file_flush(file, err))
		return false;
	if (!grow(file, record->size, err))
		return false;
	memcpy(file->buffer + file->end, record, record->size);
	file->end += record->size;
	return true;
}

/* Reads until `size` bytes wait in the buffer, or the file ends. */
static bool fill(struct sf_stream_file *file, size_t size, struct sf_error *err)
{
	if (!grow(file, size, err))
		return false;
	if (file->start + size > file->capacity) {
		memmove(file->buffer, file->buffer + file->start, file->end - file->start);
		file->end -= file->start;
		file->start = 0;
	}
	while (file->end - file->start < size) {
		ssize_t n = pread(file->own.fd, file->buffer + file->end,
				  file->capacity - file->end, (off_t)file->offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return sf_fail_os(err, "cannot read %s", file->path);
		if (n == 0)
			break;
		file->end += (size_t)n;
		file->offset += (size_t)n;
	}
	return true;
}

static bool read_header(struct sf_stream_file *file, struct sf_error *err)
{
	struct sf_stream_file_header header;

	if (!fill(file, sizeof(header), err))
		return false;
	memcpy(&header, file->buffer, sizeof(header));
	if (file->end < sizeof(header) || !is_header(&header))
		return sf_fail(err, SF_E_INPUT, "%s is not a stream of stillframe", file->path);
	if (header.version != SF_STREAM_VERSION) {
		sf_fail(err, SF_E_INPUT, "%s is a stream of version %u; this stillframe reads "
			"version %d", file->path, header.version, SF_STREAM_VERSION);
		return sf_fail_hint(err, "Open it with the stillframe whose agent wrote it.");
	}
	file->start = sizeof(header);
	return true;
}

bool sf_stream_file_read(int fd, const char *name, struct sf_stream_file **ret,
			 struct sf_error *err)
{
	SF_CLEANUP(close) int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	struct sf_stream_file *file;

	if (copy < 0)
		return sf_fail_os(err, "cannot read %s", name);
	file = make(name, copy, false);
	if (!file)
		return sf_fail_memory(err);
	sf_steal_fd(&copy);
	if (!read_header(file, err)) {
		sf_stream_file_close(file);
		return false;
	}
	*ret = file;
	return true;
}

bool sf_stream_file_open(const char *path, struct sf_stream_file **ret, struct sf_error *err)
{
	SF_CLEANUP(close) int fd = -1;

	return sf_foreign_open_user(path, &fd, err) && sf_stream_file_read(fd, path, ret, err);
}

/* Puts what is wrong with the record at hand into `err`. */
static void damaged(const struct sf_stream_file *file, const char *what, struct sf_error *err)
{
	sf_fail(err, SF_E_INPUT, "%s is damaged at byte %llu: %s", file->path,
		(unsigned long long)(file->offset - (file->end - file->start)), what);
}

/* How large the record at hand says it is; 0 at the end of the file, or when it cannot be one. */
static uint32_t next_size(struct sf_stream_file *file, struct sf_error *err)
{
	struct sf_record_header header;

	if (!fill(file, sizeof(header), err))
		return 0;
	if (file->end - file->start < sizeof(header)) {
		file->cut = file->end != file->start;
		return 0;
	}
	memcpy(&header, file->buffer + file->start, sizeof(header));
	if (header.size < sizeof(header) || header.size % 8 != 0 ||
	    header.size > SF_STREAM_MAX_RECORD) {
		damaged(file, "a record of impossible size", err);
		return 0;
	}
	return header.size;
}

const struct sf_record_header *sf_stream_file_next(struct sf_stream_file *file,
						   struct sf_error *err)
{
	const struct sf_record_header *record;
	struct sf_error ignored;
	const char *wrong;
	uint32_t size;

	err = err ? err : &ignored;
	*err = (struct sf_error){ 0 };
	size = next_size(file, err);
	if (!size || !fill(file, size, err))
		return NULL;
	if (file->end - file->start < size) {
		file->cut = true;
		return NULL;
	}
	record = (const void *)(file->buffer + file->start); /* sizes are multiples of 8 */
	wrong = sf_stream_check(record, size);
	if (wrong) {
		damaged(file, wrong, err);
		return NULL;
	}
	file->start += size;
	return record;
}

bool sf_stream_file_is_cut(const struct sf_stream_file *file)
{
	return file->cut;
}

/* Where the last whole record ends; 0: it cannot be gone on with. */
static uint64_t find_end(int fd, const char *path)
{
	struct sf_stream_file *file;
	struct sf_error err;
	uint64_t end = 0;

	if (!sf_stream_file_read(fd, path, &file, NULL))
		return 0;
	while (sf_stream_file_next(file, &err))
		;
	if (err.code == SF_E_NONE)
		end = file->offset - (file->end - file->start);
	sf_stream_file_close(file);
	return end;
}

static bool go_on(const char *path, struct sf_stream_file **ret)
{
	SF_CLEANUP(close) int fd = -1;
	struct sf_stream_file *file;
	uint64_t end;

	if (access(path, F_OK) != 0 || !sf_output_file_open(path, &fd, NULL))
		return false;
	end = find_end(fd, path);
	if (!end || ftruncate(fd, (off_t)end) != 0 || lseek(fd, (off_t)end, SEEK_SET) < 0)
		return false;
	file = make(path, fd, true);
	if (!file)
		return false;
	sf_steal_fd(&fd);
	file->offset = end;
	*ret = file;
	return true;
}

bool sf_stream_file_continue(const char *path, struct sf_stream_file **ret, struct sf_error *err)
{
	return go_on(path, ret) || sf_stream_file_create(path, ret, err);
}

void sf_stream_file_close(struct sf_stream_file *file)
{
	if (!file)
		return;
	if (file->writing)
		sf_stream_file_flush(file, NULL);
	sf_own_fd_close(&file->own);
	free(file->buffer);
	free(file);
}

void sf_stream_file_abandon(struct sf_stream_file *file)
{
	sf_own_fd_close(&file->own);
}

int sf_stream_file_fd(const struct sf_stream_file *file)
{
	return file->own.fd;
}

void sf_stream_file_leave(const struct sf_stream_file *file)
{
	sf_own_fd_leave(&file->own);
}
