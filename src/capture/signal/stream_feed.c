/* SPDX-License-Identifier: Apache-2.0 */
/* A feed: what the records of one process have said so far, within limits on memory and times. */
#include "capture/signal/stream_feed.h"

#include <stdlib.h>

#include "os/clock.h"

#define MAX_TICKS UINT32_MAX
#define MAX_TIME_NS (UINT64_C(1) << 61)    /* as sf_stream_check takes them */
#define OTHER_CLOCK_NS 1000000000

/* The limits: by each of them a program costs its watcher no more than some ten megabytes. */
static const struct {
	uint64_t most;
	const char *note;
} limits[SF_FEED_N_LIMITS] = {
	[SF_FEED_PROCESSES] = { 262144, "more than 262,144 programs ran: samples of later ones are losses" },
	[SF_FEED_THREADS] = { 262144, "more than 262,144 threads ran: samples of later ones are losses" },
	[SF_FEED_IMAGES] = { 1000000, "more than 1,000,000 times a file was mapped for its code: of later "
			     "ones only addresses are shown" },
	[SF_FEED_LABELS] = { 65536, "more than 65,536 labels: later ones are left out" },
	[SF_FEED_LABEL_TEXT] = { 16u << 20, "labels have more than 16 MB: later ones are left out" },
	[SF_FEED_NOTES] = { 1000, "more than 1,000 notes: later ones are left out" },
};

bool sf_feed_take_room(struct sf_feed *feed, enum sf_feed_limit limit, uint64_t n)
{
	struct sf_feeds *feeds = feed->feeds;

	if (n > limits[limit].most - feeds->used[limit]) {
		feeds->full |= 1u << limit;
		return false;
	}
	feeds->used[limit] += n;
	return true;
}

bool sf_feed_note_limits(struct sf_feed *feed, const struct sf_sink *sink, struct sf_error *err)
{
	struct sf_feeds *feeds = feed->feeds;

	for (unsigned i = 0; i < SF_FEED_N_LIMITS && feeds->noted != feeds->full; i++) {
		if (!((feeds->full & ~feeds->noted) & 1u << i))
			continue;
		feeds->noted |= 1u << i;
		if (sink->note && !sink->note(sink->arg, feed->pid, limits[i].note, err))
			return false;
	}
	return true;
}

bool sf_feed_init(struct sf_feed *feed, int32_t pid, struct sf_feeds *feeds, struct sf_error *err)
{
	*feed = (struct sf_feed){
		.pid = pid,
		.pid_given = pid != 0,
		.feeds = feeds,
		.numbers = sf_intern_create(),
		.label_numbers = sf_intern_create(),
	};
	if (feed->numbers && feed->label_numbers)
		return true;
	sf_feed_deinit(feed);
	return sf_fail_memory(err);
}

static void forget_labels(struct sf_feed *feed)
{
	for (size_t i = 0; i < feed->labels.n; i++)
		free((char *)feed->labels.items[i].key);
	feed->labels.n = 0;
}

void sf_feed_deinit(struct sf_feed *feed)
{
	forget_labels(feed);
	sf_intern_destroy(feed->numbers);
	sf_intern_destroy(feed->label_numbers);
	sf_intern_destroy(feed->event_labels);
	sf_vec_deinit(&feed->threads);
	sf_vec_deinit(&feed->labels);
	sf_vec_deinit(&feed->frames);
}

static int64_t within(int64_t ns)
{
	const int64_t most_ns = (int64_t)MAX_TIME_NS;

	return ns > most_ns ? most_ns : ns < -most_ns ? -most_ns : ns;
}

/* A stream file keeps its own clock. Below a second it is no other namespace: the time of day was set meanwhile. */
void sf_feed_set_clock(struct sf_feed *feed, const struct sf_stream_process *process)
{
	const int64_t theirs_ns = (int64_t)(process->unix_ns - process->time_ns), ours_ns = (int64_t)(sf_unix_now_ns() - sf_now_ns());
	const int64_t ahead_ns = theirs_ns - ours_ns;

	feed->ahead_ns = feed->pid_given && (ahead_ns >= OTHER_CLOCK_NS || ahead_ns <= -OTHER_CLOCK_NS) ? within(ahead_ns) : 0;
}

uint64_t sf_feed_take_time(struct sf_feed *feed, uint64_t time_ns)
{
	const int64_t ours_ns = (int64_t)(time_ns < MAX_TIME_NS ? time_ns : MAX_TIME_NS) + feed->ahead_ns;
	const uint64_t ret_ns = ours_ns < 0 ? 0 : (uint64_t)ours_ns > MAX_TIME_NS ? MAX_TIME_NS : (uint64_t)ours_ns;

	if (ret_ns > feed->last_ns)
		feed->last_ns = ret_ns;
	return ret_ns;
}

struct sf_feed_thread *sf_feed_find_thread(struct sf_feed *feed, uint32_t serial)
{
	uint32_t place = sf_intern_find(feed->numbers, &serial, sizeof(serial));

	return place ? &feed->threads.items[place - 1] : NULL;
}

const struct sf_feed_label *sf_feed_find_label(const struct sf_feed *feed, uint32_t number)
{
	uint32_t place = sf_intern_find(feed->label_numbers, &number, sizeof(number));

	return place ? &feed->labels.items[place - 1] : NULL;
}

bool sf_feed_weigh(struct sf_feed *feed, struct sf_feed_thread *thread, struct sf_weight *ret,
		  uint64_t cpu_ns, uint64_t wall_ns, uint32_t ticks, struct sf_error *err)
{
	*ret = (struct sf_weight){ .cpu_ns = cpu_ns, .wall_ns = wall_ns, .ticks = ticks };
	feed->cpu_ns += cpu_ns;
	feed->wall_ns += wall_ns;
	feed->ticks += ticks;
	if (feed->cpu_ns > SF_FEED_MAX_SUM || feed->wall_ns > SF_FEED_MAX_SUM || feed->ticks > MAX_TICKS)
		return sf_fail(err, SF_E_INPUT, "the samples of process %d add up to more time than "
			       "there was", feed->pid);
	if (thread)
		thread->cpu_ns += cpu_ns;
	return true;
}

bool sf_feed_lost(struct sf_feed *feed, const struct sf_sink *sink, uint64_t total,
		  struct sf_error *err)
{
	uint64_t n = total > feed->noted_lost ? total - feed->noted_lost : 0;
	struct sf_weight weight;

	if (!n)
		return true;
	feed->noted_lost = total;
	return sf_feed_weigh(feed, NULL, &weight, 0, 0, n < MAX_TICKS ? (uint32_t)n : MAX_TICKS, err) &&
	       sink->loss(sink->arg, 0, SF_LOSS_RING_FULL, &weight, err);
}

bool sf_feed_take_frames(struct sf_feed *feed, const struct sf_stream_frame *frames, uint32_t n)
{
	feed->frames.n = 0;
	if (!sf_vec_reserve(&feed->frames, n))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		const struct sf_stream_frame *frame = &frames[i];

		feed->frames.items[i] = (struct sf_frame){
			.pc = frame->address,
			.address = frame->address,
			.image = frame->image,
			.via = frame->via,
			.flags = frame->flags & SF_FRAME_EXACT,
			.kind = frame->kind,
		};
	}
	feed->frames.n = n;
	return true;
}

bool sf_feed_finish(struct sf_feed *feed, const struct sf_sink *sink, struct sf_error *err)
{
	for (size_t i = 0; i < feed->threads.n; i++) {
		struct sf_feed_thread *thread = &feed->threads.items[i];

		if (thread->ended)
			continue;
		thread->ended = true;
		/* cpu_ns is the kernel's count at the thread's last sample. The thread may have used more since. */
		if (!sink->thread_end(sink->arg, thread->serial, feed->last_ns, thread->cpu_ns, err))
			return false;
	}
	return true;
}

bool sf_feed_start_anew(struct sf_feed *feed, const struct sf_sink *sink, struct sf_error *err)
{
	if (!sf_feed_finish(feed, sink, err))
		return false;
	forget_labels(feed);
	feed->threads.n = 0;
	sf_intern_destroy(feed->numbers);
	sf_intern_destroy(feed->label_numbers);
	feed->numbers = sf_intern_create();
	feed->label_numbers = sf_intern_create();
	return (feed->numbers && feed->label_numbers) || sf_fail_memory(err);
}

bool sf_feeds_finish(const struct sf_feeds *feeds, const struct sf_sink *sink, struct sf_error *err)
{
	const struct sf_measure measure = {
		.name = feeds->measure,
		.unit = feeds->unit,
		.is_counted = true,
		.counted = feeds->counted,
	};

	if (!*feeds->measure || feeds->n_counted < feeds->n_counting)
		return true;
	return !sink->measure || sink->measure(sink->arg, &measure, err);
}
