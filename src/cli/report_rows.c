/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers that the text and the JSON of a report share: the words of clocks, shares, and the number of rows shown. */
#include "cli/report.h"

const char *sf_report_clock_word(enum sf_clock clock)
{
	switch (clock) {
	case SF_CLOCK_WALL:
		return "wall";
	case SF_CLOCK_CPU:
		return "cpu";
	case SF_CLOCK_OFFCPU:
		return "offcpu";
	}
	return "unknown";
}

double sf_report_percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

size_t sf_report_rows(const struct sf_report *report, size_t n, uint32_t otherwise)
{
	size_t wanted = report->top ? report->top : otherwise;

	return wanted && wanted < n ? wanted : n;
}
