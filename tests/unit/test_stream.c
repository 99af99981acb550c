/* SPDX-License-Identifier: Apache-2.0 */
/* Records by anybody: what sf_stream_check lets through, and files that end anywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "frozen/signal/handler.h"
#include "frozen/trace.h"
#include "stream/check.h"
#include "base/foreign_file.h"
#include "stream/file.h"
#include "stream_builder.h"

static struct stream_builder built;
static char path[64];

static int make_path(void **state)
{
	int fd;
	(void)state;

	strcpy(path, "/tmp/sf-test-XXXXXX");
	fd = mkstemp(path);
	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}

static int remove_path(void **state)
{
	static const char *const suffixes[] = { "", ".victim", ".other" };
	char name[128];
	(void)state;

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
		unlink(name);
	}
	return 0;
}

static const uint64_t frames[3][2] = { { 0x1010, 1 }, { 0x2020, 1 }, { 0x7fff00000000, 0 } };

/* One record of each type. Returns where each ends. */
static unsigned build_all(size_t ends[16])
{
	static const uint8_t build_id[4] = { 1, 2, 3, 4 };
	unsigned n = 0;

	stream_start(&built);
	ends[n++] = built.size;
#define ADD(call) (call, ends[n++] = built.size)
	ADD(stream_process(&built, 4242, "shop", "shop --fast"));
	ADD(stream_thread(&built, 1, 4242, "main"));
	ADD(stream_image(&built, 1, "/opt/shop", build_id, 4));
	ADD(stream_label(&built, 1, "trace", "4bf92f35"));
	ADD(stream_sample(&built, 1, 10, 5, 1, frames, 3));
	ADD(stream_again(&built, 1, 20, 10));
	ADD(stream_loss(&built, 1, 0, 3));
	ADD(stream_note(&built, "a blind spot"));
	ADD(stream_thread_end(&built, 1, 30, 6));
	ADD(stream_place(&built, 5, "Demo.c7(int)", "Demo.c6(int)"));
	ADD(stream_end(&built, 40, 2));
#undef ADD
	return n;
}

static const char *check_last(void)
{
	return sf_stream_check(stream_last(&built), built.size - built.last);
}

static void good_records_pass(void **state)
{
	size_t ends[16];
	unsigned n = build_all(ends);
	(void)state;

	for (unsigned i = 1; i < n; i++) {
		const char *wrong = sf_stream_check((const void *)(built.bytes + ends[i - 1]),
						    ends[i] - ends[i - 1]);
		if (wrong)
			fail_msg("record %u: %s", i, wrong);
	}
}

/*
 * For any type and any smaller size that a record claims: never read beyond it (for the
 * sanitizers).
 */
static void small_records_are_refused(void **state)
{
	(void)state;
	for (uint16_t type = SF_STREAM_PROCESS; type < SF_STREAM_N_TYPES; type++) {
		struct sf_record_header *record = malloc(sizeof(*record));

		*record = (struct sf_record_header){ .size = sizeof(*record), .type = type };
		assert_non_null(sf_stream_check(record, sizeof(*record)));
		free(record);
	}
}

static void sizes_must_agree(void **state)
{
	struct sf_record_header *record;
	size_t ends[16];
	(void)state;

	build_all(ends);
	record = stream_last(&built);
	assert_null(check_last());
	assert_non_null(sf_stream_check(record, record->size - 8));
	assert_non_null(sf_stream_check(record, record->size + 8));
	assert_non_null(sf_stream_check(record, 0));
	record->size -= 4;
	assert_non_null(sf_stream_check(record, record->size));
	record->size = SF_STREAM_MAX_RECORD + 8;
	assert_non_null(sf_stream_check(record, record->size));
	stream_note(&built, "more text than the record needs to be large enough");
	record = stream_last(&built);
	((struct sf_stream_note *)record)->size = 1;
	assert_null(check_last());
	record->size -= 4; /* no multiple of 8 */
	assert_non_null(sf_stream_check(record, record->size));
}

static void unknown_types_are_fine(void **state)
{
	struct sf_record_header record = { .size = sizeof(record), .type = SF_STREAM_N_TYPES };
	(void)state;

	assert_null(sf_stream_check(&record, sizeof(record)));
	record.type = UINT16_MAX;
	assert_null(sf_stream_check(&record, sizeof(record)));
	record.type = SF_STREAM_FILLER;
	assert_null(sf_stream_check(&record, sizeof(record)));
}

/* Writes a number into the last record, which was good, and expects it to be refused. */
#define SPOIL(make, type, field, value)                                                            \
	do {                                                                                       \
		stream_start(&built);                                                              \
		make;                                                                              \
		assert_null(check_last());                                                         \
		((struct type *)stream_last(&built))->field = (value);                             \
		if (!check_last())                                                                 \
			fail_msg("passes: " #type "." #field " = " #value);                        \
	} while (0)

/* The largest number that is let through, and the next one, in the last record, which was good. */
#define BOUND(make, type, field, limit)                                                            \
	do {                                                                                       \
		stream_start(&built);                                                              \
		make;                                                                              \
		((struct type *)stream_last(&built))->field = (limit);                             \
		if (check_last())                                                                  \
			fail_msg("refused: " #type "." #field " = " #limit);                       \
		((struct type *)stream_last(&built))->field++;                                     \
		if (!check_last())                                                                 \
			fail_msg("passes: " #type "." #field " = " #limit " + 1");                 \
	} while (0)

static void counts_and_enums_are_bounded(void **state)
{
	(void)state;
#define PROCESS stream_process(&built, 1, "name", "command")
	SPOIL(PROCESS, sf_stream_process, name_size, 4 + 7 + 6); /* 5 bytes of zeros are behind the texts */
	SPOIL(PROCESS, sf_stream_process, command_size, UINT16_MAX);
	SPOIL(PROCESS, sf_stream_process, pid, 0);
	SPOIL(PROCESS, sf_stream_process, pid, -1);
	SPOIL(PROCESS, sf_stream_process, walk, 3);
	SPOIL(PROCESS, sf_stream_process, time_ns, UINT64_MAX);
	SPOIL(PROCESS, sf_stream_process, unix_ns, UINT64_MAX);
	SPOIL(PROCESS, sf_stream_process, rate_mhz, UINT64_MAX);
#define THREAD stream_thread(&built, 1, 1, "name")
	SPOIL(THREAD, sf_stream_thread, name_size, 9);
	SPOIL(THREAD, sf_stream_thread, name_size, UINT32_MAX);
	SPOIL(THREAD, sf_stream_thread, serial, 0);
	SPOIL(THREAD, sf_stream_thread, tid, 0);
#define IMAGE stream_image(&built, 1, "/a", "1234", 4)
	SPOIL(IMAGE, sf_stream_image, path_size, 9);
	SPOIL(IMAGE, sf_stream_image, note_size, 7);
	SPOIL(IMAGE, sf_stream_image, build_id_size, 33);
	SPOIL(IMAGE, sf_stream_image, number, 0);
#define SAMPLE stream_sample(&built, 1, 1, 1, 0, frames, 3)
	SPOIL(SAMPLE, sf_stream_sample, n_frames, 4);
	SPOIL(SAMPLE, sf_stream_sample, n_frames, SF_MAX_DEPTH + 1);
	SPOIL(SAMPLE, sf_stream_sample, n_frames, 0x10000003); /* times 16 it is 0x30 in 32 bits */
	SPOIL(SAMPLE, sf_stream_sample, state, SF_N_STATES);
	SPOIL(SAMPLE, sf_stream_sample, end, SF_N_ENDS);
	SPOIL(SAMPLE, sf_stream_sample, frames[2].via, SF_N_VIAS);
	SPOIL(SAMPLE, sf_stream_sample, frames[2].kind, SF_KIND_WAIT);
	SPOIL(SAMPLE, sf_stream_sample, frames[2].kind, SF_KIND_CUT);
	SPOIL(SAMPLE, sf_stream_sample, frames[2].kind, SF_N_KINDS);
	SPOIL(SAMPLE, sf_stream_sample, syscall, 70000);
	SPOIL(SAMPLE, sf_stream_sample, syscall, -3);
	SPOIL(SAMPLE, sf_stream_sample, cpu_ns, UINT64_MAX);
	SPOIL(SAMPLE, sf_stream_sample, serial, 0);
	SPOIL(stream_again(&built, 1, 1, 1), sf_stream_again, wall_ns, UINT64_MAX);
	SPOIL(stream_loss(&built, 0, 0, 1), sf_stream_loss, cause, SF_N_LOSSES);
	SPOIL(stream_label(&built, 1, "k", "v"), sf_stream_label, key_size, 8);
	SPOIL(stream_label(&built, 1, "k", "v"), sf_stream_label, number, 0);
	SPOIL(stream_note(&built, "text"), sf_stream_note, size, 9);
	SPOIL(stream_note(&built, "text"), sf_stream_note, size, UINT32_MAX);
	SPOIL(stream_end(&built, 1, 0), sf_stream_end, time_ns, UINT64_MAX);
	SPOIL(stream_thread_end(&built, 1, 1, 1), sf_stream_thread_end, serial, 0);
#define PLACE stream_place(&built, 1, "a", "b")
	SPOIL(PLACE, sf_stream_place, key, 0);
	SPOIL(PLACE, sf_stream_place, n_functions, 0);
	SPOIL(PLACE, sf_stream_place, n_functions, 4);
	SPOIL(PLACE, sf_stream_place, n_functions, SF_STREAM_MAX_FUNCTIONS + 1);
	SPOIL(PLACE, sf_stream_place, n_functions, 0x10000001); /* times 16 it is 0x10 in 32 bits */
	SPOIL(PLACE, sf_stream_place, text_size, 21);
	SPOIL(PLACE, sf_stream_place, text_size, 33);
	SPOIL(PLACE, sf_stream_place, text_size, UINT32_MAX);
	SPOIL(PLACE, sf_stream_place, functions[1].file_size, 10);
	SPOIL(PLACE, sf_stream_place, functions[0].name_size, UINT16_MAX);
#define MEASURE stream_measure(&built, "gc", true, 7)
	SPOIL(MEASURE, sf_stream_measure, name_size, 11);
	SPOIL(MEASURE, sf_stream_measure, name_size, 0);
	SPOIL(MEASURE, sf_stream_measure, unit_size, 15);
	SPOIL(MEASURE, sf_stream_measure, counted, UINT64_MAX);
#define EVENT stream_event(&built, 1, 3, "type", "Odd", "56", frames, 3)
	SPOIL(EVENT, sf_stream_event, n_frames, 4);
	SPOIL(EVENT, sf_stream_event, n_frames, SF_MAX_DEPTH + 1);
	SPOIL(EVENT, sf_stream_event, n_frames, 0x10000003); /* times 16 it is 0x30 in 32 bits */
	SPOIL(EVENT, sf_stream_event, end, SF_N_ENDS);
	SPOIL(EVENT, sf_stream_event, serial, 0);
	SPOIL(EVENT, sf_stream_event, key_size, 8);
	SPOIL(EVENT, sf_stream_event, value_size, 7);
	SPOIL(EVENT, sf_stream_event, second_key_size, 8);
	SPOIL(EVENT, sf_stream_event, second_value_size, UINT16_MAX);
	SPOIL(EVENT, sf_stream_event, value_size, UINT16_MAX);
	SPOIL(EVENT, sf_stream_event, amount, UINT64_MAX);
	SPOIL(EVENT, sf_stream_event, hold_ns, UINT64_MAX);
	SPOIL(EVENT, sf_stream_event, time_ns, UINT64_MAX);
	SPOIL(EVENT, sf_stream_event, frames[2].via, SF_N_VIAS);
	SPOIL(EVENT, sf_stream_event, frames[2].kind, SF_N_KINDS);
	SPOIL(stream_event_loss(&built, 0, 0, 1), sf_stream_event_loss, cause, SF_N_LOSSES);
	SPOIL(stream_event_loss(&built, 0, 0, 1), sf_stream_event_loss, amount, UINT64_MAX);
}

#define MAX_NS (UINT64_C(1) << 61)

/* Every time of every record: sums of a few of them must not overflow. */
static void each_time_is_bounded(void **state)
{
	(void)state;
	BOUND(PROCESS, sf_stream_process, time_ns, MAX_NS);
	BOUND(PROCESS, sf_stream_process, unix_ns, INT64_MAX);
	BOUND(PROCESS, sf_stream_process, rate_mhz, INT64_MAX);
	BOUND(PROCESS, sf_stream_process, blocked_rate_mhz, INT64_MAX);
	BOUND(THREAD, sf_stream_thread, time_ns, MAX_NS);
	BOUND(stream_thread_end(&built, 1, 1, 1), sf_stream_thread_end, time_ns, MAX_NS);
	BOUND(stream_thread_end(&built, 1, 1, 1), sf_stream_thread_end, cpu_ns, MAX_NS);
	BOUND(SAMPLE, sf_stream_sample, time_ns, MAX_NS);
	BOUND(SAMPLE, sf_stream_sample, cpu_ns, MAX_NS);
	BOUND(SAMPLE, sf_stream_sample, wall_ns, MAX_NS);
	BOUND(SAMPLE, sf_stream_sample, hold_ns, MAX_NS);
#define AGAIN stream_again(&built, 1, 1, 1)
	BOUND(AGAIN, sf_stream_again, time_ns, MAX_NS);
	BOUND(AGAIN, sf_stream_again, cpu_ns, MAX_NS);
	BOUND(AGAIN, sf_stream_again, wall_ns, MAX_NS);
	SPOIL(AGAIN, sf_stream_again, serial, 0);
#define LOSS stream_loss(&built, 0, 0, 1)
	BOUND(LOSS, sf_stream_loss, cpu_ns, MAX_NS);
	BOUND(LOSS, sf_stream_loss, wall_ns, MAX_NS);
	BOUND(stream_end(&built, 1, 0), sf_stream_end, time_ns, MAX_NS);
	BOUND(stream_end(&built, 1, 0), sf_stream_end, agent_cpu_ns, MAX_NS);
}

/* The last value of each list, and the smallest numbers there are. */
static void each_list_is_bounded(void **state)
{
	(void)state;
	BOUND(PROCESS, sf_stream_process, walk, SF_MODE_HANDLER);
	BOUND(SAMPLE, sf_stream_sample, state, SF_N_STATES - 1);
	BOUND(SAMPLE, sf_stream_sample, end, SF_N_ENDS - 1);
	BOUND(SAMPLE, sf_stream_sample, frames[0].via, SF_N_VIAS - 1);
	BOUND(SAMPLE, sf_stream_sample, frames[2].via, SF_N_VIAS - 1);
	BOUND(SAMPLE, sf_stream_sample, syscall, INT16_MAX);
	BOUND(LOSS, sf_stream_loss, cause, SF_N_LOSSES - 1);
	BOUND(IMAGE, sf_stream_image, build_id_size, 32);
	SPOIL(SAMPLE, sf_stream_sample, frames[0].kind, SF_KIND_WAIT);
	SPOIL(SAMPLE, sf_stream_sample, syscall, SF_SYSCALL_FAULT - 1);
	SPOIL(PROCESS, sf_stream_process, parent, -1);
	SPOIL(THREAD, sf_stream_thread, tid, -1);
	stream_start(&built);
	SAMPLE;
	((struct sf_stream_sample *)stream_last(&built))->syscall = SF_SYSCALL_FAULT;
	assert_null(check_last());
	stream_start(&built);
	PROCESS;
	((struct sf_stream_process *)stream_last(&built))->parent = 0;
	assert_null(check_last());
}

/* Two texts in one record: each fits alone, both together do not. */
static void texts_share_their_room(void **state)
{
	(void)state;
	SPOIL(stream_label(&built, 1, "key", "value"), sf_stream_label, value_size, 6);
	SPOIL(stream_label(&built, 1, "key", "value"), sf_stream_label, key_size, 4);
	SPOIL(stream_process(&built, 1, "12345678", "12345678"), sf_stream_process, name_size, 9);
	SPOIL(stream_process(&built, 1, "12345678", "12345678"), sf_stream_process, command_size, 9);
	SPOIL(stream_image(&built, 1, "/2345678", "1234", 4), sf_stream_image, path_size, 9);
	SPOIL(stream_image(&built, 1, "/2345678", "1234", 4), sf_stream_image, note_size, 1);
	SPOIL(PLACE, sf_stream_place, functions[1].linkage_size, UINT16_MAX);
	SPOIL(PLACE, sf_stream_place, functions[1].name_size, UINT16_MAX);
}

/* A record with room for more frames than any walk yields. */
static void no_stack_is_deeper_than_can_be(void **state)
{
	struct sf_stream_sample *sample;
	size_t size;
	(void)state;

	stream_start(&built);
	SAMPLE;
	for (uint32_t n = SF_MAX_DEPTH; n <= SF_MAX_DEPTH + 1; n++) {
		size = sizeof(*sample) + n * sizeof(sample->frames[0]);
		sample = calloc(1, size);
		memcpy(sample, stream_last(&built), sizeof(*sample));
		sample->header.size = (uint32_t)size;
		sample->n_frames = n;
		assert_int_equal(sf_stream_check(&sample->header, size) == NULL, n == SF_MAX_DEPTH);
		free(sample);
	}
}

/* Reads all records; how many, and the error at the end. */
static unsigned read_all(struct sf_error *err, bool *cut_ret)
{
	struct sf_stream_file *file;
	unsigned n = 0;

	if (!sf_stream_file_open(path, &file, err))
		fail_msg("%s", err->text);
	while (sf_stream_file_next(file, err))
		n++;
	*cut_ret = sf_stream_file_is_cut(file);
	sf_stream_file_close(file);
	return n;
}

static void a_file_may_be_cut_at_every_byte(void **state)
{
	size_t ends[16];
	unsigned n = build_all(ends), whole = 0;
	struct sf_error err;
	bool cut;
	(void)state;

	for (size_t size = ends[0]; size <= built.size; size++) {
		stream_write(&built, path, size);
		while (whole + 1 < n && ends[whole + 1] <= size)
			whole++;
		assert_int_equal(read_all(&err, &cut), whole);
		assert_int_equal(err.code, SF_E_NONE);
		assert_int_equal(cut, size != ends[whole]);
	}
}

/* Whether the file at this path begins as a stream. */
static bool is_stream(const char *file_path)
{
	bool is;
	int fd;

	if (!sf_foreign_open_user(file_path, &fd, NULL))
		return false;
	is = sf_stream_is(fd);
	close(fd);
	return is;
}

static void a_header_may_be_cut_or_wrong(void **state)
{
	struct sf_stream_file *file;
	struct sf_error err;
	(void)state;

	stream_start(&built);
	for (size_t size = 0; size < built.size; size++) {
		stream_write(&built, path, size);
		assert_false(is_stream(path));
		assert_false(sf_stream_file_open(path, &file, &err));
		assert_int_equal(err.code, SF_E_INPUT);
	}
	stream_write(&built, path, built.size);
	assert_true(is_stream(path));
	((struct sf_stream_file_header *)built.bytes)->version++;
	stream_write(&built, path, built.size);
	assert_true(is_stream(path));
	assert_false(sf_stream_file_open(path, &file, &err));
	assert_non_null(strstr(err.text, "version 2"));
	assert_false(is_stream("/nonexistent"));
	assert_false(is_stream("/tmp"));
	assert_false(is_stream("/dev/null"));
}

static void damage_is_named(void **state)
{
	struct sf_error err;
	bool cut;
	(void)state;

	stream_start(&built);
	stream_process(&built, 1, "a", "b");
	stream_note(&built, "text");
	((struct sf_stream_note *)stream_last(&built))->size = 4000;
	stream_write(&built, path, built.size);
	assert_int_equal(read_all(&err, &cut), 1);
	assert_int_equal(err.code, SF_E_INPUT);
	assert_non_null(strstr(err.text, "damaged at byte 96: a note"));
	stream_last(&built)->size = 0;
	stream_write(&built, path, built.size);
	assert_int_equal(read_all(&err, &cut), 1);
	assert_non_null(strstr(err.text, "impossible size"));
}

/* Written records come back, also when they are larger than any buffer. */
static void files_go_both_ways(void **state)
{
	const uint32_t sizes[] = { 24, 70000, SF_STREAM_MAX_RECORD, 24, 65536 - 32, 65536, 40 };
	const unsigned n = sizeof(sizes) / sizeof(sizes[0]);
	struct sf_record_header *record = calloc(1, SF_STREAM_MAX_RECORD);
	const struct sf_record_header *back;
	struct sf_stream_file *file;
	struct sf_error err;
	struct stat status;
	(void)state;

	assert_true(sf_stream_file_create(path, &file, &err));
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	for (unsigned i = 0; i < n; i++) {
		memset(record, (int)i + 1, sizes[i]);
		*record = (struct sf_record_header){ .size = sizes[i], .type = 999 };
		assert_true(sf_stream_file_put(file, record, &err));
	}
	assert_true(sf_stream_file_flush(file, &err));
	sf_stream_file_close(file);
	assert_true(sf_stream_file_open(path, &file, &err));
	for (unsigned i = 0; i < n; i++) {
		back = sf_stream_file_next(file, &err);
		assert_non_null(back);
		assert_int_equal(back->size, sizes[i]);
		assert_int_equal(((const uint8_t *)back)[sizes[i] - 1], i + 1);
	}
	assert_null(sf_stream_file_next(file, &err));
	assert_int_equal(err.code, SF_E_NONE);
	sf_stream_file_close(file);
	free(record);
}

static void places_that_are_no_files_are_refused(void **state)
{
	struct sf_stream_file *file;
	struct sf_error err;
	(void)state;

	/* A device is not replaced, and a folder that is not there is not made. */
	assert_false(sf_stream_file_create("/dev/full", &file, &err));
	assert_int_equal(access("/dev/full", F_OK), 0);
	assert_false(sf_stream_file_create("/nonexistent/file", &file, &err));
	assert_int_equal(err.code, SF_E_SYSTEM);
}

static void put_text(const char *file_path, const char *text)
{
	int fd = open(file_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void assert_text(const char *file_path, const char *text)
{
	char found[64] = "";
	int fd = open(file_path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(read(fd, found, sizeof(found) - 1), (ssize_t)strlen(text));
	assert_string_equal(found, text);
	close(fd);
}

static void assert_refused(const char *word)
{
	struct sf_stream_file *file;
	struct sf_error err = { 0 };

	assert_false(sf_stream_file_create(path, &file, &err));
	assert_non_null(strstr(err.text, word));
	assert_false(sf_stream_file_continue(path, &file, &err));
	assert_non_null(strstr(err.text, word));
}

static void only_streams_are_replaced(void **state)
{
	struct sf_stream_file *old, *file;
	struct sf_error err = { 0 };
	struct stat status;
	(void)state;

	put_text(path, "a letter");
	assert_refused("not a stream");
	assert_text(path, "a letter");

	/* Its reader keeps what it has. */
	stream_start(&built);
	stream_note(&built, "text");
	stream_write(&built, path, built.size);
	assert_int_equal(chmod(path, 0666), 0);
	assert_true(sf_stream_file_open(path, &old, &err));
	assert_true(sf_stream_file_create(path, &file, &err));
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	assert_non_null(sf_stream_file_next(old, &err));
	sf_stream_file_close(old);
	sf_stream_file_close(file);

	put_text(path, "");
	assert_true(sf_stream_file_create(path, &file, &err));
	sf_stream_file_close(file);
}

/* A link may lead to a file that matters, and a file of another user is for that user to read. */
static void traps_are_not_written_through(void **state)
{
	char victim[128];
	(void)state;

	snprintf(victim, sizeof(victim), "%s.victim", path);
	put_text(victim, "");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(victim, path), 0);
	assert_refused("symbolic link");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(link(victim, path), 0);
	assert_refused("several names");
	assert_int_equal(unlink(victim), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 12345, 12345), 0);
		assert_refused("belongs to user 12345");
	}
	assert_text(path, "");
}

/* The file that was found is read, not the one that has its name by then. */
static void a_file_is_opened_once(void **state)
{
	struct sf_stream_file *file;
	struct sf_error err = { 0 };
	char other[128];
	int fd;
	(void)state;

	stream_start(&built);
	stream_note(&built, "text");
	stream_write(&built, path, built.size);
	assert_true(sf_foreign_open_user(path, &fd, &err));
	snprintf(other, sizeof(other), "%s.other", path);
	put_text(other, "swapped");
	assert_int_equal(rename(other, path), 0);
	for (int i = 0; i < 2; i++) {
		assert_true(sf_stream_is(fd));
		assert_true(sf_stream_file_read(fd, path, &file, &err));
		assert_non_null(sf_stream_file_next(file, &err));
		assert_null(sf_stream_file_next(file, &err));
		sf_stream_file_close(file);
	}
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_records_pass),
		cmocka_unit_test(small_records_are_refused),
		cmocka_unit_test(sizes_must_agree),
		cmocka_unit_test(unknown_types_are_fine),
		cmocka_unit_test(counts_and_enums_are_bounded),
		cmocka_unit_test(each_time_is_bounded),
		cmocka_unit_test(each_list_is_bounded),
		cmocka_unit_test(texts_share_their_room),
		cmocka_unit_test(no_stack_is_deeper_than_can_be),
		cmocka_unit_test_setup_teardown(a_file_may_be_cut_at_every_byte, make_path, remove_path),
		cmocka_unit_test_setup_teardown(a_header_may_be_cut_or_wrong, make_path, remove_path),
		cmocka_unit_test_setup_teardown(damage_is_named, make_path, remove_path),
		cmocka_unit_test_setup_teardown(files_go_both_ways, make_path, remove_path),
		cmocka_unit_test(places_that_are_no_files_are_refused),
		cmocka_unit_test_setup_teardown(only_streams_are_replaced, make_path, remove_path),
		cmocka_unit_test_setup_teardown(traps_are_not_written_through, make_path, remove_path),
		cmocka_unit_test_setup_teardown(a_file_is_opened_once, make_path, remove_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
