/* SPDX-License-Identifier: Apache-2.0 */
/* What methods of .NET's class library wait for, by their names as they are written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/coreclr/waits.h"

static void check(const char *function, const char *purpose)
{
	const char *found = sf_clr_purpose_of(function);

	if (purpose) {
		assert_non_null(found);
		assert_string_equal(found, purpose);
	} else {
		assert_null(found);
	}
}

static void test_arguments_do_not_count(void **state)
{
	(void)state;
	check("System.Threading.Thread.Sleep(int)", "sleeps");
	check("System.Threading.Thread.Sleep()", "sleeps");
	check("System.Threading.Thread.Sleep", "sleeps");
	check("System.Collections.Concurrent.BlockingCollection<int>.TryTakeWithNoTimeValidation(ref int, int)",
	      "waits for an item of a collection");
	check("System.Collections.Concurrent.BlockingCollection<List<Dictionary<int, string>>>.TryTakeWithNoTimeValidation<T>()",
	      "waits for an item of a collection");
}

static void test_other_methods_do_not_wait(void **state)
{
	(void)state;
	check("", NULL);
	check("System.Threading.Thread.Sle", NULL);
	check("System.Threading.Thread.SleepLess(int)", NULL);
	check("System.Threading.Thread", NULL);
	check("Demo.System.Threading.Thread.Sleep(int)", NULL);
	check("System.Collections.Concurrent.BlockingCollection<int", NULL);
	check("System.Threading.Thread<>.Sleep>(", NULL);
	check("[.NET stub]", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arguments_do_not_count),
		cmocka_unit_test(test_other_methods_do_not_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
