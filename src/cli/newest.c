/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the newest recording of the current folder, by names and times alone: no file is opened. */
#include "cli/newest.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

static bool is_recording_name(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && dot > name && (strcmp(dot, ".sfr") == 0 || strcmp(dot, ".sfs") == 0);
}

static bool is_newer(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

bool sf_newest_recording(char ret[NAME_MAX + 1], struct sf_error *err)
{
	SF_CLEANUP(closedir) DIR *folder = opendir(".");
	struct timespec newest = { 0 };
	struct dirent *entry;
	struct stat status;

	if (!folder)
		return sf_fail_os(err, "cannot list the current folder");
	*ret = 0;
	while ((entry = readdir(folder))) {
		if (!is_recording_name(entry->d_name) ||
		    fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !S_ISREG(status.st_mode) || (*ret && !is_newer(&status.st_mtim, &newest)))
			continue;
		newest = status.st_mtim;
		snprintf(ret, NAME_MAX + 1, "%s", entry->d_name);
	}
	return *ret || sf_fail(err, SF_E_INPUT, "there is no recording (*.sfr, *.sfs) in this folder");
}
