/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/threads.h"

#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "agent/asleep.h"
#include "agent/clock_timer.h"
#include "agent/own_proc.h"
#include "agent/thread_self.h"
#include "frozen/inside.h"
#include "frozen/raw.h"
#include "stream/record.h"

#define SCAN_SHARE 100              /* a scan is followed by this many times its cost of pause */
#define ADD_SHARE 10                    /* ... and taking in new ones a tenth */
#define SCAN_MIN_NS 2000000         /* where threads come and go */
#define SCAN_MAX_NS 50000000        /* where none does; what a new one does until then is unseen */
#define SCANS_PER_NAME 32
#define NOTABLE_CPU_NS 1000000      /* below this a difference between two clocks is no loss */

/* --- memory --- */

static void *map_zeroed(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

#define ALL_SIZE (SF_SEATS * sizeof(struct sf_agent_thread))
#define PLACES_SIZE (SF_SEATS * sizeof(uint32_t))

static void unmap(struct sf_agent_threads *threads)
{
	if (threads->all)
		munmap(threads->all, ALL_SIZE);
	if (threads->places)
		munmap(threads->places, PLACES_SIZE);
	munmap(threads, sizeof(*threads));
}

static bool set_names(struct sf_agent_threads *threads, struct sf_error *err)
{
	const char *regex = threads->options->threads;

	if (!regex)
		return true;
	if (regcomp(&threads->names, regex, REG_EXTENDED | REG_NOSUB) != 0)
		return sf_fail(err, SF_E_INPUT, "'%.100s' is not a regular expression", regex);
	threads->has_names = true;
	return true;
}

struct sf_agent_threads *sf_agent_threads_create(const struct sf_agent_options *options,
						 struct sf_error *err)
{
	struct sf_agent_threads *threads = map_zeroed(sizeof(*threads));

	if (!threads) {
		sf_fail_memory(err);
		return NULL;
	}
	threads->options = options;
	threads->all = map_zeroed(ALL_SIZE);
	threads->places = map_zeroed(PLACES_SIZE);
	threads->seats = sf_agent_seats();
	if (!threads->all || !threads->places || !threads->seats) {
		sf_fail_memory(err);
		unmap(threads);
		return NULL;
	}
	if (!set_names(threads, err)) {
		unmap(threads);
		return NULL;
	}
	sf_agent_seats_renew();
	sf_inside.seats = threads->seats;
	return threads;
}

void sf_agent_threads_destroy(struct sf_agent_threads *threads)
{
	if (!threads)
		return;
	if (threads->has_names)
		regfree(&threads->names);
	unmap(threads);
}

/* --- clocks --- */

static uint64_t read_clock(int32_t clock)
{
	struct timespec time = { 0 };

	sf_raw2(SYS_clock_gettime, clock, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

bool sf_agent_thread_cpu(int32_t tid, uint64_t *ns_ret)
{
	struct timespec time;

	if (sf_raw2(SYS_clock_gettime, sf_agent_thread_clock(tid), &time) != 0)
		return false;
	*ns_ret = (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
	return true;
}

/* CPU time of the process but for the agent's own threads. */
static uint64_t others_cpu_ns(const struct sf_agent_threads *threads)
{
	uint64_t total_ns = read_clock(CLOCK_PROCESS_CPUTIME_ID), own_ns;

	for (unsigned i = 0; i < sizeof(threads->own) / sizeof(threads->own[0]); i++) {
		if (threads->own[i] && sf_agent_thread_cpu(threads->own[i], &own_ns) &&
		    own_ns < total_ns)
			total_ns -= own_ns;
	}
	return total_ns;
}

/* The ticks that were due in so much CPU time: none where it was short. */
static uint32_t ticks_of(const struct sf_agent_threads *threads, uint64_t cpu_ns)
{
	uint64_t rate_mhz = threads->options->rate_mhz;

	return (uint32_t)((cpu_ns / 1000 * rate_mhz + 500000000) / 1000000000);
}

static bool is_leaving(const struct sf_seat *seat)
{
	return atomic_load(&seat->flags) & SF_SEAT_LEAVING;
}

/*
 * The thread itself may take its clock off meanwhile (sf_agent_thread_before_exec): it says so
 * first and then waits while the seat is busy; we say that it is busy and then look. So one of us
 * sees the other.
 */
static void arm(struct sf_agent_threads *threads, struct sf_agent_thread *thread)
{
	uint32_t none = 0;

	if (!threads->clock || !threads->clock->per_thread)
		return;
	if (!atomic_compare_exchange_strong(&thread->seat->asked, &none, SF_ASKED_BUSY))
		return;
	if (!is_leaving(thread->seat))
		sf_agent_clock_arm(threads->clock, thread->seat, thread->tid);
	sf_agent_seat_done(thread->seat);
}

/* One for the process, where that is the kind. */
static void arm_process(struct sf_agent_threads *threads)
{
	if (!threads->clock || threads->clock->per_thread || sf_agent_exec_under_way())
		return;
	threads->clock->arm(NULL, 0);
	if (sf_agent_exec_under_way())
		threads->clock->disarm(NULL);
}

void sf_agent_threads_disarm(struct sf_agent_threads *threads)
{
	if (threads->clock && !threads->clock->per_thread)
		threads->clock->disarm(NULL);
	for (uint32_t i = 0; i < threads->n; i++)
		sf_agent_clock_disarm(threads->all[i].seat);
}

/* --- telling --- */

static bool put(enum sf_stream_type type, const void *record, size_t size, const char *text,
		size_t text_size)
{
	const struct sf_outbox_piece pieces[] = {
		{ (const char *)record + sizeof(struct sf_record_header),
		  size - sizeof(struct sf_record_header) },
		{ text, text_size },
	};

	return !sf_inside.outbox ||
	       sf_outbox_put(sf_inside.outbox, (uint16_t)type, pieces, text_size ? 2 : 1);
}

/* Where there is no room it is told again after the next scan: samples of a thread that nobody knows are lost. */
static void tell_name(struct sf_agent_thread *thread, uint64_t now_ns)
{
	const struct sf_stream_thread record = {
		.serial = thread->serial,
		.tid = thread->tid,
		.time_ns = now_ns,
		.name_size = (uint32_t)strlen(thread->name),
	};

	thread->told = put(SF_STREAM_THREAD, &record, sizeof(record), thread->name,
			   record.name_size);
}

static void tell_end(const struct sf_agent_thread *thread, uint64_t cpu_ns, uint64_t now_ns)
{
	const struct sf_stream_thread_end record = {
		.serial = thread->serial,
		.time_ns = now_ns,
		.cpu_ns = cpu_ns,
	};

	put(SF_STREAM_THREAD_END, &record, sizeof(record), NULL, 0);
}

/* --- who is watched --- */

static bool is_wanted(const struct sf_agent_threads *threads, const struct sf_agent_thread *thread)
{
	switch (threads->options->only) {
	case SF_AGENT_REGISTERED:
		if (!(atomic_load(&thread->seat->flags) & SF_SEAT_REGISTERED))
			return false;
		break;
	case SF_AGENT_MAIN:
		if (thread->tid != sf_inside.pid)
			return false;
		break;
	default:
		break;
	}
	return thread->matches;
}

static void begin_watch(struct sf_agent_threads *threads, struct sf_agent_thread *thread,
			uint64_t now_ns)
{
	struct sf_seat *seat = thread->seat;
	uint64_t cpu_ns, switches;

	if (!sf_agent_thread_cpu(thread->tid, &cpu_ns))
		return;
	thread->watched = true;
	thread->serial = ++threads->last_serial;
	thread->sampled_asleep = false;
	thread->first_cpu_ns = thread->cpu_ns = thread->ticked_cpu_ns = cpu_ns;
	thread->looked_ns = now_ns;
	thread->asleep_ns = 0;
	if (!sf_own_run(thread->tid, &thread->wait_ns, &switches))
		thread->wait_ns = 0;
	atomic_store(&seat->spoken_ns, cpu_ns);
	atomic_store(&seat->waited_ns, 0);
	atomic_store(&seat->period_ns, sf_inside.period_ns);
	atomic_store(&seat->serial, thread->serial);
	atomic_fetch_and(&seat->flags, ~(uint32_t)(SF_SEAT_UNWATCHED | SF_SEAT_DEAF));
	tell_name(thread, now_ns);
	arm(threads, thread);
}

/* A thread that has ended is known up to its last look or sample, whichever was later. */
static void end_watch(struct sf_agent_threads *threads, struct sf_agent_thread *thread,
		      uint64_t now_ns)
{
	uint64_t spoken_ns, cpu_ns, lost_ns = 0;
	uint32_t ticks;

	if (!thread->watched)
		return;
	sf_agent_clock_disarm(thread->seat);
	atomic_fetch_or(&thread->seat->flags, SF_SEAT_UNWATCHED);
	sf_asleep_again(threads->options, thread, now_ns);
	if (!thread->replaced && sf_agent_thread_cpu(thread->tid, &cpu_ns))
		thread->cpu_ns = cpu_ns;
	lost_ns = sf_seat_take_cpu(thread->seat, thread->cpu_ns, &ticks);
	if (lost_ns)
		sf_inside_lose(thread->serial, SF_LOSS_GONE, lost_ns, lost_ns,
			       ticks_of(threads, lost_ns));
	spoken_ns = atomic_load(&thread->seat->spoken_ns);
	cpu_ns = spoken_ns > thread->first_cpu_ns ? spoken_ns - thread->first_cpu_ns : 0;
	threads->ended_cpu_ns += cpu_ns;
	thread->watched = false;
	tell_end(thread, cpu_ns, now_ns);
}

static void settle_watch(struct sf_agent_threads *threads, struct sf_agent_thread *thread,
			 uint64_t now_ns)
{
	bool wanted = is_wanted(threads, thread);

	if (wanted && !thread->watched)
		begin_watch(threads, thread, now_ns);
	else if (!wanted && thread->watched)
		end_watch(threads, thread, now_ns);
	else if (!wanted)
		atomic_fetch_or(&thread->seat->flags, SF_SEAT_UNWATCHED);
}

/* --- names --- */

/* True when it is another than before. */
static bool read_name(const struct sf_agent_threads *threads, struct sf_agent_thread *thread)
{
	char name[SF_AGENT_NAME];
	uint32_t flags = atomic_fetch_and(&thread->seat->flags, ~(uint32_t)SF_SEAT_RENAMED);

	if (flags & SF_SEAT_NAMED)
		sf_agent_seat_name(thread->seat, name);
	else
		sf_own_name(thread->tid, name, sizeof(name));
	if (strcmp(name, thread->name) == 0 || (!*name && thread->watched))
		return false;
	memcpy(thread->name, name, sizeof(name));
	thread->matches = !threads->has_names ||
			  regexec(&threads->names, thread->name, 0, NULL, 0) == 0;
	return true;
}

/* Programs name a thread soon after it began, or never: so soon, and then now and then. */
static bool name_is_due(const struct sf_agent_threads *threads,
			const struct sf_agent_thread *thread)
{
	uint32_t age = threads->n_scans - thread->first_scan;

	return (atomic_load(&thread->seat->flags) & SF_SEAT_RENAMED) || (age & (age - 1)) == 0 ||
	       age % SCANS_PER_NAME == 0;
}

/* --- scanning --- */

static bool is_own(const struct sf_agent_threads *threads, int32_t tid)
{
	for (unsigned i = 0; i < sizeof(threads->own) / sizeof(threads->own[0]); i++) {
		if (threads->own[i] == tid)
			return true;
	}
	return false;
}

static struct sf_agent_thread *find(struct sf_agent_threads *threads, int32_t tid)
{
	struct sf_seat *seat = sf_seats_find(threads->seats, tid);
	uint32_t place = seat ? threads->places[seat - threads->seats] : 0;

	return place && threads->all[place - 1].tid == tid ? &threads->all[place - 1] : NULL;
}

static void add(struct sf_agent_threads *threads, int32_t tid, uint64_t now_ns)
{
	struct sf_agent_thread *thread;
	bool new_seat;
	struct sf_seat *seat = sf_seats_claim(threads->seats, tid, &new_seat);

	if (!seat || threads->n == SF_SEATS) {
		threads->n_seatless++;
		return;
	}
	thread = &threads->all[threads->n++];
	*thread = (struct sf_agent_thread){
		.seat = seat, .tid = tid, .matches = !threads->has_names };
	threads->places[seat - threads->seats] = threads->n;
	thread->first_scan = thread->last_scan = threads->n_scans;
	atomic_fetch_or(&seat->flags, SF_SEAT_UNWATCHED);
	read_name(threads, thread);
	settle_watch(threads, thread, now_ns);
	threads->pause_ns = 0;
}

struct scan {
	struct sf_agent_threads *threads;
	uint64_t now_ns;
	uint64_t began_cpu_ns;     /* the sampler's own clock */
	uint64_t adding_ns;        /* of it: for threads that are new */
};

static void see(void *arg, int32_t tid)
{
	struct scan *scan = arg;
	struct sf_agent_threads *threads = scan->threads;
	struct sf_agent_thread *thread = find(threads, tid);

	if (is_own(threads, tid))
		return;
	if (!thread) {
		uint64_t before_ns = sf_raw_thread_cpu_ns();

		add(threads, tid, scan->now_ns);
		scan->adding_ns += sf_raw_thread_cpu_ns() - before_ns;
		return;
	}
	if (thread->replaced)
		return;
	thread->last_scan = threads->n_scans;
}

/* Its seat goes to the next thread only when nobody asks for it any more. */
static bool drop(struct sf_agent_threads *threads, uint32_t i, uint64_t now_ns)
{
	struct sf_agent_thread *thread = &threads->all[i];
	uint32_t *place;

	if (atomic_load(&thread->seat->asked))
		return false;
	end_watch(threads, thread, now_ns);
	place = &threads->places[thread->seat - threads->seats];
	if (*place == i + 1)
		*place = 0;
	if (atomic_load(&thread->seat->tid) == thread->tid)
		sf_seats_leave(thread->seat);
	*thread = threads->all[--threads->n];
	if (i < threads->n)
		threads->places[thread->seat - threads->seats] = i + 1;
	threads->pause_ns = 0;
	return true;
}

static void settle(struct sf_agent_threads *threads, struct sf_agent_thread *thread,
		   uint64_t now_ns)
{
	bool renamed = name_is_due(threads, thread) && read_name(threads, thread);

	if (thread->watched && (renamed || !thread->told))
		tell_name(thread, now_ns);
	settle_watch(threads, thread, now_ns);
	if (thread->watched && atomic_load(&thread->seat->clock) < 0)
		arm(threads, thread);
}

static void settle_all(struct sf_agent_threads *threads, uint64_t now_ns)
{
	for (uint32_t i = threads->n; i-- > 0;) {
		if (threads->all[i].last_scan == threads->n_scans)
			settle(threads, &threads->all[i], now_ns);
		else
			drop(threads, i, now_ns);
	}
}

/*
 * A change makes the next pause the shortest, none makes it twice as long; within what it costs. Taking in a new thread
 * costs more than a look at an old one, but once: a program that starts thousands is followed all the same.
 */
static void set_pause(struct sf_agent_threads *threads, const struct scan *scan)
{
	uint64_t looking_ns = sf_raw_thread_cpu_ns() - scan->began_cpu_ns - scan->adding_ns;
	uint64_t least_ns = looking_ns * SCAN_SHARE + scan->adding_ns * ADD_SHARE;
	uint64_t pause_ns = threads->pause_ns ? threads->pause_ns * 2 : SCAN_MIN_NS;

	if (pause_ns > SCAN_MAX_NS)
		pause_ns = SCAN_MAX_NS;
	if (pause_ns < least_ns)
		pause_ns = least_ns;
	threads->pause_ns = pause_ns;
	threads->next_scan_ns = scan->now_ns + pause_ns;
}

void sf_agent_threads_scan(struct sf_agent_threads *threads, uint64_t now_ns)
{
	struct scan scan = { .threads = threads, .now_ns = now_ns };

	if (now_ns < threads->next_scan_ns && !sf_agent_threads_hurried())
		return;
	if (threads->n_scans++ == 0)
		threads->others_cpu_ns = others_cpu_ns(threads);
	threads->n_seatless = 0;
	scan.began_cpu_ns = sf_raw_thread_cpu_ns();
	if (sf_own_threads(see, &scan))
		settle_all(threads, now_ns);
	arm_process(threads);
	set_pause(threads, &scan);
}

/* --- the end, and pauses --- */

/* CPU time of threads that came and went between two scans, or of their last moments. */
static void count_unseen(const struct sf_agent_threads *threads)
{
	uint64_t total_ns = others_cpu_ns(threads) - threads->others_cpu_ns;
	uint64_t seen_ns = threads->ended_cpu_ns + threads->paused_cpu_ns;

	if (threads->options->only != SF_AGENT_ALL || threads->has_names || !threads->n_scans ||
	    total_ns <= seen_ns + NOTABLE_CPU_NS || (int64_t)total_ns < 0)
		return;
	sf_inside_lose(0, SF_LOSS_UNSEEN, total_ns - seen_ns, 0,
		       ticks_of(threads, total_ns - seen_ns));
}

void sf_agent_threads_end(struct sf_agent_threads *threads, uint64_t now_ns)
{
	sf_agent_threads_disarm(threads);
	for (uint32_t i = 0; i < threads->n; i++)
		end_watch(threads, &threads->all[i], now_ns);
	count_unseen(threads);
	threads->n = 0;
}

void sf_agent_threads_pause(struct sf_agent_threads *threads)
{
	threads->paused_cpu_ns -= others_cpu_ns(threads);
}

void sf_agent_threads_resume(struct sf_agent_threads *threads, uint64_t now_ns)
{
	threads->paused_cpu_ns += others_cpu_ns(threads);
	for (uint32_t i = 0; i < threads->n; i++) {
		struct sf_agent_thread *thread = &threads->all[i];
		uint64_t cpu_ns, switches;
		uint32_t ticks;

		if (!thread->watched || !sf_agent_thread_cpu(thread->tid, &cpu_ns))
			continue;
		thread->first_cpu_ns += sf_seat_take_cpu(thread->seat, cpu_ns, &ticks);
		thread->cpu_ns = thread->ticked_cpu_ns = cpu_ns;
		thread->looked_ns = now_ns;
		thread->asleep_ns = 0;
		thread->sampled_asleep = false;
		sf_own_run(thread->tid, &thread->wait_ns, &switches);
		atomic_store(&thread->seat->waited_ns, 0);
	}
}
