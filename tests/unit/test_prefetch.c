/* SPDX-License-Identifier: Apache-2.0 */
/* Of places that were expected everything that describes them has been read ahead, in a few requests, in every layout. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "fake_jvm.h"
#include "runtime/hotspot/jvm.h"
#include "runtime/hotspot/metadata.h"
#include "runtime/hotspot/scopes.h"

#define LINE 8             /* less than any real one: what is wanted has to be said to the byte */
#define N_METHODS 3
#define PC 48              /* of the record, in a piece of code */

/* The places that were wanted, and those that are read without. */
struct book {
	struct fake_jvm *jvm;
	struct sf_reader memory;   /* the machine's, through this */
	uint8_t wanted[FAKE_SIZE / LINE], fetched[FAKE_SIZE / LINE];
	uint64_t headers[N_METHODS], header_size; /* of pieces of code, which need not be fetched */
	unsigned n_requests, n_wanted, n_missed;
	bool strict;               /* what is not fetched cannot be read */
};

static void want(void *arg, uint64_t addr, size_t size)
{
	struct book *book = arg;

	for (uint64_t i = addr / LINE; i <= (addr + size - 1) / LINE; i++) {
		if (i * LINE < FAKE_BASE || i * LINE >= FAKE_BASE + FAKE_SIZE)
			continue;
		book->n_wanted += !book->wanted[i - FAKE_BASE / LINE];
		book->wanted[i - FAKE_BASE / LINE] = 1;
	}
}

static void fetch(void *arg)
{
	struct book *book = arg;

	book->n_requests++;
	memcpy(book->fetched, book->wanted, sizeof(book->fetched));
}

static bool is_fetched(const struct book *book, uint64_t addr, size_t size)
{
	for (unsigned i = 0; i < N_METHODS; i++) {
		if (addr >= book->headers[i] && addr + size <= book->headers[i] + book->header_size)
			return true;
	}
	for (uint64_t i = addr / LINE; i <= (addr + size - 1) / LINE; i++) {
		if (!book->fetched[i - FAKE_BASE / LINE])
			return false;
	}
	return true;
}

static bool read_book(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size)
{
	struct book *book = reader->arg;

	if (addr < FAKE_BASE || !size || size > FAKE_SIZE || addr - FAKE_BASE > FAKE_SIZE - size)
		return false;
	if (!is_fetched(book, addr, size)) {
		book->n_missed++;
		if (book->strict)
			return false;
	}
	return book->jvm->memory.read(&book->jvm->memory, ret, addr, size);
}

/* A compiled method, another one that is inlined in it, and an interpreted one, far from each other. */
struct places {
	uint64_t methods[N_METHODS];
	struct sf_frame frames[2];
	const struct sf_frame *wanted[2];
};

static void make_places(struct book *book, struct places *ret)
{
	static const char *const classes[] = { "a/Outer", "b/Inlined", "java/util/Interpreted" };
	struct fake_jvm *jvm = book->jvm;
	uint64_t code;

	for (unsigned i = 0; i < N_METHODS; i++) {
		fake_alloc(jvm, 1024);
		ret->methods[i] = fake_method(jvm, classes[i], "call", "(ILjava/lang/String;)V", "A.java", 8);
	}
	code = fake_code(jvm, &(struct fake_code){
		.name = "nmethod", .size = 128, .frame_size = 4, .method = ret->methods[0], .compile_id = 7, .level = 4,
		.pc = PC, .inlined = ret->methods[1], .inlined_bci = 1,
		/* So many that what comes behind them is not fetched with them. */
		.n_before = 40, .n_after = 40 });
	ret->frames[0] = (struct sf_frame){ .kind = SF_KIND_C2, .pc = code + PC, .id = 7,
		.token = sf_hotspot_blob_start(&jvm->hotspot, &jvm->memory, code + PC) };
	ret->frames[1] = (struct sf_frame){ .kind = SF_KIND_INTERPRETED, .token = ret->methods[2] };
	ret->wanted[0] = &ret->frames[0];
	ret->wanted[1] = &ret->frames[1];
	book->headers[0] = sf_hotspot_header(&jvm->hotspot, ret->frames[0].token);
	book->header_size = jvm->hotspot.header_size;
}

static void expect(struct book *book, const struct places *places, struct sf_java_expected *ret)
{
	const struct sf_prefetch ahead = { .want = want, .fetch = fetch, .arg = book };

	sf_java_scopes_expect(&book->jvm->hotspot, &book->memory, &ahead, places->wanted, 2);
	for (unsigned i = 0; i < N_METHODS; i++)
		ret[i] = (struct sf_java_expected){ .method = places->methods[i] };
	sf_java_methods_expect(&book->jvm->hotspot, &book->memory, &ahead, ret, N_METHODS);
}

static struct book *make_book(unsigned version)
{
	struct book *book = calloc(1, sizeof(*book));
	char note[SF_HOTSPOT_NOTE];

	assert_non_null(book);
	book->jvm = calloc(1, sizeof(*book->jvm));
	assert_non_null(book->jvm);
	book->jvm->version = version;
	assert_true(fake_jvm_make(book->jvm, note, NULL));
	book->memory = (struct sf_reader){ .read = read_book, .arg = book };
	return book;
}

static void destroy_book(struct book *book)
{
	free(book->jvm);
	free(book);
}

static void describe(struct book *book, const struct places *places)
{
	const struct sf_hotspot *hotspot = &book->jvm->hotspot;
	struct sf_java_scopes scopes;
	struct sf_java_method read;
	struct sf_blob blob;

	assert_true(sf_java_compiled(hotspot, &book->memory, &places->frames[0], &blob));
	sf_java_scopes_find(hotspot, &book->memory, &blob, places->frames[0].pc, false, &scopes);
	assert_int_equal(scopes.n, 2);
	assert_int_equal(scopes.items[0].method, places->methods[1]);
	assert_int_equal(scopes.items[1].method, places->methods[0]);
	for (unsigned i = 0; i < N_METHODS; i++) {
		assert_true(sf_java_method_read(hotspot, &book->memory, places->methods[i], &read));
		assert_non_null(strstr(read.name, ".call(int, String)"));
		assert_non_null(strstr(read.file, "/A.java"));
		assert_int_equal(sf_java_line(hotspot, &book->memory, read.constant, 2), 102);
	}
}

static void test_every_layout(void **state)
{
	static const unsigned versions[] = { 8, 11, 17, 21, 25, 26 };

	(void)state;
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		struct book *book = make_book(versions[i]);
		struct sf_java_expected expected[N_METHODS];
		struct places places;

		make_places(book, &places);
		expect(book, &places, expected);
		assert_int_equal(book->n_missed, 0);
		assert_int_equal(book->n_requests, 8); /* two steps of code, six of methods: for however many places */
		book->strict = true;
		describe(book, &places);
		assert_int_equal(book->n_missed, 0);
		destroy_book(book);
	}
}

/* All that describes a place is wanted, names that are known, too: by them a class is known that is in the place of another one. */
static void test_places(void **state)
{
	struct book *book = make_book(25);
	const struct sf_prefetch ahead = { .want = want, .fetch = fetch, .arg = book };
	const struct sf_location *functions;
	struct places places;
	struct sf_method method;
	struct sf_jvm *jvm;
	int fd;

	(void)state;
	make_places(book, &places);
	assert_true(sf_hotspot_method(&book->jvm->hotspot, &book->jvm->memory, places.methods[2], &method));
	places.frames[1].id = sf_method_id(&method);
	fd = fake_library(book->jvm);
	jvm = sf_jvm_attach(&book->memory, fd, 0, NULL);
	assert_non_null(jvm);
	for (unsigned i = 0; i < 2; i++) {
		book->strict = false;
		book->n_missed = book->n_requests = 0;
		memset(book->wanted, 0, sizeof(book->wanted));
		memset(book->fetched, 0, sizeof(book->fetched));
		places.frames[1].bci = (int32_t)i;
		sf_jvm_expect(jvm, &ahead, places.wanted, 2);
		assert_int_equal(book->n_missed, 0);
		assert_int_equal(book->n_requests, 8);
		book->strict = true;
		assert_int_equal(sf_jvm_functions(jvm, sf_jvm_place(jvm, &places.frames[1]), &functions), 1);
		assert_string_equal(functions->function, "java.util.Interpreted.call(int, String)");
		assert_int_equal(functions->line, 100 + i);
		assert_int_equal(sf_jvm_functions(jvm, sf_jvm_place(jvm, &places.frames[0]), &functions), 2);
		assert_string_equal(functions->function, "b.Inlined.call(int, String)");
		assert_int_equal(book->n_missed, 0);
	}
	sf_jvm_destroy(jvm);
	close(fd);
	destroy_book(book);
}

/*
 * Freed things lead nowhere: code, whose place another piece has, and Methods, in memory that cannot be read or is
 * something else.
 */
static void test_gone(void **state)
{
	struct book *book = make_book(25);
	struct sf_java_expected expected[N_METHODS];
	struct places places;
	const uint64_t field = book->jvm->hotspot.fields[SF_HS_METHOD_CONST].at;

	(void)state;
	make_places(book, &places);
	places.frames[0].id++;
	places.methods[0] = 8;
	places.methods[1] = UINT64_MAX - 7;
	places.methods[2] = FAKE_BASE + FAKE_SIZE - 256;
	fake_put(book->jvm, places.methods[2] + field, 0x100001, 8); /* no ConstMethod can be there */
	expect(book, &places, expected);
	assert_int_equal(expected[0].constant, 0);
	assert_int_equal(expected[1].constant, 0);
	assert_int_equal(expected[2].constant, 0);
	assert_int_equal(book->n_wanted, 1); /* of the third what would say where the rest is */
	destroy_book(book);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_layout),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
