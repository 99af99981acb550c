/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/clocks/clocks.h"
#include "frozen/signal/chain.h"
#include "frozen/raw.h"
#include "stream/record.h"

#define RING (32u << 20)
#define N_SLOTS 32
#define DEPTH 64

static void *memory;
static bool begins_full;
static _Alignas(8) uint8_t record[SF_STREAM_MAX_RECORD];

static uint64_t process_cpu_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

uint64_t own_cpu_ns(void)
{
	return sf_raw_thread_cpu_ns();
}

void burn(uint64_t ns)
{
	uint64_t until_ns = own_cpu_ns() + ns;

	while (own_cpu_ns() < until_ns) {
		for (volatile int i = 0; i < 2000; i++)
			;
	}
}

uint64_t burn_until_heard(uint64_t ns)
{
	const struct sf_thread_entry *entry;
	uint64_t done_ns;

	burn(ns);
	entry = sf_thread_table_find(sf_handler.link.entries, gettid());
	done_ns = own_cpu_ns();
	while (entry && atomic_load(&entry->accounted_ns) < done_ns && own_cpu_ns() < done_ns + 500000000)
		burn(100000);
	return own_cpu_ns() - done_ns;
}

struct sf_agent_options sampling_options(void)
{
	return (struct sf_agent_options){
		.start = true,
		.clock = SF_AGENT_BOTH,
		.rate_mhz = 999000,
		.blocked_rate_mhz = 20000,
		.per_tick = 8,
		.max_depth = DEPTH,
	};
}

static void fill_inside(const struct sf_agent_options *options,
			const struct sf_agent_clock_kind *kind)
{
	static struct sf_slot *slots;

	memory = mmap(NULL, sizeof(struct sf_outbox_header) + RING, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(memory != MAP_FAILED);
	sf_handler.config.pid = getpid();
	sf_handler.config.cookie = 0x5f1e;
	sf_handler.config.signal = SIGPROF;
	sf_handler.config.arch = sf_arch_host();
	assert_true(sf_own_memory_probe(&sf_handler.code.memory));
	if (!slots) {
		slots = aligned_alloc(64, N_SLOTS * sizeof(*slots));
		for (uint32_t i = 0; i < N_SLOTS; i++) {
			sf_slot_init(&slots[i], i);
			slots[i].workspace = sf_workspace_create(&sf_handler.code.memory, DEPTH, 8192);
		}
	}
	sf_handler.link.slots = slots;
	sf_handler.link.n_slots = N_SLOTS;
	sf_handler.output.outbox = sf_outbox_init(memory, RING, SF_STREAM_VERSION);
	sf_handler.config.period_ns = kind ? UINT64_C(1000000000000) / options->rate_mhz : 0;
	sf_handler.config.kernel_tick_ns = sf_agent_clock_tick_ns();
	sf_handler.config.jitter = true;
	sf_handler.config.patience_ns = UINT64_C(60000000000); /* a sampler that is short of CPU time comes, too */
	sf_handler.counts.foreign = sf_handler.counts.late = sf_handler.counts.no_slot = sf_handler.counts.backed_off = 0;
}

static void fill_outbox(void)
{
	static const char bytes[256 << 10];
	const struct sf_outbox_piece large = { bytes, sizeof(bytes) }, small = { bytes, 8 };

	while (sf_outbox_put(sf_handler.output.outbox, SF_STREAM_NOTE, &large, 1))
		;
	while (sf_outbox_put(sf_handler.output.outbox, SF_STREAM_NOTE, &small, 1))
		;
}

void sampling_start(struct sampling *sampling, const struct sf_agent_options *options,
		    const struct sf_agent_clock_kind *kind, enum sf_handler_mode mode)
{
	struct sf_error err = { 0 };

	memset(sampling, 0, sizeof(*sampling));
	sampling->by_serial = calloc(MAX_SERIALS, sizeof(*sampling->by_serial));
	assert_non_null(sampling->by_serial);
	sampling->agent.options = *options;
	sampling->agent.clock = kind;
	fill_inside(options, kind);
	if (begins_full)
		fill_outbox();
	sampling->agent.workspace = sf_workspace_create(&sf_handler.code.memory, DEPTH, 8192);
	sampling->agent.threads = sf_agent_threads_create(&sampling->agent.options, sampling->agent.workspace, &err);
	assert_non_null(sampling->agent.threads);
	assert_int_equal(sf_chain_install(SIGPROF, sf_handler_enter), 0);
	atomic_store(&sf_handler.link.mode, (uint32_t)mode);
	sampling->began_cpu_ns = process_cpu_ns();
	if (!sf_sampler_start(&sampling->agent, &err))
		fail_msg("%s", err.text);
}

void sampling_start_full(struct sampling *sampling, const struct sf_agent_options *options,
			 const struct sf_agent_clock_kind *kind, enum sf_handler_mode mode)
{
	begins_full = true;
	sampling_start(sampling, options, kind, mode);
	begins_full = false;
}

/* --- reading --- */

void sampling_make_room(void)
{
	struct sf_outbox_header *box = memory;
	const uint64_t full = atomic_load(&box->head); /* what is told meanwhile is not taken out */

	while (atomic_load(&box->tail) < full &&
	       sf_outbox_get(box, RING, record, sizeof(record)) == 1)
		;
}

uint64_t sampling_told(void)
{
	return atomic_load(&((struct sf_outbox_header *)memory)->head);
}

static struct counted *of(struct sampling *sampling, uint32_t serial)
{
	assert_true(serial < MAX_SERIALS);
	if (serial >= sampling->n_serials)
		sampling->n_serials = serial + 1;
	return &sampling->by_serial[serial];
}

static void add_thread(struct sampling *sampling)
{
	const struct sf_stream_thread *thread = (void *)record;
	struct counted *counted = of(sampling, thread->serial);

	assert_true(thread->serial > 0 && thread->name_size < sizeof(counted->name));
	counted->tid = thread->tid;
	memset(counted->name, 0, sizeof(counted->name));
	memcpy(counted->name, thread->name, thread->name_size);
}

static void add_end(struct sampling *sampling)
{
	const struct sf_stream_thread_end *end = (void *)record;
	struct counted *counted = of(sampling, end->serial);

	counted->n_ends++;
	counted->end_cpu_ns += end->cpu_ns;
	sampling->sum.end_cpu_ns += end->cpu_ns;
}

static void add_sample_to(struct counted *counted, const struct sf_stream_sample *sample)
{
	if (sample->state == SF_STATE_RUNNABLE) {
		assert_int_equal(sample->cpu_ns, 0);
		counted->n_waiting++;
	} else if (sample->state == SF_STATE_RUNNING) {
		counted->n_samples++;
		counted->ticks += sample->ticks;
		counted->cpu_ns += sample->cpu_ns;
		counted->wall_ns += sample->wall_ns;
	} else {
		counted->n_asleep++;
		counted->asleep_wall_ns += sample->wall_ns;
	}
	counted->syscall = sample->syscall;
	counted->label = sample->label;
}

static void add_loss_to(struct counted *counted, const struct sf_stream_loss *loss)
{
	counted->n_loss[loss->cause]++;
	counted->lost_ns[loss->cause] += loss->cpu_ns;
	counted->lost_ticks += loss->ticks;
}

static void add_rest_to(struct counted *counted, const struct sf_stream_again *rest)
{
	counted->n_rests++;
	counted->ticks += rest->ticks;
	counted->cpu_ns += rest->cpu_ns;
	counted->wall_ns += rest->wall_ns;
}

/* A rest of CPU time, at a thread's end, or a sleep that goes on. */
static void add_again(struct sampling *sampling, const struct sf_stream_again *again)
{
	struct counted *counted = of(sampling, again->serial);

	if (again->cpu_ns) {
		assert_true(counted->n_samples + counted->n_waiting > 0 && !counted->n_rests);
		add_rest_to(counted, again);
		add_rest_to(&sampling->sum, again);
		return;
	}
	assert_true(counted->n_asleep > 0);
	counted->n_again++;
	counted->asleep_wall_ns += again->wall_ns;
	sampling->sum.n_again++;
}

static void add_record(struct sampling *sampling)
{
	const struct sf_record_header *header = (void *)record;
	const struct sf_stream_sample *sample = (void *)record;
	const struct sf_stream_loss *loss = (void *)record;
	const struct sf_stream_again *again = (void *)record;
	const struct sf_stream_label *label = (void *)record;

	switch (header->type) {
	case SF_STREAM_THREAD:
		add_thread(sampling);
		break;
	case SF_STREAM_THREAD_END:
		add_end(sampling);
		break;
	case SF_STREAM_SAMPLE:
		assert_true(sample->serial > 0);
		add_sample_to(of(sampling, sample->serial), sample);
		add_sample_to(&sampling->sum, sample);
		break;
	case SF_STREAM_LOSS:
		assert_true(loss->cause < SF_N_LOSSES);
		add_loss_to(of(sampling, loss->serial), loss);
		add_loss_to(&sampling->sum, loss);
		break;
	case SF_STREAM_AGAIN:
		add_again(sampling, again);
		break;
	case SF_STREAM_LABEL:
		memset(sampling->last_label, 0, sizeof(sampling->last_label));
		memcpy(sampling->last_label, label->text,
		       (size_t)label->key_size + label->value_size);
		break;
	default:
		fail_msg("a record of type %u", header->type);
	}
}

void sampling_stop(struct sampling *sampling)
{
	uint64_t total_ns;

	sf_sampler_stop(&sampling->agent);
	total_ns = process_cpu_ns() - sampling->began_cpu_ns;
	sampling->process_cpu_ns = total_ns - sf_sampler_cpu_ns(&sampling->agent);
	for (uint32_t i = 0; i < N_SLOTS; i++)
		assert_int_equal(sf_slot_state(sf_handler.link.slots[i].word), SF_SLOT_FREE);
	atomic_store(&sf_handler.link.mode, SF_MODE_OFF);
	while (sf_outbox_get(memory, RING, record, sizeof(record)) == 1)
		add_record(sampling);
	sampling->lost_records = sf_handler.output.outbox->lost;
	sf_sampler_destroy(&sampling->agent);
	sf_agent_threads_destroy(sampling->agent.threads);
	sf_workspace_destroy(sampling->agent.workspace);
	/* The handler stays: a late signal of ours is swallowed. */
	sf_handler.output.outbox = NULL;
	munmap(memory, sizeof(struct sf_outbox_header) + RING);
}

void sampling_free(struct sampling *sampling)
{
	free(sampling->by_serial);
}

struct counted *sampling_by_tid(struct sampling *sampling, int32_t tid)
{
	for (uint32_t i = sampling->n_serials; i-- > 1;) {
		if (sampling->by_serial[i].tid == tid)
			return &sampling->by_serial[i];
	}
	return NULL;
}

struct counted *sampling_by_name(struct sampling *sampling, const char *name)
{
	for (uint32_t i = sampling->n_serials; i-- > 1;) {
		if (strcmp(sampling->by_serial[i].name, name) == 0)
			return &sampling->by_serial[i];
	}
	return NULL;
}

uint64_t sampling_lost_ns(const struct counted *counted)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < SF_N_LOSSES; i++)
		sum += counted->lost_ns[i];
	return sum;
}
