/* SPDX-License-Identifier: Apache-2.0 */
/* Rights of threads, as /proc/self/task/TID/status and capget(2) show them. */
#include "agent/libc/rights.h"

#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>

#include "agent/libc/own_proc.h"
#include "frozen/raw.h"

#define STATUS_SIZE 4096

/* The lines of a status that tell of rights (proc_pid_status(5)): from the first word up to the second. */
static const struct {
	const char *from, *to;
} parts[] = {
	{ "\nUid:", "\nFDSize:" },
	{ "\nGroups:", "\nNStgid:" },
	{ "\nCapInh:", "\nCpus_allowed:" },
};

static bool find(const char *status, unsigned part, const char **ret, size_t *size_ret)
{
	const char *from = strstr(status, parts[part].from);
	const char *to = from ? strstr(from, parts[part].to) : NULL;

	*ret = from;
	*size_ret = to ? (size_t)(to - from) : 0;
	return to != NULL;
}

bool sf_rights_are_equal(int32_t one, int32_t other)
{
	char status[2][STATUS_SIZE];
	const char *text[2];
	size_t size[2];

	if (!sf_own_read(one, "status", status[0], STATUS_SIZE) ||
	    !sf_own_read(other, "status", status[1], STATUS_SIZE))
		return false;
	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (!find(status[0], i, &text[0], &size[0]) || !find(status[1], i, &text[1], &size[1]) ||
		    size[0] != size[1] || memcmp(text[0], text[1], size[0]) != 0)
			return false;
	}
	return true;
}

bool sf_rights_are_special(void)
{
	return sf_raw6(SYS_prctl, PR_GET_SECUREBITS, 0, 0, 0, 0, 0) != 0;
}

/* --- capabilities --- */

struct sets {
	struct __user_cap_data_struct of[_LINUX_CAPABILITY_U32S_3];
};

static bool get(int32_t tid, struct sets *ret)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3, .pid = tid };

	return sf_raw2(SYS_capget, &header, ret->of) == 0;
}

void sf_rights_follow(int32_t tid)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct sets own = { 0 }, theirs = { 0 }, both; /* valgrind 3.19 takes capget(2) to fill in the first half only */

	if (!get(0, &own) || !get(tid, &theirs))
		return;
	both = own;
	for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		both.of[i].permitted &= theirs.of[i].permitted;
		both.of[i].effective &= theirs.of[i].effective;
		both.of[i].inheritable &= theirs.of[i].inheritable;
	}
	if (memcmp(&both, &own, sizeof(own)) != 0)
		sf_raw2(SYS_capset, &header, both.of);
}
