/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What threads do for themselves: seats that they claim, names, labels, leaving for another
 * program. The sampler reads what they leave in their seats, and never takes a lock of theirs.
 */
#include "agent/thread_self.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "agent/threads.h"
#include "base/intern.h"
#include "frozen/inside.h"
#include "frozen/raw.h"
#include "stream/record.h"

#define MAX_LABELS 65535
#define MAX_LABEL_TEXT 255
#define SWEEP_AFTER 1024             /* seats that threads claimed, and perhaps never gave back */
#define PATIENCE_NS 200000000        /* longer than any request is under way */
#define OWN_FLAGS (SF_SEAT_REGISTERED | SF_SEAT_NAMED)

/* --- the seats --- */

struct names {
	char of[SF_SEATS][SF_AGENT_NAME];
};

static struct sf_seat *_Atomic all_seats;
static struct names *_Atomic all_names;
static _Atomic uint32_t n_claimed;
static _Atomic bool hurry;
static _Atomic int32_t forking_tid;
static _Atomic uint32_t n_execs;

static int32_t own_tid(void)
{
	return (int32_t)sf_raw0(SYS_gettid);
}

/* Two may come at once: the second one's memory is given back. */
static void *map_once(void *_Atomic *where, size_t size)
{
	void *memory = atomic_load(where), *none = NULL;

	if (memory)
		return memory;
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return NULL;
	if (atomic_compare_exchange_strong(where, &none, memory))
		return memory;
	munmap(memory, size);
	return none;
}

struct sf_seat *sf_agent_seats(void)
{
	if (!map_once((void *_Atomic *)&all_names, sizeof(struct names)))
		return NULL;
	return map_once((void *_Atomic *)&all_seats, SF_SEATS * sizeof(struct sf_seat));
}

static bool lives(int32_t tid)
{
	return sf_raw3(SYS_tgkill, sf_raw0(SYS_getpid), tid, 0) == 0;
}

static void renew(struct sf_seat *seat)
{
	atomic_store(&seat->flags,
		     (atomic_load(&seat->flags) & OWN_FLAGS) | SF_SEAT_UNWATCHED);
	atomic_store(&seat->serial, 0);
	atomic_store(&seat->spoken_ns, 0);
	atomic_store(&seat->waited_ns, 0);
	atomic_store(&seat->n_samples, 0);
	atomic_store(&seat->asked, 0);
	atomic_store(&seat->rings_as, 0);
}

void sf_agent_seats_renew(void)
{
	struct sf_seat *seats = sf_agent_seats();

	for (uint32_t i = 0; seats && i < SF_SEATS; i++) {
		int32_t tid = atomic_load(&seats[i].tid);

		if (tid <= 0)
			continue;
		if (lives(tid))
			renew(&seats[i]);
		else
			sf_seats_leave(&seats[i]);
	}
}

/* Seats of threads that claimed one and ended before the sampler, if there is one, took note. */
static void sweep(struct sf_seat *seats)
{
	for (uint32_t i = 0; i < SF_SEATS; i++) {
		int32_t tid = atomic_load(&seats[i].tid);

		if (tid > 0 && atomic_load(&seats[i].serial) == 0 && !lives(tid))
			sf_seats_leave(&seats[i]);
	}
}

static struct sf_seat *own_seat(struct sf_error *err)
{
	struct sf_seat *seats = sf_agent_seats(), *seat = NULL;
	bool is_new = false;

	if (seats)
		seat = sf_seats_claim(seats, own_tid(), &is_new);
	if (is_new) /* no samples before the sampler has given it its number */
		atomic_fetch_or(&seat->flags, SF_SEAT_UNWATCHED);
	if (is_new && atomic_fetch_add(&n_claimed, 1) >= SWEEP_AFTER) {
		atomic_store(&n_claimed, 0);
		sweep(seats);
	}
	if (!seat)
		sf_fail(err, SF_E_UNSUPPORTED, "there is no room for more threads (%d)", SF_SEATS);
	return seat;
}

static struct sf_seat *find_own_seat(void)
{
	struct sf_seat *seats = atomic_load(&all_seats);

	return seats ? sf_seats_find(seats, own_tid()) : NULL;
}

void sf_agent_seat_done(struct sf_seat *seat)
{
	atomic_store(&seat->asked, 0);
	if (atomic_load(&seat->flags) & SF_SEAT_LEAVING)
		sf_raw_futex_wake(&seat->asked, INT_MAX);
}

void sf_agent_threads_hurry(void)
{
	atomic_store(&hurry, true);
	atomic_fetch_add(&sf_inside.bell.rings, 1);
	if (atomic_exchange(&sf_inside.bell.asleep, 0))
		sf_raw_futex_wake(&sf_inside.bell.rings, 1);
}

bool sf_agent_threads_hurried(void)
{
	return atomic_load_explicit(&hurry, memory_order_relaxed) && atomic_exchange(&hurry, false);
}

/* --- registering, names --- */

bool sf_agent_thread_register(struct sf_error *err)
{
	struct sf_seat *seat = own_seat(err);

	if (!seat)
		return false;
	if (!(atomic_fetch_or(&seat->flags, SF_SEAT_REGISTERED) & SF_SEAT_REGISTERED))
		sf_agent_threads_hurry();
	return true;
}

void sf_agent_thread_unregister(void)
{
	struct sf_seat *seat = find_own_seat();

	if (seat &&
	    atomic_fetch_and(&seat->flags, ~(uint32_t)SF_SEAT_REGISTERED) & SF_SEAT_REGISTERED)
		sf_agent_threads_hurry();
}

static char *name_of(const struct sf_seat *seat)
{
	return atomic_load(&all_names)->of[seat - atomic_load(&all_seats)];
}

bool sf_agent_thread_rename(const char *name, struct sf_error *err)
{
	struct sf_seat *seat;
	size_t size = name ? strnlen(name, SF_AGENT_NAME) : 0;
	char *kept;

	if (!size || size == SF_AGENT_NAME)
		return sf_fail(err, SF_E_INPUT, "a thread's name has 1 to %d bytes",
			       SF_AGENT_NAME - 1);
	seat = own_seat(err);
	if (!seat)
		return false;
	kept = name_of(seat);
	memset(kept, 0, SF_AGENT_NAME);
	memcpy(kept, name, size);
	atomic_fetch_or(&seat->flags, SF_SEAT_NAMED | SF_SEAT_RENAMED);
	sf_agent_threads_hurry();
	return true;
}

/* The thread may be changing it: then SF_SEAT_RENAMED comes again. */
void sf_agent_seat_name(const struct sf_seat *seat, char ret[SF_AGENT_NAME])
{
	memcpy(ret, name_of(seat), SF_AGENT_NAME);
	ret[SF_AGENT_NAME - 1] = 0;
}

/* --- labels --- */

static pthread_mutex_t labels_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sf_intern *labels;   /* "key\0value" */

static void tell_label(uint32_t number)
{
	size_t size, key_size;
	const char *text = sf_intern_get(labels, number, &size);
	struct sf_stream_label record = { .number = number };
	struct sf_outbox_piece pieces[3];

	key_size = strlen(text);
	record.key_size = (uint16_t)key_size;
	record.value_size = (uint16_t)(size - key_size - 1);
	pieces[0] = (struct sf_outbox_piece){
		(const char *)&record + sizeof(record.header),
		offsetof(struct sf_stream_label, text) - sizeof(record.header) };
	pieces[1] = (struct sf_outbox_piece){ text, key_size };
	pieces[2] = (struct sf_outbox_piece){ text + key_size + 1, record.value_size };
	if (sf_inside.outbox)
		sf_outbox_put(sf_inside.outbox, SF_STREAM_LABEL, pieces, 3);
}

void sf_agent_labels_tell(void)
{
	pthread_mutex_lock(&labels_lock);
	for (uint32_t i = 1; labels && i <= sf_intern_count(labels); i++)
		tell_label(i);
	pthread_mutex_unlock(&labels_lock);
}

/* 0: no memory, or too many. */
static uint32_t number_label(const char *text, size_t size, struct sf_error *err)
{
	uint32_t number = 0;
	bool is_new = false;

	if (!labels)
		labels = sf_intern_create();
	if (!labels) {
		sf_fail_memory(err);
		return 0;
	}
	/* One too many is kept, and never used. */
	if (sf_intern_count(labels) <= MAX_LABELS)
		number = sf_intern_add(labels, text, size, &is_new);
	if (!number || number > MAX_LABELS) {
		sf_fail(err, SF_E_SYSTEM, "there are more than %d different labels", MAX_LABELS);
		if (err)
			err->os_errno = ENOSPC;
		return 0;
	}
	if (is_new)
		tell_label(number);
	return number;
}

static bool set_label(struct sf_seat *seat, const char *key, const char *value,
		      struct sf_error *err)
{
	char text[2 * MAX_LABEL_TEXT + 2];
	size_t key_size = strnlen(key, MAX_LABEL_TEXT + 1);
	size_t value_size = strnlen(value, MAX_LABEL_TEXT + 1);
	uint32_t number;

	if (!key_size || key_size > MAX_LABEL_TEXT || value_size > MAX_LABEL_TEXT)
		return sf_fail(err, SF_E_INPUT,
			       "a label's key has 1 to %d bytes, its value up to %d", MAX_LABEL_TEXT, MAX_LABEL_TEXT);
	memcpy(text, key, key_size);
	text[key_size] = 0;
	memcpy(text + key_size + 1, value, value_size);
	pthread_mutex_lock(&labels_lock);
	number = number_label(text, key_size + 1 + value_size, err);
	pthread_mutex_unlock(&labels_lock);
	if (number)
		atomic_store(&seat->label, number);
	return number != 0;
}

bool sf_agent_thread_label(const char *key, const char *value, struct sf_error *err)
{
	struct sf_seat *seat;

	if (!key)
		return sf_fail(err, SF_E_INPUT, "a label needs a key");
	seat = value ? own_seat(err) : find_own_seat();
	if (value)
		return seat && set_label(seat, key, value, err);
	if (seat)
		atomic_store(&seat->label, 0);
	return true;
}

/* --- leaving for another program --- */

static bool is_ours(const siginfo_t *info, const struct sf_seat *seat)
{
	uint64_t value, mark = sf_inside_value(sf_inside.cookie, 0, 0);

	memcpy(&value, &info->si_value, sizeof(value));
	if (info->si_code == SI_TIMER || info->si_code == SI_QUEUE)
		return value >> 48 == mark >> 48;
	return info->si_code > 0 && seat && atomic_load(&seat->rings_as) > 0 &&
	       info->si_fd == atomic_load(&seat->rings_as);
}

bool sf_agent_thread_is_sent(const siginfo_t *info)
{
	return is_ours(info, find_own_seat());
}

/*
 * A signal that waits because it is blocked would reach the next program, whose action for it is
 * to die.
 */
static void swallow_pending(const struct sf_seat *seat)
{
	const struct timespec now = { 0 };
	uint64_t set = UINT64_C(1) << (sf_inside.signal - 1);
	siginfo_t info, others[8];
	unsigned n = 0;

	while (n < 8 && sf_raw4(SYS_rt_sigtimedwait, &set, &info, &now, sizeof(set)) > 0) {
		if (!is_ours(&info, seat))
			others[n++] = info;
	}
	while (n > 0)
		sf_raw4(SYS_rt_tgsigqueueinfo, sf_inside.pid, own_tid(), sf_inside.signal,
			&others[--n]);
}

/* A child of vfork runs in our memory, and none of this is its. */
static bool is_sampled_process(void)
{
	return sf_inside.seats && sf_inside.signal > 0 && sf_raw0(SYS_getpid) == sf_inside.pid;
}

static void wait_until_done(struct sf_seat *seat)
{
	uint64_t now_ns = sf_raw_now_ns(), until_ns = now_ns + PATIENCE_NS;
	uint32_t asked;

	while ((asked = atomic_load(&seat->asked)) && now_ns < until_ns) {
		sf_raw_futex_wait(&seat->asked, asked, until_ns - now_ns);
		now_ns = sf_raw_now_ns();
	}
}

bool sf_agent_exec_under_way(void)
{
	return atomic_load(&n_execs) > 0;
}

static void take_leave(struct sf_seat *seat)
{
	if (!seat)
		return;
	atomic_fetch_or(&seat->flags, SF_SEAT_LEAVING);
	wait_until_done(seat);
	sf_agent_clock_disarm(seat);
}

/*
 * A thread that is not the first one gets the first one's id in its exec (execve(2)), and with it
 * the signals that the first one's clock sends from then on. NULL: it is the first one.
 */
static struct sf_seat *find_first_seat(void)
{
	return own_tid() == sf_inside.pid ? NULL : sf_seats_find(sf_inside.seats, sf_inside.pid);
}

void sf_agent_thread_before_exec(void)
{
	struct sf_seat *seat;

	if (!is_sampled_process())
		return;
	atomic_fetch_add(&n_execs, 1);
	sf_agent_clock_itimer.disarm(NULL);
	/* Also one that the sampler has not met yet: it would give it a clock just now. */
	seat = own_seat(NULL);
	take_leave(seat);
	take_leave(find_first_seat());
	swallow_pending(seat);
}

static void come_back(struct sf_seat *seat)
{
	if (seat)
		atomic_fetch_and(&seat->flags, ~(uint32_t)SF_SEAT_LEAVING);
}

void sf_agent_thread_after_exec(void)
{
	if (!is_sampled_process())
		return;
	atomic_fetch_sub(&n_execs, 1);
	come_back(find_own_seat());
	come_back(find_first_seat());
	sf_agent_threads_hurry();
}

/* --- forked children --- */

void sf_agent_seats_before_fork(void)
{
	atomic_store(&forking_tid, own_tid());
	pthread_mutex_lock(&labels_lock);
}

void sf_agent_seats_after_fork(void)
{
	pthread_mutex_unlock(&labels_lock);
}

static void move_in(struct sf_seat *seats, const struct sf_seat *before, const char *name)
{
	bool is_new;
	struct sf_seat *seat = sf_seats_claim(seats, own_tid(), &is_new);

	if (!seat)
		return;
	atomic_store(&seat->flags, atomic_load(&before->flags) & OWN_FLAGS);
	atomic_store(&seat->label, atomic_load(&before->label));
	memcpy(name_of(seat), name, SF_AGENT_NAME);
}

void sf_agent_seats_forked(void)
{
	struct sf_seat *seats = atomic_load(&all_seats), *own, before = { 0 };
	char name[SF_AGENT_NAME] = "";

	pthread_mutex_unlock(&labels_lock);
	atomic_store(&n_execs, 0);
	if (!seats)
		return;
	own = sf_seats_find(seats, atomic_load(&forking_tid));
	if (own) {
		memcpy(name, name_of(own), sizeof(name));
		atomic_store(&before.flags, atomic_load(&own->flags));
		atomic_store(&before.label, atomic_load(&own->label));
	}
	for (uint32_t i = 0; i < SF_SEATS; i++) {
		if (atomic_load(&seats[i].tid) > 0)
			sf_agent_clock_disarm(&seats[i]);
	}
	madvise(seats, SF_SEATS * sizeof(*seats), MADV_DONTNEED);
	if (own)
		move_in(seats, &before, name);
}
