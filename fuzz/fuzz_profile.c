/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings by anybody: sf_profile_load must refuse or load, and what it loads must add up.
 *
 * Half of the mutations change a few bytes in place, behind the header: those keep the file's
 * pages where they are, and get past SQLite into rows.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recording/aggregate.h"
#include "recording/profile.h"

#define HEADER_SIZE 100
#define WINDOW_SIZE 8

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

static void remove_file(void);

/* One file for the whole run: memory where there is any. */
static const char *file_path(void)
{
	static char path[64];

	if (path[0])
		return path;
	snprintf(path, sizeof(path), "%s/sf-fuzz-profile-%d",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (int)getpid());
	atexit(remove_file);
	return path;
}

static void remove_file(void)
{
	unlink(file_path());
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
	if (self_ns != sums->total_ns || sums->tree[0].total_ns != sums->total_ns)
		abort();
	sf_aggregate_destroy(sums);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *path = file_path();
	struct sf_profile *profile;
	struct sf_error err;
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	close(fd);
	if (!sf_profile_load(path, &profile, &err))
		return 0;
	check_nodes(profile);
	check_sums(profile, SF_CLOCK_CPU);
	check_sums(profile, SF_CLOCK_WALL);
	check_sums(profile, SF_CLOCK_OFFCPU);
	sf_profile_destroy(profile);
	return 0;
}
