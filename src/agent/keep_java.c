/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Java virtual machine of this process: attached to when it has started, published with the
 * code map, its places described, its threads named. Its memory is read through the kernel as from
 * outside; nothing of it is called.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/fetch.h"
#include "agent/keep.h"
#include "agent/memory.h"
#include "frozen/inside.h"
#include "frozen/raw.h"
#include "os/clock.h"
#include "runtime/list.h"
#include "stream/record.h"

#define MAX_TEXT 4000          /* bytes of a name in a record */
#define THREADS_NS 100000000u  /* between two looks at threads, if that costs nothing; ... */
#define THREADS_SHARE 100      /* ... at least so many times what it costs */
#define NAMES_NS 1000000000u   /* until a thread is looked at again, and asked for its name, ... */
#define MIN_LOOKS 2            /* ... after so many at once */
#define PLACES_AT_ONCE 128

/* --- telling --- */

static void tell_note(struct sf_keep *keep, const char *text)
{
	const struct sf_stream_note record = { .size = (uint32_t)strlen(text) };
	const struct sf_outbox_piece pieces[] = {
		{ (const char *)&record + sizeof(record.header),
		  sizeof(record) - sizeof(record.header) },
		{ text, record.size },
	};

	sf_keep_out_put(keep, SF_STREAM_NOTE, pieces, 2);
}

/* A record under way: the texts go behind the functions. And what it is made from. */
struct telling {
	const struct sf_hotspot *hotspot; /* NULL: not yet attached to */
	struct sf_self_lines lines; /* of the machine's memory, as it was just now */
	struct sf_fetch fetch;      /* of all that is wanted */
	struct sf_place_wanted wanted[PLACES_AT_ONCE];
	struct sf_stream_function functions[SF_STREAM_MAX_FUNCTIONS];
	size_t text_size;
	char text[SF_STREAM_MAX_RECORD / 2];
};

static bool read_memory(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size)
{
	struct telling *telling = reader->arg;

	return (telling->hotspot && sf_hotspot_copy(telling->hotspot, ret, addr, size)) ||
	       sf_fetch_read(&telling->fetch, ret, addr, size) ||
	       sf_self_lines_read(&telling->lines, &sf_inside.access, ret, addr, size);
}

/* All that was read before is too old now. */
static void forget(struct telling *telling)
{
	sf_fetch_forget(&telling->fetch);
	sf_self_lines_forget(&telling->lines);
}

static uint16_t add_text(struct telling *telling, const char *text)
{
	size_t room = sizeof(telling->text) - telling->text_size, size = strnlen(text, MAX_TEXT);

	if (size > room)
		size = room;
	memcpy(telling->text + telling->text_size, text, size);
	telling->text_size += size;
	return (uint16_t)size;
}

static void add_function(struct telling *telling, const struct sf_java_function *from,
			 struct sf_stream_function *ret)
{
	*ret = (struct sf_stream_function){
		.line = from->line,
		.flags = (uint16_t)((from->inlined ? SF_STREAM_INLINED : 0) |
				    (from->approximate ? SF_STREAM_APPROXIMATE : 0)),
	};
	ret->name_size = add_text(telling, from->name);
	ret->linkage_size = add_text(telling, from->linkage);
	ret->file_size = add_text(telling, from->file);
}

static bool tell_place(struct sf_keep *keep, uint64_t key, const struct sf_java_function *functions,
		       size_t n)
{
	struct telling *telling = keep->java.telling;
	struct sf_stream_place record = { .key = key };
	struct sf_outbox_piece pieces[3] = {
		{ (const char *)&record + sizeof(record.header),
		  sizeof(record) - sizeof(record.header) },
	};

	telling->text_size = 0;
	n = n < SF_STREAM_MAX_FUNCTIONS ? n : SF_STREAM_MAX_FUNCTIONS;
	for (size_t i = 0; i < n; i++)
		add_function(telling, &functions[i], &telling->functions[i]);
	record.n_functions = (uint32_t)n;
	record.text_size = (uint32_t)telling->text_size;
	pieces[1] =
		(struct sf_outbox_piece){ telling->functions, n * sizeof(telling->functions[0]) };
	pieces[2] = (struct sf_outbox_piece){ telling->text, telling->text_size };
	return sf_keep_out_put(keep, SF_STREAM_PLACE, pieces, 3);
}

/* --- places --- */

static void describe(struct sf_keep *keep, const struct sf_place_wanted *wanted)
{
	struct sf_jvm *jvm = keep->java.finder.jvm;
	const struct sf_java_function *functions;
	uint32_t place = sf_jvm_place(jvm, &wanted->frame);
	size_t n = place ? sf_jvm_functions(jvm, place, &functions) : 0;

	if (!n || !tell_place(keep, wanted->key, functions, n))
		keep->java.n_untold++;
}

static size_t take_wanted(struct sf_places *places, struct sf_place_wanted *ret, size_t max)
{
	size_t n = 0;

	while (n < max && sf_outbox_get(places->queue, places->queue->size, &ret[n], sizeof(*ret)) > 0)
		n += ret[n].header.type == SF_PLACE_WANTED;
	return n;
}

/* The machine's code need not be fetched. */
static void want(void *arg, uint64_t addr, size_t size)
{
	struct telling *telling = arg;

	if (!telling->hotspot || !sf_hotspot_loads(telling->hotspot, addr, size))
		sf_fetch_want(&telling->fetch, addr, size);
}

static void fetch(void *arg)
{
	struct telling *telling = arg;

	sf_fetch_all(&telling->fetch);
}

static void expect(struct sf_keep *keep, size_t n)
{
	struct telling *telling = keep->java.telling;
	const struct sf_ahead ahead = { .want = want, .fetch = fetch, .arg = telling };
	const struct sf_frame *frames[PLACES_AT_ONCE];

	for (size_t i = 0; i < n; i++)
		frames[i] = &telling->wanted[i].frame;
	if (sf_inside.access.gathers)
		sf_jvm_expect(keep->java.finder.jvm, &ahead, frames, n);
}

/* Some at once, which were wanted before anything is read that tells of them. True: there were many. */
static bool describe_wanted(struct sf_keep *keep)
{
	struct sf_places *places = atomic_load(&sf_inside.places);
	struct telling *telling = keep->java.telling;
	bool many = false;
	size_t n;

	while (places && (n = take_wanted(places, telling->wanted, PLACES_AT_ONCE)) > 0) {
		forget(telling);
		expect(keep, n);
		for (size_t i = 0; i < n; i++)
			describe(keep, &telling->wanted[i]);
		many = many || n == PLACES_AT_ONCE;
	}
	return many;
}

/* --- threads --- */

static void name_thread(struct sf_keep *keep, struct sf_kept_java_thread *thread, int32_t tid,
			uint64_t now_ns)
{
	struct sf_stream_thread record = { .serial = thread->serial, .tid = tid,
					   .time_ns = now_ns, .is_full = 1 };
	char name[SF_KEPT_JAVA_NAME];
	struct sf_outbox_piece pieces[2] = {
		{ (const char *)&record + sizeof(record.header),
		  sizeof(record) - sizeof(record.header) },
	};

	if (!sf_jvm_thread_name(keep->java.finder.jvm, tid, name, sizeof(name)) ||
	    strcmp(name, thread->name) == 0)
		return;
	record.name_size = (uint32_t)strlen(name);
	pieces[1] = (struct sf_outbox_piece){ name, record.name_size };
	if (sf_keep_out_put(keep, SF_STREAM_THREAD, pieces, 2))
		memcpy(thread->name, name, sizeof(name));
}

/*
 * One that just begins may not be in the machine's list yet, and a name that cannot be read now, as a collector may be
 * moving it, can be soon.
 */
static bool is_due(const struct sf_kept_java_thread *thread, const struct sf_seat *seat,
		   uint64_t now_ns)
{
	return thread->n_looks < MIN_LOOKS || now_ns - thread->looked_ns >= NAMES_NS ||
	       (atomic_load(&seat->handles[SF_RUNTIME_HOTSPOT]) != SF_SEAT_NO_HANDLE && !thread->name[0]);
}

static void look_at(struct sf_keep *keep, struct sf_seat *seat, int32_t tid, uint64_t now_ns)
{
	struct sf_kept_java_thread *thread = &keep->java.threads[seat - sf_inside.seats];
	const uint32_t serial = atomic_load(&seat->serial);
	uint64_t java;

	if (thread->serial != serial)
		*thread = (struct sf_kept_java_thread){ .serial = serial };
	if (!is_due(thread, seat, now_ns))
		return;
	thread->n_looks++;
	thread->looked_ns = now_ns;
	java = sf_jvm_thread(keep->java.finder.jvm, tid);
	atomic_store(&seat->handles[SF_RUNTIME_HOTSPOT], java ? java : SF_SEAT_NO_HANDLE);
	if (java)
		name_thread(keep, thread, tid, now_ns);
}

_Static_assert(SF_SEATS <= UINT16_MAX + 1, "a seat's number fits");

/* Whose it is, 0: nobody's who is watched. */
static int32_t taken_by(const struct sf_seat *seat)
{
	const int32_t tid = atomic_load(&seat->tid);

	return tid > 0 && atomic_load(&seat->serial) ? tid : 0;
}

/* They are 3 MB, so only when somebody has come. */
static void list_seats(struct sf_keep_java *java)
{
	const uint32_t n_seated = atomic_load(&sf_inside.n_seated);

	if (n_seated == java->n_seated)
		return;
	java->n_seated = n_seated;
	java->n_seats = 0;
	for (uint32_t i = 0; i < SF_SEATS; i++) {
		if (taken_by(&sf_inside.seats[i]))
			java->seats[java->n_seats++] = (uint16_t)i;
	}
}

static void look_at_threads(struct sf_keep *keep, uint64_t now_ns)
{
	uint64_t before_ns = sf_raw_thread_cpu_ns(), pause_ns;

	forget(keep->java.telling);
	list_seats(&keep->java);
	for (uint32_t i = 0; i < keep->java.n_seats; i++) {
		struct sf_seat *seat = &sf_inside.seats[keep->java.seats[i]];
		const int32_t tid = taken_by(seat);

		if (tid)
			look_at(keep, seat, tid, now_ns);
	}
	if (!keep->java.n_seats)
		return; /* the sampler has not looked for threads yet */
	/* By its CPU time: where all CPUs are busy elapsed time says how long it waited for one. */
	pause_ns = (sf_raw_thread_cpu_ns() - before_ns) * THREADS_SHARE;
	keep->java.next_look_ns = sf_now_ns() + (pause_ns > THREADS_NS ? pause_ns : THREADS_NS);
}

/* --- the virtual machine --- */

static bool start(struct sf_keep *keep)
{
	struct sf_error err = { 0 };

	if (!keep->java.telling)
		keep->java.telling = calloc(1, sizeof(*keep->java.telling));
	if (!keep->java.threads)
		keep->java.threads = calloc(SF_SEATS, sizeof(*keep->java.threads));
	if (!keep->java.seats)
		keep->java.seats = calloc(SF_SEATS, sizeof(*keep->java.seats));
	return keep->java.telling && keep->java.threads && keep->java.seats && sf_agent_make_places(&err) &&
	       sf_agent_make_cache(SF_RUNTIME_HOTSPOT, sf_hotspot_ops.cache_size, &err);
}

static bool attach(struct sf_keep *keep)
{
	const struct sf_reader memory = { .read = read_memory, .arg = keep->java.telling };

	forget(keep->java.telling);
	keep->java.telling->hotspot = NULL;
	keep->java.telling->fetch.access = &sf_inside.access;
	if (!sf_jvm_finder_attach(&keep->java.finder, &keep->process, keep->images, &memory))
		return false;
	keep->java.telling->hotspot = sf_jvm_hotspot(keep->java.finder.jvm);
	return true;
}

void sf_keep_java_look(struct sf_keep *keep)
{
	struct sf_jvm_finder *finder = &keep->java.finder;
	const char *news;

	if (sf_jvm_finder_look(finder, &keep->process, keep->images) && start(keep) && attach(keep))
		keep->renew = keep->urgent = true;
	news = sf_jvm_finder_news(finder);
	if (news)
		tell_note(keep, news);
}

bool sf_keep_java_turn(struct sf_keep *keep, uint64_t now_ns)
{
	bool many;

	if (!keep->java.finder.jvm)
		return false;
	many = describe_wanted(keep);
	if (now_ns >= keep->java.next_look_ns) {
		look_at_threads(keep, now_ns);
		sf_jvm_lend_code(keep->java.finder.jvm);
	}
	return many;
}

static void tell_untold(struct sf_keep *keep)
{
	const struct sf_places *places = atomic_load(&sf_inside.places);
	uint64_t n = keep->java.n_untold + (places ? atomic_load(&places->n_untold) : 0);
	char text[120];

	if (!n)
		return;
	snprintf(text, sizeof(text), "%llu frames of Java could not be described: there were too "
		 "many at once", (unsigned long long)n);
	tell_note(keep, text);
}

void sf_keep_java_end(struct sf_keep *keep)
{
	if (!keep->java.finder.jvm)
		return;
	describe_wanted(keep);
	look_at_threads(keep, sf_now_ns());
	tell_untold(keep);
}

void sf_keep_java_deinit(struct sf_keep *keep)
{
	if (sf_inside.seats && keep->java.finder.jvm) {
		for (uint32_t i = 0; i < SF_SEATS; i++)
			atomic_store(&sf_inside.seats[i].handles[SF_RUNTIME_HOTSPOT], 0);
	}
	sf_jvm_finder_deinit(&keep->java.finder);
	free(keep->java.threads);
	free(keep->java.seats);
	free(keep->java.telling);
	keep->java = (struct sf_keep_java){ 0 };
}
