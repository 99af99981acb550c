/* SPDX-License-Identifier: Apache-2.0 */
/* The clock and the CPU's number without a system call: what the kernel says, and the kernel where that fails. */
#include <setjmp.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>

#include "agent/libc/vdso.h"
#include "frozen/raw.h"

static uint64_t kernel_now_ns(void)
{
	struct timespec now;

	assert_int_equal(sf_raw2(SYS_clock_gettime, CLOCK_MONOTONIC, &now), 0);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void assert_both_are_right(void)
{
	cpu_set_t allowed, one;
	uint32_t cpu;

	for (unsigned i = 0; i < 1000; i++) {
		const uint64_t before_ns = kernel_now_ns(), now_ns = sf_raw_now_ns();

		assert_in_range(now_ns, before_ns, kernel_now_ns());
	}
	assert_int_equal(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
	for (unsigned i = 0; i < CPU_SETSIZE; i++) {
		if (!CPU_ISSET(i, &allowed))
			continue;
		CPU_ZERO(&one);
		CPU_SET(i, &one);
		assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
		assert_true(sf_raw_cpu(&cpu));
		assert_int_equal(cpu, i);
	}
	assert_int_equal(sched_setaffinity(0, sizeof(allowed), &allowed), 0);
}

static void test_the_kernels(void **state)
{
	(void)state;
	sf_agent_find_vdso();
	assert_non_null(sf_raw_vdso.clock);
#if defined(__x86_64__)
	assert_non_null(sf_raw_vdso.cpu);
#endif
	assert_both_are_right();
}

static unsigned n_asked;

static int fake_clock(clockid_t clock, struct timespec *ret)
{
	assert_int_equal(clock, CLOCK_MONOTONIC);
	*ret = (struct timespec){ 3, 5 };
	return n_asked++ ? -1 : 0;
}

static long fake_cpu(unsigned *cpu_ret, unsigned *node_ret, void *unused)
{
	(void)node_ret, (void)unused;
	*cpu_ret = 12345;
	return n_asked++ ? -1 : 0;
}

/* It is asked first, and where it fails or is not there the kernel. */
static void test_without(void **state)
{
	uint32_t cpu;

	(void)state;
	sf_raw_vdso.clock = fake_clock;
	sf_raw_vdso.cpu = NULL;
	n_asked = 0;
	assert_int_equal(sf_raw_now_ns(), UINT64_C(3000000005));
	assert_both_are_right();
	sf_raw_vdso.clock = NULL;
	sf_raw_vdso.cpu = fake_cpu;
	n_asked = 0;
	assert_true(sf_raw_cpu(&cpu));
	assert_int_equal(cpu, 12345);
	assert_both_are_right();
	assert_true(n_asked > 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_kernels),
		cmocka_unit_test(test_without),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
