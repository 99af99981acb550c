/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a program stood still, by its own watch: it spins at a given depth, reads the clock without pause,
 * and keeps every gap above 2 us. Output at SIGUSR1 and at its end (the counts begin anew then):
 *
 *     gaps N  median US  p99 US  longest US  stalled-share PERCENT
 *
 * Interrupts and other programs make gaps, too: compare with a time in which nobody looks.
 *
 * stalls DEPTH SECONDS
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MAX_GAPS 1000000
#define NOTABLE_NS 2000

static uint32_t gaps[MAX_GAPS];
static size_t n_gaps;
static volatile sig_atomic_t wanted;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return (left > right) - (left < right);
}

static void print(uint64_t since_ns)
{
	uint64_t sum = 0;

	qsort(gaps, n_gaps, sizeof(*gaps), compare);
	for (size_t i = 0; i < n_gaps; i++)
		sum += gaps[i];
	printf("gaps %zu  median %.1f  p99 %.1f  longest %.1f  stalled-share %.3f\n", n_gaps,
	       n_gaps ? gaps[n_gaps / 2] / 1e3 : 0, n_gaps ? gaps[n_gaps * 99 / 100] / 1e3 : 0,
	       n_gaps ? gaps[n_gaps - 1] / 1e3 : 0, 100.0 * (double)sum / (double)(now_ns() - since_ns));
	fflush(stdout);
	n_gaps = 0;
}

static void want(int signal_number)
{
	(void)signal_number;
	wanted = 1;
}

static void __attribute__((noinline)) watch(uint64_t end_ns)
{
	uint64_t since_ns = now_ns(), last_ns = since_ns;

	while (last_ns < end_ns) {
		uint64_t time_ns = now_ns();

		if (time_ns - last_ns > NOTABLE_NS && n_gaps < MAX_GAPS)
			gaps[n_gaps++] = (uint32_t)(time_ns - last_ns);
		last_ns = time_ns;
		if (wanted) {
			wanted = 0;
			print(since_ns);
			since_ns = last_ns = now_ns();
		}
	}
	print(since_ns);
}

static void __attribute__((noinline)) descend(int depth, uint64_t end_ns)
{
	if (depth > 0)
		descend(depth - 1, end_ns);
	else
		watch(end_ns);
	__asm__ volatile("" : : : "memory"); /* no tail call */
}

int main(int argc, char **argv)
{
	signal(SIGUSR1, want);
	descend(argc > 1 ? atoi(argv[1]) : 64,
		now_ns() + (uint64_t)(argc > 2 ? atoi(argv[2]) : 10) * 1000000000u);
	return 0;
}
