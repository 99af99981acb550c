/* SPDX-License-Identifier: Apache-2.0 */
/* The rounds of naming while a recording goes on, and the thread of each. */
#include "session/early_names.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "os/clock.h"
#include "os/quiet_thread.h"

#define FIRST_NS 4000000000      /* after the begin: a short recording opens each file once */
#define LAST_NS 2000000000       /* before the end: on a busy machine a round takes as long */
#define TIMES 4                  /* as much is recorded before the next round */
#define CPU_NS ((uint64_t)2 * 1000000000) /* of all rounds, of the time that names may take (symbols/lookup.c) */
#define WAITING_ROWS 20000       /* of names, until the next transaction */

struct sf_early_names {
	struct sf_recording *recording;
	struct sf_images *images;
	struct sf_name_sources *sources;
	uint64_t begun_ns, next_ns, end_ns;
	uint64_t least_left_ns;          /* of CPU time: then no round begins */
	struct sf_name_round round;
	pthread_t thread;
	bool running;                    /* there is a thread, which may have done its work, ... */
	_Atomic bool done;               /* ... and then says so */
	bool found;                      /* names wait to be written */
	uint32_t n_seen;                 /* images */
};

struct sf_early_names *sf_early_names_open(struct sf_recording *recording, struct sf_images *images,
					   struct sf_name_sources *sources, uint64_t end_ns)
{
	struct sf_early_names *early = calloc(1, sizeof(*early));

	if (!early)
		return NULL;
	early->recording = recording;
	early->images = images;
	early->sources = sources;
	early->begun_ns = sf_now_ns();
	early->next_ns = early->begun_ns + FIRST_NS;
	early->end_ns = end_ns;
	early->least_left_ns = sources->lookup.cpu_left_ns > CPU_NS ? sources->lookup.cpu_left_ns - CPU_NS : 0;
	return early;
}

static void *look_up(void *arg)
{
	struct sf_early_names *early = arg;

	sf_name_round_look_up(&early->round, early->sources);
	atomic_store_explicit(&early->done, true, memory_order_release);
	return NULL;
}

/* Where no thread can be started, the round is looked up at the end. */
static void start_thread(struct sf_early_names *early)
{
	atomic_store(&early->done, false);
	early->running = sf_quiet_thread_start(&early->thread, look_up, early);
}

static bool is_due(const struct sf_early_names *early, uint64_t now_ns)
{
	return now_ns >= early->next_ns && early->sources->lookup.cpu_left_ns > early->least_left_ns;
}

/* The next one is the last one where the one after it would come too late. */
static void set_next(struct sf_early_names *early, uint64_t now_ns)
{
	const uint64_t last_ns = early->end_ns - LAST_NS;

	early->next_ns = early->begun_ns + TIMES * (now_ns - early->begun_ns);
	if (now_ns >= last_ns)
		early->next_ns = UINT64_MAX;
	else if (early->next_ns > last_ns)
		early->next_ns = last_ns;
}

static bool begin_round(struct sf_early_names *early, uint64_t now_ns, struct sf_error *err)
{
	set_next(early, now_ns);
	if (!sf_name_round_take(&early->round, early->recording, early->images, false, err))
		return false;
	if (early->round.images.n)
		start_thread(early);
	return true;
}

static void end_thread(struct sf_early_names *early)
{
	pthread_join(early->thread, NULL);
	early->running = false;
	early->found = true;
}

static bool write_found(struct sf_early_names *early, size_t max_rows, struct sf_error *err)
{
	bool done;

	if (!sf_name_round_put(&early->round, early->recording, max_rows, &done, err))
		return false;
	if (done) {
		sf_name_round_deinit(&early->round);
		early->found = false;
	}
	return true;
}

/* At once: those of the kernel are read whole, however few are needed. */
static void look_for_kernel(struct sf_early_names *early)
{
	for (; early->n_seen < sf_images_count(early->images); early->n_seen++) {
		if (sf_images_get(early->images, early->n_seen + 1)->is_kernel)
			sf_kernel_names_begin(&early->sources->kernel);
	}
}

bool sf_early_names_tick(struct sf_early_names *early, uint64_t now_ns, struct sf_error *err)
{
	if (early->running && atomic_load_explicit(&early->done, memory_order_acquire))
		end_thread(early);
	if (early->found)
		return write_found(early, WAITING_ROWS, err);
	if (early->round.images.n)
		return true;
	look_for_kernel(early);
	return !is_due(early, now_ns) || begin_round(early, now_ns, err);
}

bool sf_early_names_close(struct sf_early_names *early, struct sf_error *err)
{
	bool fine = true;

	if (!early)
		return true;
	if (early->running)
		end_thread(early);
	else if (early->round.images.n && !early->found)
		sf_name_round_look_up(&early->round, early->sources);
	if (early->round.images.n)
		fine = write_found(early, SIZE_MAX, err);
	sf_name_round_deinit(&early->round);
	free(early);
	return fine;
}
