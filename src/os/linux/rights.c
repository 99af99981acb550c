/* SPDX-License-Identifier: Apache-2.0 */
/* The rights of this process, by capget(2), /proc/self/uid_map and the auxiliary vector. */
#include "os/rights.h"

#include <ctype.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "os/linux/proc.h"

#ifndef CAP_PERFMON /* since Linux 5.8 */
#define CAP_PERFMON 38
#define CAP_BPF 39
#endif
#define EVERYBODY 4294967295u    /* users in the first namespace */

/* The capability, and the one that gave the right before it had one of its own. */
static const struct {
	int number, older;
} rights[SF_N_RIGHTS] = {
	[SF_RIGHT_PERFMON] = { .number = CAP_PERFMON, .older = CAP_SYS_ADMIN },
	[SF_RIGHT_BPF] = { .number = CAP_BPF, .older = CAP_SYS_ADMIN },
	[SF_RIGHT_TRACE] = { .number = CAP_SYS_PTRACE, .older = CAP_SYS_PTRACE },
	[SF_RIGHT_SYMBOLS] = { .number = CAP_SYSLOG, .older = CAP_SYSLOG },
	[SF_RIGHT_PRIORITY] = { .number = CAP_SYS_NICE, .older = CAP_SYS_NICE },
};

static const char *const texts[SF_N_RIGHTS] = {
#define X(name, text) text,
	SF_RIGHTS(X)
#undef X
};

static bool get(struct __user_cap_data_struct ret[2])
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return syscall(SYS_capget, &header, ret) == 0;
}

bool sf_rights_are_inner(void)
{
	unsigned first = 0, outside = 0, n = EVERYBODY;

	sf_proc_scan("/proc/self/uid_map", "%u %u %u", &first, &outside, &n);
	return n != EVERYBODY;
}

unsigned sf_rights_missing(unsigned wanted)
{
	struct __user_cap_data_struct own[2];
	const bool inner = sf_rights_are_inner();
	unsigned missing = 0;

	if (!get(own))
		return wanted;
	for (unsigned i = 0; i < SF_N_RIGHTS; i++) {
		const uint64_t all = own[0].effective | (uint64_t)own[1].effective << 32;
		const bool has = (all >> rights[i].number | all >> rights[i].older) & 1;

		if (!has || (inner && i != SF_RIGHT_TRACE))
			missing |= 1u << i;
	}
	return missing & wanted;
}

const char *sf_rights_text(unsigned wanted, char *ret, size_t size)
{
	size_t used = 0;

	*ret = 0;
	for (unsigned i = 0; i < SF_N_RIGHTS && used < size; i++) {
		const unsigned later = wanted >> (i + 1);

		if (wanted >> i & 1)
			used += (size_t)snprintf(ret + used, size - used, "%s%s", texts[i],
						 !later ? "" : (later & (later - 1)) ? ", " : " and ");
	}
	return ret;
}

const char *sf_rights_to_have(unsigned wanted, char *ret, size_t size)
{
	const bool inner = sf_rights_are_inner();
	char text[96];

	snprintf(ret, size, "%s %s%s", inner ? "run stillframe outside its user namespace with" : "have",
		 sf_rights_text(wanted, text, sizeof(text)), inner ? "" : " (stillframe doctor --setcap)");
	return ret;
}

const char *sf_rights_setcap(unsigned wanted, char *ret, size_t size)
{
	size_t used = 0;

	*ret = 0;
	for (unsigned i = 0; i < SF_N_RIGHTS && used < size; i++) {
		if (wanted >> i & 1)
			used += (size_t)snprintf(ret + used, size - used, "%s%s", used ? "," : "", texts[i]);
	}
	for (char *at = ret; *at; at++)
		*at = (char)tolower((unsigned char)*at);
	return ret;
}

bool sf_rights_hint_at_trace(struct sf_error *err)
{
	const bool is_root = geteuid() == 0;

	if (!sf_rights_missing(SF_RIGHT_BIT(TRACE)))
		return sf_fail_hint(err, "stillframe %shas CAP_SYS_PTRACE. The process may be of another user namespace, or a security module "
				    "refuses.", is_root ? "runs as root and " : "");
	if (is_root)
		return sf_fail_hint(err, "stillframe runs as root, but without CAP_SYS_PTRACE (a container?): add that capability.");
	return sf_fail_hint(err, "The process belongs to another user or may not be traced: run as root (sudo), or have CAP_SYS_PTRACE "
			    "(stillframe doctor --setcap).");
}

bool sf_rights_are_from_file(void)
{
	return getauxval(AT_SECURE) && geteuid() == getuid() && geteuid() != 0;
}

/* Inheritable capabilities stay: the user can pass those on without stillframe. */
void sf_rights_drop(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct own[2];

	if (!sf_rights_are_from_file() || !get(own))
		return;
	for (unsigned i = 0; i < 2; i++)
		own[i].effective = own[i].permitted = 0;
	syscall(SYS_capset, &header, own);
}

/* "none integrity [confidentiality]": the brackets show the one that holds. */
bool sf_kernel_is_locked(void)
{
	char text[64] = "";

	sf_proc_scan("/sys/kernel/security/lockdown", "%63[^\n]", text);
	return strstr(text, "[confidentiality]") != NULL;
}

bool sf_kernel_is(unsigned major, unsigned minor)
{
	unsigned own_major = 0, own_minor = 0;
	struct utsname host;

	return uname(&host) == 0 && sscanf(host.release, "%u.%u", &own_major, &own_minor) == 2 &&
	       (own_major > major || (own_major == major && own_minor >= minor));
}
