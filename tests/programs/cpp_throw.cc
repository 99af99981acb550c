// SPDX-License-Identifier: Apache-2.0
//
// C++ exceptions, thrown five calls deep and caught at the top, all the time: the walk passes through the
// C++ runtime and the compiler's unwinder, which move the stack while they work. Names are mangled,
// with templates and lambdas.
//
// cpp_throw [spin|pause]: `pause` stays in a destructor that runs while an exception is on its way.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <unistd.h>

namespace shop {

static bool asleep;
static int caught;

struct guard {
	explicit guard(int n) : number(n) {}
	__attribute__((noinline)) ~guard()
	{
		if (asleep && caught > 10 && number == 2) {
			std::puts("ready");
			std::fflush(stdout);
			for (;;)
				pause();
		}
		asm volatile("" : : "r"(number) : "memory");
	}
	int number;
};

template <typename T> __attribute__((noinline)) T buy(T n)
{
	guard here(static_cast<int>(n));
	if (n <= 0)
		throw std::runtime_error("sold out: " + std::to_string(n));
	auto again = [](T m) __attribute__((noinline)) { return buy<T>(m - 1); };
	return again(n) + 1;
}

} // namespace shop

int main(int argc, char **argv)
{
	alarm(120);
	shop::asleep = argc < 2 || std::strcmp(argv[1], "spin") != 0;
	if (!shop::asleep) {
		std::puts("ready");
		std::fflush(stdout);
	}
	for (;;) {
		try {
			shop::buy(5L);
		} catch (const std::runtime_error &error) {
			shop::caught += error.what()[0] != 0;
		}
	}
}
