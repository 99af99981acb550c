/* SPDX-License-Identifier: Apache-2.0 */
#include "handler_rig.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "frozen/signal/chain.h"
#include "frozen/raw.h"
#include "frozen/output/record.h"
#include "frozen/signal/weight.h"

#define MAX_REGIONS 256
#define DEPTH 256

static struct sf_thread_entry *_Atomic entries[SF_RIG_MAX_SERIAL];
static uint64_t ring_bytes;
static struct sf_workspace *own;
struct sf_rig_sums sf_rig_sums[SF_RIG_MAX_SERIAL];
static _Alignas(8) uint8_t map_bytes[sizeof(struct sf_code_map) +
				     MAX_REGIONS * sizeof(struct sf_region)];

static void *pages(size_t size)
{
	void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return bytes == MAP_FAILED ? NULL : bytes;
}

/* Every mapped piece of code is an image of its own. Without tables: this program has frame pointers. */
static const struct sf_code_map *read_maps(void)
{
	struct sf_code_map *map = (struct sf_code_map *)(void *)map_bytes;
	unsigned long long start, end;
	char line[512], flags[8];
	FILE *maps = fopen("/proc/self/maps", "re");

	map->n_regions = 0;
	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%llx-%llx %7s", &start, &end, flags) != 3 || flags[2] != 'x' ||
		    map->n_regions == MAX_REGIONS)
			continue;
		map->regions[map->n_regions] = (struct sf_region){
			.start = start, .end = end, .bias = start,
			.image = (uint32_t)map->n_regions + 1,
		};
		map->n_regions++;
	}
	if (maps)
		fclose(maps);
	return map;
}

static bool make_slots(void)
{
	sf_handler.link.slots = pages(SF_RIG_SLOTS * sizeof(struct sf_slot));
	for (uint32_t i = 0; sf_handler.link.slots && i < SF_RIG_SLOTS; i++) {
		sf_slot_init(&sf_handler.link.slots[i], i);
		sf_handler.link.slots[i].workspace = sf_workspace_create(&sf_handler.code.memory, DEPTH, 16384);
		if (!sf_handler.link.slots[i].workspace)
			return false;
	}
	sf_handler.link.n_slots = SF_RIG_SLOTS;
	return sf_handler.link.slots;
}

bool sf_rig_start(enum sf_handler_mode mode, uint64_t ring_size)
{
	memset(&sf_handler, 0, sizeof(sf_handler));
	memset(sf_rig_sums, 0, sizeof(sf_rig_sums));
	memset(entries, 0, sizeof(entries));
	ring_bytes = ring_size;
	sf_handler.config.pid = getpid();
	sf_handler.config.cookie = 0x5157;
	sf_handler.config.signal = SF_RIG_SIGNAL;
	sf_handler.config.arch = sf_arch_host();
	sf_handler.config.jitter = true;
	sf_handler.config.kernel_tick_ns = UINT64_C(1000000000); /* longer than periods are: each ring has a sample */
	sf_handler.config.patience_ns = SF_RIG_PATIENCE_NS;
	sf_handler.link.entries = pages(SF_THREAD_TABLE_SIZE * sizeof(struct sf_thread_entry));
	sf_handler.code.map = read_maps();
	if (!sf_own_memory_probe(&sf_handler.code.memory) || !make_slots() || !sf_handler.link.entries)
		return false;
	own = sf_workspace_create(&sf_handler.code.memory, DEPTH, 16384);
	sf_handler.output.outbox = pages(sizeof(struct sf_outbox_header) + ring_size);
	if (!own || !sf_handler.output.outbox || sf_chain_install(SF_RIG_SIGNAL, sf_handler_enter) != 0)
		return false;
	sf_outbox_init(sf_handler.output.outbox, ring_size, 1);
	sf_handler.link.mode = mode;
	return true;
}

void sf_rig_stop(void)
{
	sf_handler.link.mode = SF_MODE_OFF;
	sf_workspace_destroy(own);
	for (uint32_t i = 0; i < SF_RIG_SLOTS; i++)
		sf_workspace_destroy(sf_handler.link.slots[i].workspace);
	munmap(sf_handler.link.slots, SF_RIG_SLOTS * sizeof(struct sf_slot));
	munmap(sf_handler.link.entries, SF_THREAD_TABLE_SIZE * sizeof(struct sf_thread_entry));
	munmap(sf_handler.output.outbox, sizeof(struct sf_outbox_header) + ring_bytes);
	sf_own_memory_close(&sf_handler.code.memory);
	sf_handler.link.entries = NULL;
	sf_handler.output.outbox = NULL;
}

static int32_t start_timer(uint64_t period_ns)
{
	const struct itimerspec time = {
		.it_value = { 0, (long)period_ns }, .it_interval = { 0, (long)period_ns },
	};
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SF_RIG_SIGNAL };
	int32_t timer;

	event._sigev_un._tid = (pid_t)sf_raw0(SYS_gettid);
	event.sigev_value.sival_ptr =
		(void *)(uintptr_t)sf_handler_value(sf_handler.config.cookie, SF_NO_SLOT, 0);
	if (sf_raw3(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, &event, &timer) != 0 ||
	    sf_raw4(SYS_timer_settime, timer, 0, &time, NULL) != 0)
		abort();
	return timer;
}

struct sf_thread_entry *sf_rig_enter(uint32_t serial, uint64_t period_ns)
{
	bool is_new;
	struct sf_thread_entry *entry = sf_thread_table_claim(sf_handler.link.entries, (int32_t)sf_raw0(SYS_gettid), &is_new);

	if (!entry || !is_new || serial >= SF_RIG_MAX_SERIAL)
		abort();
	entries[serial] = entry;
	if (sf_handler.config.period_ns != period_ns)
		sf_handler.config.period_ns = period_ns;
	atomic_store(&entry->period_ns, period_ns);
	atomic_store(&entry->serial, serial);
	if (period_ns)
		atomic_store(&entry->clock, start_timer(period_ns));
	return entry;
}

void sf_rig_leave(struct sf_thread_entry *entry)
{
	const int32_t timer = atomic_exchange(&entry->clock, -1);

	if (timer >= 0)
		sf_raw1(SYS_timer_delete, timer);
}

struct sf_workspace *sf_rig_workspace(void)
{
	return own;
}

void sf_rig_judge(void)
{
	for (unsigned i = 0; i < SF_RIG_MAX_SERIAL; i++) {
		struct sf_thread_entry *entry = entries[i];

		if (entry)
			sf_weight_decide(entry, atomic_load(&entry->tid));
	}
}

void sf_rig_sample(struct sf_workspace *workspace, uint64_t wait_ns)
{
	const uint32_t heard = sf_wake_up_count(&sf_handler.link.wake_up);
	unsigned n;

	sf_rig_judge();
	n = sf_handler_serve(&sf_handler, workspace);
	if (n == 0 && wait_ns)
		sf_wake_up_wait(&sf_handler.link.wake_up, heard, sf_raw_now_ns() + wait_ns);
}

static void add_sample(struct sf_rig_sums *sums, const struct sf_stream_sample *sample)
{
	sums->n_samples++;
	sums->cpu_ns += sample->cpu_ns;
	sums->wall_ns += sample->wall_ns;
	sums->ticks += sample->ticks;
	sums->n_frames += sample->n_frames;
	sums->n_roots += sample->end == SF_END_ROOT;
	if (sample->hold_ns > sums->max_hold_ns)
		sums->max_hold_ns = sample->hold_ns;
}

static void add_loss(struct sf_rig_sums *sums, const struct sf_stream_loss *loss)
{
	if (loss->cause >= SF_N_LOSSES)
		abort();
	sums->n_losses[loss->cause]++;
	sums->cpu_ns += loss->cpu_ns;
	sums->wall_ns += loss->wall_ns;
	sums->ticks += loss->ticks;
}

void sf_rig_drain(void)
{
	static _Alignas(8) uint8_t record[1 << 16];
	const struct sf_record_header *header = (const struct sf_record_header *)record;
	const struct sf_stream_sample *sample = (const struct sf_stream_sample *)record;
	const struct sf_stream_loss *loss = (const struct sf_stream_loss *)record;

	while (sf_outbox_get(sf_handler.output.outbox, ring_bytes, record, sizeof(record)) == 1) {
		if (header->type == SF_STREAM_SAMPLE && sample->serial < SF_RIG_MAX_SERIAL) {
			add_sample(&sf_rig_sums[0], sample);
			add_sample(&sf_rig_sums[sample->serial], sample);
		} else if (header->type == SF_STREAM_LOSS && loss->serial < SF_RIG_MAX_SERIAL) {
			add_loss(&sf_rig_sums[0], loss);
			add_loss(&sf_rig_sums[loss->serial], loss);
		} else {
			abort();
		}
	}
}
