/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the lost ticks to a recording. Most threads have losses of few causes or of none: there is a row for each
 * thread and cause that occurs. A loss without room for its row is one of no known thread, so that the sums hold.
 */
#include "recording/writer.h"

/* NULL: there is no room. */
static struct sf_loss_row *add_row(struct sf_recording *recording, const struct sf_loss_key *key)
{
	if (!sf_recording_has_room(recording, SF_LIMIT_LOSSES, recording->losses.n) ||
	    !sf_vec_push(&recording->losses, (struct sf_loss_row){ .dirty = false }))
		return NULL;
	if (!sf_intern_add(recording->loss_keys, key, sizeof(*key), NULL)) {
		recording->losses.n--;
		return NULL;
	}
	return &recording->losses.items[recording->losses.n - 1];
}

static struct sf_loss_row *row_of(struct sf_recording *recording, uint32_t thread, enum sf_loss cause)
{
	const struct sf_loss_key key = { .thread = thread, .cause = cause };
	const uint32_t number = thread ? sf_intern_find(recording->loss_keys, &key, sizeof(key)) : 0;
	struct sf_loss_row *row = NULL;

	if (number)
		return &recording->losses.items[number - 1];
	if (thread)
		row = add_row(recording, &key);
	return row ? row : &recording->no_thread[cause];
}

static void count_loss(struct sf_recording_totals *totals, enum sf_loss cause, const struct sf_lost *lost)
{
	totals->losses += lost->ticks;
	totals->losses_by[cause] += lost->ticks;
	totals->ticks += lost->ticks;
	totals->cpu_lost_ns += lost->cpu_ns;
	totals->amount_lost += lost->amount;
	if (cause == SF_LOSS_UNSEEN) /* counted by the kernel, for no thread that we knew */
		totals->cpu_counted_ns += lost->cpu_ns;
}

void sf_recording_loss(struct sf_recording *recording, uint32_t thread, enum sf_loss cause, const struct sf_lost *lost)
{
	struct sf_loss_row *row;

	if (!lost->ticks && !lost->cpu_ns && !lost->wall_ns && !lost->amount)
		return;
	row = row_of(recording, thread, cause);
	row->lost.ticks += lost->ticks;
	row->lost.cpu_ns += lost->cpu_ns;
	row->lost.wall_ns += lost->wall_ns;
	row->lost.amount += lost->amount;
	row->dirty = true;
	count_loss(&recording->totals, cause, lost);
}
