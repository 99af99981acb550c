// SPDX-License-Identifier: Apache-2.0
// The header is C++, too: a program that samples itself and throws through sampled frames.
#include <stdexcept>

#include "stillframe.h"

static volatile unsigned long turns;

static void thrower(int depth)
{
	if (depth == 0)
		throw std::runtime_error("done");
	thrower(depth - 1);
	turns++;
}

int main(int argc, char **argv)
{
	if (argc < 2 || sf_profile_start(argv[1]) != 0 || sf_label_set("in", "c++") != 0)
		return 2;
	for (int i = 0; i < 20000; i++) {
		try {
			thrower(10);
		} catch (const std::runtime_error &) {
		}
	}
	return sf_profile_stop();
}
