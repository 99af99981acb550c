/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of tracepoints in tracefs. */
#include "os/tracepoints.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FIRST_PID_NAMESPACE 0xeffffffcu

/* Where systems mount it. The second one is that of old systems. */
static const char *const folders[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };

/* An own mount, which is nowhere in the tree of files. -1 and errno: EPERM without CAP_SYS_ADMIN. */
static int mount_own(void)
{
	const int context = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC);
	int mount = -1;

	if (context < 0)
		return -1;
	if (syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
		mount = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, 0);
	close(context);
	return mount;
}

/* The folder `events`. -1 and errno. */
static int open_events(void)
{
	int error = ENOENT, mount, events;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		char path[64];

		snprintf(path, sizeof(path), "%s/events", folders[i]);
		events = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (events >= 0)
			return events;
		if (errno != ENOENT)
			error = errno;
	}
	mount = mount_own();
	if (mount < 0) {
		errno = error;
		return -1;
	}
	events = openat(mount, "events", O_PATH | O_DIRECTORY | O_CLOEXEC);
	close(mount);
	return events;
}

/* Text of at most `size` - 1 bytes; what is longer is cut. False and errno. */
static bool read_text(int events, const char *system, const char *name, const char *file, char *ret, size_t size)
{
	char path[256];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s/%s", system, name, file);
	fd = openat(events, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, ret, size - 1);
	ret[n > 0 ? n : 0] = 0;
	close(fd);
	return n > 0;
}

/* Names become parts of a path. */
static bool is_name(const char *text)
{
	return *text && !strchr(text, '/') && text[0] != '.' && strlen(text) < 100;
}

static bool explain(const char *system, const char *name, int error, struct sf_error *err)
{
	if (error == EACCES || error == EPERM || error == ENOENT)
		return sf_fail(err, SF_E_DENIED, "the kernel's list of tracepoints (tracefs) may not be read: be root");
	return sf_fail(err, SF_E_DENIED, "of the tracepoint %s:%s nothing can be read: %s", system, name, sf_os_error(error));
}

bool sf_tracepoint_find(const char *system, const char *name, struct sf_tracepoint *ret, struct sf_error *err)
{
	const int events = open_events();
	char number[32];
	bool fine;

	if (events < 0)
		return explain(system, name, errno, err);
	if (!is_name(system) || !is_name(name)) {
		close(events);
		return sf_fail(err, SF_E_INPUT, "%s:%s is no name of a tracepoint", system, name);
	}
	fine = read_text(events, system, name, "id", number, sizeof(number)) &&
	       read_text(events, system, name, "format", ret->format, sizeof(ret->format));
	if (!fine && errno == ENOENT)
		sf_fail(err, SF_E_INPUT, "the kernel has no tracepoint %s:%s", system, name);
	else if (!fine)
		explain(system, name, errno, err);
	ret->number = fine ? (uint32_t)strtoul(number, NULL, 10) : 0;
	close(events);
	return fine;
}

/* By the number that the first namespace has in all kernels (kernel: include/uapi/linux/nsfs.h, PID_NS_INIT_INO). */
bool sf_tracepoints_name_threads(struct sf_error *err)
{
	struct stat status;

	if (stat("/proc/self/ns/pid", &status) != 0 || status.st_ino == FIRST_PID_NAMESPACE)
		return true;
	return sf_fail(err, SF_E_DENIED,
		       "the kernel's records name threads by the ids of the first pid namespace, and stillframe is in another one");
}

/* Lines such as "field:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;". */
int sf_tracepoint_field(const struct sf_tracepoint *tracepoint, const char *field, unsigned size)
{
	char wanted[80];
	const char *at;
	unsigned offset, has;

	snprintf(wanted, sizeof(wanted), " %s;\toffset:", field);
	at = strstr(tracepoint->format, wanted);
	if (!at || sscanf(at + strlen(wanted), "%u;\tsize:%u;", &offset, &has) != 2 || has != size)
		return -1;
	return (int)offset;
}
