/* SPDX-License-Identifier: Apache-2.0 */
/* Shares the limits of a lookup (symbols/lookup.h) among the children that run at once. */
#include "symbols/lookup.h"

#include <poll.h>

#include "os/clock.h"
#include "symbols/lookup_child.h"

/* 10,000 addresses in 100 MB of debug data take a second. */
#define MAX_CPU_NS ((uint64_t)8 * 1000000000)

/* Of that time, what is kept back for symbol tables. */
#define TABLES_NS ((uint64_t)2 * 1000000000)

#define MAX_ANSWERS ((size_t)64 << 20)
#define LEAST_ANSWERS ((size_t)1 << 20) /* of an image, as long as there is room */
#define MAX_CHILDREN 4
#define LOOK_MS 100 /* at whether names are still wanted, and what children have used */

/* An image that is being looked up. */
struct job {
	const struct sf_lookup_image *image; /* NULL: none */
	struct sf_answers answers;
	struct sf_lookup_child child;
	bool debug_data;                     /* this child reads it */
	SF_VEC(uint64_t) addresses;          /* that have no answer yet, */
	SF_VEC(size_t) numbers;              /* and their indexes in the image's */
};

struct jobs {
	struct sf_lookup *lookup;
	sf_location_fn *fn;
	struct sf_error *err;
	struct job all[MAX_CHILDREN];
	size_t n_addresses;                  /* of images that wait */
	bool failed;
};

struct sf_lookup sf_lookup_begin(const atomic_bool *stop)
{
	return (struct sf_lookup){ .cpu_left_ns = MAX_CPU_NS, .room_left = MAX_ANSWERS, .stop = stop };
}

static bool is_unwanted(const struct sf_lookup *lookup)
{
	return lookup->stop && atomic_load(lookup->stop);
}

const char *sf_lookup_note(const struct sf_lookup *lookup)
{
	if (!lookup->incomplete)
		return NULL;
	if (is_unwanted(lookup))
		return "some names are missing: looking them up was interrupted";
	return "some names are missing: reading the debug data of the images takes more time or "
	       "memory than stillframe spends on that";
}

/* The addresses without an answer become the work. */
static bool collect(struct job *job)
{
	job->addresses.n = job->numbers.n = 0;
	for (size_t i = 0; i < job->answers.n; i++) {
		if (!job->answers.memory->of[i] && (!sf_vec_push(&job->addresses, job->image->addresses[i]) ||
						    !sf_vec_push(&job->numbers, i)))
			return false;
	}
	job->answers.numbers = job->numbers.items;
	return true;
}

/* Starts a child for what has no answer, with debug data or without. False: none runs. */
static bool try(struct jobs *jobs, struct job *job, bool debug_data)
{
	const struct sf_lookup *lookup = jobs->lookup;
	const uint64_t kept_ns = debug_data ? TABLES_NS : 0;
	struct sf_lookup_work work = { .fd = job->image->fd, .path = job->image->path, .is_perf_map = job->image->is_perf_map,
				       .debug_data = debug_data };

	job->debug_data = debug_data;
	if (lookup->cpu_left_ns <= kept_ns || is_unwanted(lookup))
		return false;
	if (!collect(job)) {
		jobs->failed = true;
		return sf_fail_memory(jobs->err);
	}
	work.cpu_ns = lookup->cpu_left_ns - kept_ns;
	work.addresses = job->addresses.items;
	work.n = job->addresses.n;
	work.answers = &job->answers;
	if (sf_lookup_child_start(&work, &job->child, jobs->err))
		return true;
	jobs->failed = true;
	return false;
}

static void finish(struct jobs *jobs, struct job *job)
{
	struct sf_lookup *lookup = jobs->lookup;
	struct sf_answers *answers = &job->answers;
	const size_t used = answers->memory->used;

	lookup->incomplete |= !sf_answers_report(answers, jobs->fn, job->image->arg);
	lookup->room_left += used < answers->size ? answers->size - used : 0;
	sf_answers_close(answers);
	sf_vec_deinit(&job->addresses);
	sf_vec_deinit(&job->numbers);
	*job = (struct job){ 0 };
}

/* No child runs for it: the next one does, or there is no other. */
static void go_on(struct jobs *jobs, struct job *job)
{
	jobs->lookup->incomplete |= !job->answers.memory->complete;
	if (job->answers.memory->complete || !job->debug_data || !try(jobs, job, false))
		finish(jobs, job);
}

/* As large a part of the room as the image has of the addresses that wait. */
static size_t room_for(const struct jobs *jobs, size_t n)
{
	const size_t left = jobs->lookup->room_left;
	const size_t part = (size_t)((unsigned __int128)left * n / jobs->n_addresses);

	return part > LEAST_ANSWERS ? part : left < LEAST_ANSWERS ? left : LEAST_ANSWERS;
}

static void begin(struct jobs *jobs, struct job *job, const struct sf_lookup_image *image)
{
	struct sf_lookup *lookup = jobs->lookup;
	const size_t room = room_for(jobs, image->n);

	jobs->n_addresses -= image->n;
	if (!sf_answers_open(&job->answers, image->n, room)) {
		lookup->incomplete = jobs->failed = true;
		sf_fail_memory(jobs->err);
		return;
	}
	lookup->room_left -= room;
	job->image = image;
	if (!try(jobs, job, true))
		go_on(jobs, job);
}

static void end_child(struct jobs *jobs, struct job *job)
{
	struct sf_lookup *lookup = jobs->lookup;
	const bool stuck = job->child.stuck;
	const uint64_t used_ns = sf_lookup_child_end(&job->child);

	/* Others would wait for the same thing. */
	lookup->used_ns += used_ns;
	lookup->cpu_left_ns -= !stuck && used_ns < lookup->cpu_left_ns ? used_ns : lookup->cpu_left_ns;
	go_on(jobs, job);
}

/* The one that has used most CPU time, where all together have used more than is left; NULL: they have not. */
static struct job *find_excess(struct jobs *jobs)
{
	struct job *most = NULL;
	uint64_t used_ns = 0, kept_ns = 0;

	for (struct job *job = jobs->all; job < jobs->all + MAX_CHILDREN; job++) {
		if (!job->child.pid)
			continue;
		used_ns += job->child.cpu_ns;
		kept_ns = job->debug_data ? TABLES_NS : kept_ns;
		if (!most || job->child.cpu_ns > most->child.cpu_ns)
			most = job;
	}
	return used_ns + kept_ns > jobs->lookup->cpu_left_ns ? most : NULL;
}

static void look(struct jobs *jobs)
{
	const bool unwanted = is_unwanted(jobs->lookup);
	struct job *excess;

	for (struct job *job = jobs->all; job < jobs->all + MAX_CHILDREN; job++) {
		if (job->child.pid && (!sf_lookup_child_look(&job->child) || unwanted))
			end_child(jobs, job);
	}
	excess = find_excess(jobs);
	if (excess)
		end_child(jobs, excess);
}

/* Until a child has ended, or it is time to look at all. False: none runs. */
static bool wait_for_one(struct jobs *jobs, uint64_t *looked_ns)
{
	struct pollfd waits[MAX_CHILDREN];
	struct job *running[MAX_CHILDREN];
	nfds_t n = 0;

	for (struct job *job = jobs->all; job < jobs->all + MAX_CHILDREN; job++) {
		if (!job->child.pid)
			continue;
		running[n] = job;
		waits[n++] = (struct pollfd){ .fd = job->child.fd, .events = POLLIN };
	}
	if (!n)
		return false;
	poll(waits, n, LOOK_MS);
	for (nfds_t i = 0; i < n; i++) {
		if (waits[i].revents)
			end_child(jobs, running[i]);
	}
	if (sf_now_ns() - *looked_ns >= (uint64_t)LOOK_MS * 1000000) {
		look(jobs);
		*looked_ns = sf_now_ns();
	}
	return true;
}

static struct job *find_free(struct jobs *jobs)
{
	for (struct job *job = jobs->all; job < jobs->all + MAX_CHILDREN; job++) {
		if (!job->image)
			return job;
	}
	return NULL;
}

/* What running children do not use of their room is there for others when they end. */
static bool has_room(const struct jobs *jobs)
{
	bool runs = false;

	for (const struct job *job = jobs->all; job < jobs->all + MAX_CHILDREN; job++)
		runs |= job->child.pid != 0;
	return !runs || jobs->lookup->room_left >= LEAST_ANSWERS;
}

bool sf_lookup_resolve(struct sf_lookup *lookup, const struct sf_lookup_image *images, size_t n, sf_location_fn *fn,
		       struct sf_error *err)
{
	struct jobs jobs = { .lookup = lookup, .fn = fn, .err = err };
	uint64_t looked_ns = sf_now_ns();
	struct job *job;
	size_t next = 0;

	for (size_t i = 0; i < n; i++)
		jobs.n_addresses += images[i].n;
	do {
		for (; next < n && !jobs.failed && has_room(&jobs) && (job = find_free(&jobs)); next++) {
			if (images[next].n)
				begin(&jobs, job, &images[next]);
		}
	} while (wait_for_one(&jobs, &looked_ns));
	return !jobs.failed;
}
