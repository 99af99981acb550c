/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The digest against values that Python's hashlib.blake2b(digest_size=32) gives, for sizes around those of its
 * blocks, and given in pieces of every size.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/digest.h"

static uint8_t bytes[1000];

static void assert_digest(struct sf_digest *digest, const char *wanted)
{
	uint8_t result[SF_DIGEST_SIZE];
	char hex[2 * SF_DIGEST_SIZE + 1];

	sf_digest_end(digest, result);
	for (unsigned i = 0; i < SF_DIGEST_SIZE; i++)
		snprintf(hex + 2 * i, 3, "%02x", result[i]);
	assert_string_equal(hex, wanted);
}

static const struct {
	size_t size;
	const char *wanted;
} known[] = {
	{ 0, "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8" },
	{ 1, "03170a2e7597b7b7e3d84c05391d139a62b157e78786d8c082f29dcf4c111314" },
	{ 3, "b316f3683ac87007461037a8ff6547de35618800044bb3a4e98b3560c92c3794" },
	{ 64, "17363253d86da2d13a0f306b36da8157fa4a630e7100e0954859f44a36ae2a41" },
	{ 127, "4ff62e7c4c43fe101a078479c48836be4907d9d498dcc577ca89d694b2c11f9b" },
	{ 128, "14696d2a98d9f8a280da8b132b1045b345e1033759c6b02fcc4ee885c8ae7c37" },
	{ 129, "3934215260b1039be9d9d2b073b059bcd50120c327a22af93eb4d98cf821c14c" },
	{ 255, "a3bb8b4fa098078d32bb5a89e905e237862fd83e99141ca7d8a073bb268ba2a0" },
	{ 256, "3d0cb2693dfbac42af5a6cc960953fea8714aa39c4bcd054ef61d6b5e98ade4a" },
	{ 257, "00466ab5e91660e4fdbef955724cca27cee84370539f22d393d1f566bd177514" },
	{ 384, "df77558f4625dcb36650680360e5fff4fa13f79f02c1a89129ab339550984549" },
	{ 1000, "38981cec8fd0971914a759c4fac0538dbb29495eec4aea07f277e1f5f8562d27" },
};

static int setup(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7 + i / 256);
	return 0;
}

static void known_values(void **state)
{
	struct sf_digest digest;
	(void)state;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		sf_digest_begin(&digest);
		sf_digest_add(&digest, bytes, known[i].size);
		assert_digest(&digest, known[i].wanted);
	}
}

static void pieces_make_no_difference(void **state)
{
	struct sf_digest digest;
	(void)state;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		for (size_t piece = 1; piece < 300; piece++) {
			sf_digest_begin(&digest);
			for (size_t at = 0; at < known[i].size; at += piece)
				sf_digest_add(&digest, bytes + at,
					      known[i].size - at < piece ? known[i].size - at : piece);
			assert_digest(&digest, known[i].wanted);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_values),
		cmocka_unit_test(pieces_make_no_difference),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
