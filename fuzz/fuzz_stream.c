/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams by anybody: the records of a file, checked, fed to a recording, which must load. The
 * input is a stream file from behind its header on. The sizes of records are mended, as the
 * fuzzer would hardly keep them in step; every eighth input is taken as it is.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recording/profile/aggregate.h"
#include "session/import.h"
#include "stream/check.h"
#include "stream/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_INPUT (256u << 10)

static char folder[64], stream_path[96], recording_path[96];

static void remove_files(void)
{
	unlink(stream_path);
	unlink(recording_path);
	rmdir(folder);
}

/* One folder for the whole run: in memory where there is any. */
static void make_folder(void)
{
	if (folder[0])
		return;
	snprintf(folder, sizeof(folder), "%s/sf-fuzz-stream-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	if (!mkdtemp(folder))
		abort();
	snprintf(stream_path, sizeof(stream_path), "%s/stream", folder);
	snprintf(recording_path, sizeof(recording_path), "%s/recording", folder);
	atexit(remove_files);
}

/*
 * A size that no record can have becomes the smallest; one that goes beyond the end, what is
 * left.
 */
static void mend_sizes(uint8_t *bytes, size_t size)
{
	struct sf_record_header header;

	for (size_t at = 0; size - at >= sizeof(header); at += header.size) {
		memcpy(&header, bytes + at, sizeof(header));
		header.size &= ~7u;
		if (header.size < sizeof(header))
			header.size = sizeof(header);
		if (header.size > size - at)
			header.size = (uint32_t)((size - at) & ~(size_t)7);
		memcpy(bytes + at, &header, sizeof(header));
	}
}

/* Each record in memory of its own, so that a read behind its end is seen. */
static void check_each(const uint8_t *bytes, size_t size)
{
	struct sf_record_header header;

	for (size_t at = 0; size - at >= sizeof(header); at += header.size) {
		void *copy;

		memcpy(&header, bytes + at, sizeof(header));
		if (header.size < sizeof(header) || header.size > size - at)
			return;
		copy = malloc(header.size);
		if (!copy)
			return;
		memcpy(copy, bytes + at, header.size);
		sf_stream_check(copy, header.size);
		free(copy);
	}
}

static void write_stream(const uint8_t *bytes, size_t size)
{
	const struct sf_stream_file_header header = { .magic = SF_STREAM_FILE_MAGIC,
						      .version = SF_STREAM_VERSION };
	int fd = open(stream_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, &header, sizeof(header)) != sizeof(header) ||
	    write(fd, bytes, size) != (ssize_t)size)
		abort();
	close(fd);
}

/* An imported recording is like any other. */
static void check_recording(void)
{
	struct sf_profile *profile;
	struct sf_aggregate *sums;
	struct sf_error err;

	if (!sf_profile_load(recording_path, NULL, &profile, &err)) {
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
	if (sf_aggregate_create(profile, SF_CLOCK_WALL, &sums, NULL))
		sf_aggregate_destroy(sums);
	sf_profile_destroy(profile);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static _Alignas(8) uint8_t bytes[MAX_INPUT];
	struct sf_error err;

	if (size > sizeof(bytes))
		return 0;
	make_folder();
	memcpy(bytes, data, size);
	if (size && data[size - 1] % 8 != 7)
		mend_sizes(bytes, size);
	check_each(bytes, size);
	write_stream(bytes, size);
	if (sf_import(stream_path, recording_path, &err))
		check_recording();
	return 0;
}
