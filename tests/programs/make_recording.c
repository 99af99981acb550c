/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a plausible recording through the real writer, for the tests of views and exports.
 *
 *     make_recording OUTPUT [STACKS [SAMPLES [THREADS [events|labels]]]]      (1000 stacks, 10000 samples, 4 threads)
 *
 * The same arguments give the same file. Stack number i spells i in decimal: one frame per digit, so
 * that all are distinct and share their outer frames; around them are recursion, a wait
 * in each blocked sample, ends other than the root, C++ names and inlined calls. The thread
 * "worker/1" is in every recording; ticks = samples + losses holds; a second is 199 ticks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recording/recording.h"

#define PERIOD_NS (1000000000u / 199)
#define MAX_FRAMES 400
#define FUNCTION_SIZE 0x40
#define N_MODULES 4

static const char *const module_paths[N_MODULES] = {
	"/opt/shop/bin/shopd", "/opt/shop/lib/libpricing.so.2", "/usr/lib/libstdc++.so.6",
	"/usr/lib/libc.so.6",
};

/* Names by address / FUNCTION_SIZE, modulo their number; %u is the function's number. */
static const char *const name_patterns[N_MODULES][4] = {
	{ "main_%u", "shop::Server::handle_%u(shop::Request const&)", "serve_%u", "tick_%u" },
	{ "pricing::Rule<%u, std::vector<double> >::apply(pricing::Basket&) const",
	  "pricing::(anonymous namespace)::sum_%u(double const*, unsigned long)", "price_%u",
	  "pricing::Rule<%u, int>::operator()(int) const" },
	{ "std::__introsort_%u<__gnu_cxx::__normal_iterator<long*, std::vector<long> >, long>",
	  "std::_Hashtable<std::string, %u>::find", "std::string::append_%u(char const*)",
	  "operator new_%u(unsigned long)" },
	{ "malloc_%u", "__memcpy_avx_unaligned_%u", "qsort_%u", "epoll_wait_%u" },
};

static void must(bool done, const struct sf_error *err)
{
	if (done)
		return;
	fprintf(stderr, "make_recording: %s\n", err->text);
	exit(1);
}

static struct sf_frame frame_at(unsigned module, unsigned function, bool exact)
{
	return (struct sf_frame){
		.address = 0x1000 + (uint64_t)function * FUNCTION_SIZE + (exact ? 0x10 : 0x11),
		.image = module + 1,
		.via = exact ? SF_VIA_LEAF : SF_VIA_ROWS,
		.flags = exact ? SF_FRAME_EXACT : 0,
	};
}

/* Stack i, innermost frame first: a leaf, its digits, some recursion, main and _start. */
static uint32_t fill_frames(struct sf_frame frames[MAX_FRAMES], unsigned i)
{
	uint32_t n = 0;
	unsigned level = 0;

	frames[n++] = frame_at(i % N_MODULES, i % 13, true);
	for (unsigned rest = i + 1; rest; rest /= 10, level++)
		frames[n++] = frame_at(level % N_MODULES, 20 + level * 10 + rest % 10, false);
	for (unsigned again = i % 100 == 99 ? 300 : i % 7; again; again--)
		frames[n++] = frame_at(1, 3, false);
	frames[n++] = frame_at(0, 1, false);
	frames[n++] = frame_at(0, 0, false);
	return n;
}

static enum sf_end end_of(unsigned i)
{
	return i % 50 == 49 ? SF_END_DEPTH : i % 50 == 24 ? SF_END_NO_RULE : SF_END_ROOT;
}

static const char *const waits[] = { "[futex]", "[epoll_wait]", "[nanosleep]", "[page fault]" };
static const int32_t wait_numbers[] = { 202, 232, 35, SF_SYSCALL_FAULT };

struct maker {
	struct sf_recording *recording;
	uint64_t start_ns;
	unsigned n_stacks, n_threads;
	bool of_events;              /* each sample stands for three events, in place of time */
	uint32_t *threads, *running, *blocked;
	uint32_t labels[2]; /* 0: none */
};

static void describe_target(struct maker *maker, struct sf_error *err)
{
	uint8_t build_id[20];

	must(sf_recording_process(maker->recording, 4240, 1, "shopd", "/opt/shop/bin/shopd --fast",
				  maker->start_ns, err), err);
	for (unsigned i = 0; i < N_MODULES; i++) {
		memset(build_id, 0x11 * (int)(i + 1), sizeof(build_id));
		must(sf_recording_module(maker->recording, &(struct sf_recording_module){
			.number = i + 1, .path = module_paths[i], .build_id = build_id,
			.build_id_size = sizeof(build_id), .note = "" }, err), err);
	}
	for (unsigned i = 0; i < maker->n_threads; i++) {
		char name[32];

		snprintf(name, sizeof(name), "worker/%u", i + 1);
		must(sf_recording_thread(maker->recording, 4240, (int32_t)(4240 + i),
					 name, maker->start_ns, &maker->threads[i], err), err);
	}
}

static void make_stacks(struct maker *maker, struct sf_error *err)
{
	struct sf_frame frames[MAX_FRAMES];

	for (unsigned i = 0; i < maker->n_stacks; i++) {
		struct sf_trace trace = { .frames = frames, .capacity = MAX_FRAMES };

		trace.n_frames = fill_frames(frames, i);
		trace.end = end_of(i);
		must(sf_recording_stack(maker->recording, &trace, NULL, 0, NULL, &maker->running[i], err),
		     err);
		if (i % 4 == 0)
			must(sf_recording_stack(maker->recording, &trace, waits[i / 4 % 4], 0, NULL,
						&maker->blocked[i], err), err);
	}
}

/* Three of four samples run; a blocked one stands for ten ticks. */
static void write_sample(struct maker *maker, unsigned number, struct sf_error *err)
{
	unsigned i = number % maker->n_stacks;
	bool blocked = maker->blocked[i] != 0;
	uint32_t ticks = blocked ? 10 : 1;
	struct sf_recording_sample sample = {
		.time_ns = maker->start_ns + (uint64_t)number / maker->n_threads * PERIOD_NS,
		.thread = maker->threads[number % maker->n_threads],
		.stack = blocked ? maker->blocked[i] : maker->running[i],
		.cpu_ns = blocked ? 0 : PERIOD_NS,
		.wall_ns = (uint64_t)ticks * PERIOD_NS,
		.ticks = ticks,
		.state = blocked ? SF_STATE_BLOCKED : SF_STATE_RUNNING,
		.end = (uint8_t)end_of(i),
		.unheld = blocked,
		.syscall = blocked ? wait_numbers[i / 4 % 4] : SF_SYSCALL_NONE,
	};

	if (!blocked && number % 31 == 30) {
		sample.state = SF_STATE_RUNNABLE;
		sample.cpu_ns = 0;
	}
	if (number % 3 == 0)
		sample.label = maker->labels[0];
	if (number % 6 == 0)
		sample.second_label = maker->labels[1];
	if (maker->of_events) {
		sample.cpu_ns = sample.wall_ns = 0;
		sample.amount = 3;
	}
	must(sf_recording_sample(maker->recording, &sample, err), err);
	if (!blocked)
		sf_recording_hold(maker->recording, 4000 + number % 1000 * 17);
	if (number % 500 == 499)
		sf_recording_loss(maker->recording, sample.thread, SF_LOSS_LATE,
				  maker->of_events ? &(struct sf_lost){ .ticks = 1, .amount = 3 }
						   : &(struct sf_lost){ .ticks = 1, .cpu_ns = PERIOD_NS, .wall_ns = PERIOD_NS });
}

/* Every address but those of one module's first functions gets a name; each fourth an inlined one. */
static void name_address(struct maker *maker, unsigned module, uint64_t address,
			 struct sf_error *err)
{
	unsigned function = (unsigned)((address - 0x1000) / FUNCTION_SIZE);
	char name[160], linkage[40], inlined[64];
	struct sf_location names[2] = {
		{ .function = inlined, .linkage = inlined, .file = "/src/shop/inline.hpp",
		  .line = 7 + function, .inlined = true },
		{ .function = name, .linkage = linkage, .file = "/src/shop/shop.cc",
		  .line = 100 + function },
	};
	bool has_inlined = function % 4 == 3;

	if (module == 2 && function < 4)
		return;
	snprintf(name, sizeof(name), name_patterns[module][function % 4], function);
	snprintf(linkage, sizeof(linkage), "_ZN4shop%ufEv", module * 1000 + function);
	snprintf(inlined, sizeof(inlined), "shop::clamp<%u>(int)", function);
	must(sf_recording_names(maker->recording, module + 1, address,
				has_inlined ? names : names + 1, has_inlined ? 2 : 1, err), err);
}

static void name_all(struct maker *maker, struct sf_error *err)
{
	for (unsigned module = 0; module < N_MODULES; module++) {
		uint64_t *addresses;
		size_t n;

		must(sf_recording_unnamed(maker->recording, module + 1, &addresses, &n, err), err);
		for (size_t i = 0; i < n; i++)
			name_address(maker, module, addresses[i], err);
		free(addresses);
	}
}

static unsigned argument(int argc, char **argv, int index, unsigned otherwise)
{
	unsigned long value = argc > index ? strtoul(argv[index], NULL, 10) : otherwise;

	return value ? (unsigned)value : 1;
}

int main(int argc, char **argv)
{
	struct sf_error err = { 0 };
	struct maker maker = {
		.start_ns = 1000000000,
		.n_stacks = argument(argc, argv, 2, 1000),
		.n_threads = argument(argc, argv, 4, 4),
		.of_events = argc > 5 && strcmp(argv[5], "events") == 0,
	};
	struct sf_recording_totals totals;
	const unsigned n_samples = argument(argc, argv, 3, 10000);
	const struct sf_recording_about about = {
		.command = "/opt/shop/bin/shopd --fast", .engine = "ptrace", .host = "example",
		.version = "0.1.0", .start_unix_ns = 1700000000000000000,
		.start_monotonic_ns = maker.start_ns, .rate_mhz = 199000,
		.blocked_rate_mhz = 20000, .arch = sf_arch_by_machine(62),
	};
	uint64_t end_ns = maker.start_ns + (uint64_t)n_samples / maker.n_threads * PERIOD_NS;

	if (argc < 2) {
		fprintf(stderr, "usage: make_recording OUTPUT [STACKS [SAMPLES [THREADS [events|labels]]]]\n");
		return 2;
	}
	maker.threads = calloc(maker.n_threads, sizeof(*maker.threads));
	maker.running = calloc(maker.n_stacks, sizeof(*maker.running));
	maker.blocked = calloc(maker.n_stacks, sizeof(*maker.blocked));
	if (!maker.threads || !maker.running || !maker.blocked)
		return 1;
	must(sf_recording_create(argv[1], &about, &maker.recording, &err), &err);
	if (maker.of_events)
		must(sf_recording_measure(maker.recording, "page-faults", "events", &err), &err);
	if (argc > 5 && strcmp(argv[5], "labels") == 0) {
		must(sf_recording_label(maker.recording, "trace", "4bf9", &maker.labels[0], &err), &err);
		must(sf_recording_label(maker.recording, "size", "64", &maker.labels[1], &err), &err);
	}
	describe_target(&maker, &err);
	make_stacks(&maker, &err);
	for (unsigned number = 0; number < n_samples; number++)
		write_sample(&maker, number, &err);
	for (unsigned i = 0; i < maker.n_threads; i++)
		must(sf_recording_thread_end(maker.recording, maker.threads[i], end_ns,
					     maker.of_events ? 0 : (uint64_t)n_samples / maker.n_threads * PERIOD_NS * 3 / 4,
					     &err), &err);
	sf_recording_totals(maker.recording, &totals);
	if (maker.of_events)
		sf_recording_counted(maker.recording, totals.amount_seen + totals.amount_lost);
	name_all(&maker, &err);
	must(sf_recording_finish(maker.recording, end_ns, &err), &err);
	free(maker.threads);
	free(maker.running);
	free(maker.blocked);
	return 0;
}
