/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings by anybody: sf_profile_load must refuse or load, and what it loads must add up. No file
 * but the recording is touched.
 *
 * Half of the mutations change a few bytes in place, behind the header: those keep the file's
 * pages where they are, and get past SQLite into rows. An input that ends with a redo record gets
 * the right checksums, so that its pages and numbers are believed.
 *
 * Beside the recording lie a -journal, a -wal and a -shm. An input that ends with JOURNAL_MARK has
 * their contents in front of it: the contents, their size in four bytes (big-endian), the mark.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recording/profile/aggregate.h"
#include "recording/profile/profile.h"
#include "recording/store/commit.h"

#define HEADER_SIZE 100
#define WINDOW_SIZE 8
#define JOURNAL_MARK "-journal"
#define JOURNAL_END 12u /* size and mark */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	uint8_t window[WINDOW_SIZE];
	size_t offset, n;

	if (size < HEADER_SIZE + WINDOW_SIZE || seed % 2)
		return LLVMFuzzerMutate(data, size, max_size);
	offset = HEADER_SIZE + seed / 2 % (size - HEADER_SIZE - WINDOW_SIZE + 1);
	memcpy(window, data + offset, WINDOW_SIZE);
	n = LLVMFuzzerMutate(window, WINDOW_SIZE, WINDOW_SIZE);
	memcpy(data + offset, window, n);
	return size;
}

static const char *const names[] = { "r.sfr", "r.sfr-journal", "r.sfr-wal", "r.sfr-shm", "victim" };

#define N_NAMES (sizeof(names) / sizeof(names[0]))

/* One folder for the whole run: in memory where there is any. */
static char folder[64];

static const char *path_of(size_t name)
{
	static char path[N_NAMES][96];

	snprintf(path[name], sizeof(path[name]), "%s/%s", folder, names[name]);
	return path[name];
}

static void remove_folder(void)
{
	for (size_t i = 0; i < N_NAMES; i++)
		unlink(path_of(i));
	rmdir(folder);
}

static void write_file(size_t name, const uint8_t *data, size_t size)
{
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	close(fd);
}

static void make_folder(void)
{
	if (folder[0])
		return;
	snprintf(folder, sizeof(folder), "%s/sf-fuzz-profile-%d",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (int)getpid());
	if (mkdir(folder, 0700) != 0)
		abort();
	atexit(remove_folder);
	write_file(N_NAMES - 1, (const uint8_t *)"precious", 8);
}

static size_t number_at(const uint8_t *data)
{
	return (size_t)data[0] << 24 | (size_t)data[1] << 16 | (size_t)data[2] << 8 | data[3];
}

/* Puts what an input has for them into the files beside the recording; returns what is left. */
static size_t put_beside(const uint8_t *data, size_t size)
{
	static bool empty;
	size_t n = 0, end = size;

	if (size >= JOURNAL_END && memcmp(data + size - 8, JOURNAL_MARK, 8) == 0 &&
	    number_at(data + size - JOURNAL_END) <= size - JOURNAL_END) {
		n = number_at(data + size - JOURNAL_END);
		end = size - JOURNAL_END - n;
	}
	if (n == 0 && empty)
		return end;
	for (size_t i = 1; i < N_NAMES - 1; i++)
		write_file(i, data + end, n);
	empty = n == 0;
	return end;
}

static void put_number(uint8_t *to, uint64_t value)
{
	for (unsigned i = 8; i-- > 0; value >>= 8)
		to[i] = (uint8_t)value;
}

/* Of a redo record at the end of the file: that of page 1, and that of the record. */
static void correct_checksums(const uint8_t *data, size_t size)
{
	const uint8_t *trailer = data + size - SF_REDO_TRAILER;
	uint64_t record, sum;
	uint8_t bytes[8];
	int fd;

	if (size < SF_REDO_TRAILER || memcmp(trailer, "stillframe redo", 16) != 0)
		return;
	record = (uint64_t)number_at(trailer + 24) * (SF_PAGE_SIZE + 4) + SF_REDO_TRAILER;
	fd = open(path_of(0), O_RDWR | O_CLOEXEC);
	if (record <= size && sf_redo_checksum(fd, 0, SF_PAGE_SIZE, &sum)) {
		put_number(bytes, sum);
		if (pwrite(fd, bytes, 8, (off_t)size - 16) != 8 ||
		    !sf_redo_checksum(fd, size - record, size - 8, &sum))
			abort();
		put_number(bytes, sum);
		if (pwrite(fd, bytes, 8, (off_t)size - 8) != 8)
			abort();
	}
	close(fd);
}

/* The facts that must be the same before and after. */
static void look_at_files(struct stat status[N_NAMES])
{
	for (size_t i = 0; i < N_NAMES; i++) {
		if (lstat(path_of(i), &status[i]) != 0)
			abort();
	}
}

static void check_files(const struct stat before[N_NAMES])
{
	struct stat now[N_NAMES];

	look_at_files(now);
	for (size_t i = 0; i < N_NAMES; i++) {
		if (now[i].st_ino != before[i].st_ino || now[i].st_size != before[i].st_size ||
		    now[i].st_mtim.tv_sec != before[i].st_mtim.tv_sec ||
		    now[i].st_mtim.tv_nsec != before[i].st_mtim.tv_nsec)
			abort();
	}
}

static void check_nodes(const struct sf_profile *profile)
{
	for (uint32_t i = 1; i < profile->n_nodes; i++) {
		if (profile->nodes[i].parent >= i || !profile->nodes[i].frame ||
		    profile->nodes[i].frame >= profile->n_frames)
			abort();
	}
	for (size_t i = 0; i < profile->n_samples; i++) {
		if (profile->samples[i].node >= profile->n_nodes ||
		    profile->samples[i].thread >= profile->n_threads ||
		    (i && profile->samples[i].time_ns < profile->samples[i - 1].time_ns))
			abort();
	}
}

static void check_sums(const struct sf_profile *profile, enum sf_clock clock)
{
	struct sf_aggregate *sums;
	uint64_t self_ns = 0;

	if (!sf_aggregate_create(profile, clock, &sums, NULL))
		return; /* memory */
	for (size_t i = 0; i < sums->n_functions; i++) {
		self_ns += sums->functions[i].self_ns;
		if (sums->functions[i].self_ns > sums->functions[i].total_ns ||
		    sums->functions[i].total_ns > sums->total_ns)
			abort();
	}
	if (self_ns != sums->total_ns || sums->tree.nodes[0].total_ns != sums->total_ns)
		abort();
	sf_aggregate_destroy(sums);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stat before[N_NAMES];
	struct sf_profile *profile;
	struct sf_error err;
	bool loaded;

	make_folder();
	size = put_beside(data, size);
	write_file(0, data, size);
	correct_checksums(data, size);
	look_at_files(before);
	loaded = sf_profile_load(path_of(0), NULL, &profile, &err);
	check_files(before);
	if (!loaded)
		return 0;
	check_nodes(profile);
	check_sums(profile, SF_CLOCK_CPU);
	check_sums(profile, SF_CLOCK_WALL);
	check_sums(profile, SF_CLOCK_OFFCPU);
	check_sums(profile, SF_CLOCK_EVENT);
	sf_profile_destroy(profile);
	return 0;
}
