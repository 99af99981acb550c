/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the BPF program, and has it say what the kernel has saved of threads.
 *
 * The program comes as bpftool's light skeleton: a list of system calls that the kernel executes itself. That takes some
 * milliseconds and no library, where libbpf takes a tenth of a second to read the kernel's types
 * (docs/decisions/light-skeleton.md).
 */
#include "capture/bpf/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/output.h"
#include "base/vec.h"
#include "capture/bpf/row.h"
#include "os/rights.h"

#ifdef SF_HAS_BPF
#include "base/search.h"
#include "capture/bpf/threads.lskel.h"
#endif

#define KERNEL "/sys/kernel" /* is not there where /sys is not mounted: then the kernel may describe its types all the same */
#define BTF KERNEL "/btf/vmlinux"
#define ROWS_AT_ONCE 256

/* --- the program --- */

#ifdef SF_HAS_BPF

/* The message says which condition is missing, the most certain one first. */
static void explain(int error, struct sf_error *err)
{
	const unsigned missing = sf_rights_missing(SF_RIGHT_BIT(BPF) | SF_RIGHT_BIT(PERFMON));
	char text[128];

	sf_fail(err, SF_E_DENIED, "the BPF program cannot be loaded: %s", sf_os_error(error));
	if (!sf_kernel_is(5, 18))
		sf_fail_hint(err, "This kernel is too old: it needs Linux 5.18.");
	if (access(KERNEL, F_OK) == 0 && access(BTF, R_OK) != 0)
		sf_fail_hint(err, "This kernel does not describe its types (" BTF "): it needs CONFIG_DEBUG_INFO_BTF.");
	if (sf_kernel_is_locked())
		sf_fail_hint(err, "The kernel is locked down (confidentiality): nothing gives it until it is started without.");
	else if (missing)
		sf_fail_hint(err, "To load it, %s.", sf_rights_to_have(missing, text, sizeof(text)));
	else if (error == EPERM || error == EACCES)
		sf_fail_hint(err, "stillframe has the rights: a system-call filter (seccomp; a container's, perhaps) or a security module "
			     "refuses it.");
}

/* The skeleton goes: the program stays as long as its descriptor. */
static int load(struct sf_error *err)
{
	struct threads_bpf *skeleton = threads_bpf__open();
	int error = skeleton ? threads_bpf__load(skeleton) : -ENOMEM, fd;

	if (error) {
		threads_bpf__destroy(skeleton);
		explain(-error, err);
		return -1;
	}
	fd = fcntl(skeleton->progs.look.prog_fd, F_DUPFD_CLOEXEC, 0);
	threads_bpf__destroy(skeleton);
	if (fd < 0)
		sf_fail_os(err, "cannot keep the BPF program");
	return fd;
}

int sf_bpf_load(struct sf_error *err)
{
	static int kept = -1;
	int fd;

	if (kept < 0)
		kept = load(err);
	if (kept < 0)
		return -1;
	fd = fcntl(kept, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		sf_fail_os(err, "cannot keep the BPF program");
	return fd;
}

static int link_walk(int program, const union bpf_iter_link_info *info, size_t size)
{
	union bpf_attr attr = { .link_create = { .prog_fd = (uint32_t)program, .attach_type = BPF_TRACE_ITER,
						 .iter_info = (uint64_t)(uintptr_t)info, .iter_info_len = (uint32_t)size } };

	return skel_sys_bpf(BPF_LINK_CREATE, &attr, sizeof(attr.link_create));
}

/* A walk over the threads of `pid`, or over one; before Linux 6.1 over all of the system. Its descriptor. */
static int begin(int program, int32_t pid, int32_t tid)
{
	const union bpf_iter_link_info info = { .task = { .tid = pid ? 0 : (uint32_t)tid, .pid = (uint32_t)pid } };
	union bpf_attr attr = { 0 };
	int link = link_walk(program, &info, sizeof(info)), fd;

	if (link < 0 && errno == E2BIG)
		link = link_walk(program, NULL, 0);
	if (link < 0)
		return -1;
	attr.iter_create.link_fd = (uint32_t)link;
	fd = skel_sys_bpf(BPF_ITER_CREATE, &attr, sizeof(attr.iter_create));
	close(link);
	return fd;
}

#else

int sf_bpf_load(struct sf_error *err)
{
	sf_fail(err, SF_E_UNSUPPORTED, "this stillframe was built without its BPF program");
	sf_fail_hint(err, "The build needs clang, bpftool and libbpf-dev, and x86-64.");
	return -1;
}

static int begin(int program, int32_t pid, int32_t tid)
{
	(void)program;
	(void)pid;
	(void)tid;
	return -1;
}

#endif

/* --- rows --- */

struct rows {
	SF_VEC(struct sf_bpf_row) all;   /* by tid */
};

/* The kernel gives whole rows, and stops after a million of them (EAGAIN). */
static bool read_all(int fd, struct rows *ret)
{
	for (;;) {
		const size_t room = ROWS_AT_ONCE * sizeof(*ret->all.items);
		ssize_t n;

		if (!sf_vec_reserve(&ret->all, ROWS_AT_ONCE))
			return false;
		n = read(fd, ret->all.items + ret->all.n, room);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n <= 0 || (size_t)n % sizeof(*ret->all.items))
			return n == 0;
		ret->all.n += (size_t)n / sizeof(*ret->all.items);
	}
}

static int by_tid(const void *a, const void *b)
{
	const struct sf_bpf_row *left = a, *right = b;

	return sf_order(left->tid, right->tid);
}

/* Asks for all threads of a process, or for one thread (pid 0). False: no memory, or the kernel refuses: there are no rows. */
static bool read_rows(int program, int32_t pid, int32_t tid, struct rows *ret)
{
	const int fd = begin(program, pid, tid);
	bool fine;

	ret->all.n = 0;
	if (fd < 0)
		return false;
	fine = read_all(fd, ret);
	close(fd);
	if (!fine)
		ret->all.n = 0;
	if (ret->all.n > 1)
		qsort(ret->all.items, ret->all.n, sizeof(*ret->all.items), by_tid);
	return fine;
}

/* NULL: there is none. */
static const struct sf_bpf_row *find_row(const struct rows *rows, int32_t tid)
{
	const struct sf_bpf_row key = { .tid = tid };

	return rows->all.n ? bsearch(&key, rows->all.items, rows->all.n, sizeof(key), by_tid) : NULL;
}

/* --- the source --- */

struct reading {
	struct sf_saved_source source;
	int program;
	int32_t pid;               /* whose threads `rows` are; 0: none yet */
	struct rows rows, one;
};

/* The states of struct task_struct (include/linux/sched.h). A thread that is being woken is in no run queue yet. */
#define TASK_STOPPED_OR_TRACED 0x0cu
#define TASK_WAKING 0x0200u

static uint8_t state_of(const struct sf_bpf_row *row)
{
	if (row->queued || row->state == 0 || row->state & TASK_WAKING)
		return SF_STATE_RUNNABLE;
	return row->state & TASK_STOPPED_OR_TRACED ? SF_STATE_STOPPED : SF_STATE_BLOCKED;
}

static const struct sf_bpf_row *row_of(struct reading *reading, int32_t pid, int32_t tid, bool anew)
{
	if (anew)
		return read_rows(reading->program, 0, tid, &reading->one) ? find_row(&reading->one, tid) : NULL;
	if (reading->pid != pid && !read_rows(reading->program, pid, 0, &reading->rows))
		return NULL;
	reading->pid = pid;
	return find_row(&reading->rows, tid);
}

static bool get(void *arg, int32_t pid, int32_t tid, bool anew, struct sf_saved *ret)
{
	const struct sf_bpf_row *row = row_of(arg, pid, tid, anew);
	uint64_t regs[SF_TASK_SAVED];

	_Static_assert(SF_BPF_REGS == SF_TASK_SAVED, "the same registers");
	if (!row || row->pid != pid || row->on_cpu)
		return false;
	for (unsigned i = 0; i < SF_TASK_SAVED; i++)
		regs[i] = row->regs[i];
	*ret = (struct sf_saved){ .pid = pid, .tid = tid, .switches = row->switches,
				   .left_before = row->left_before, .left_after = row->left_after };
	memccpy(ret->name, row->name, 0, sizeof(ret->name) - 1);
	sf_sanitize(ret->name);
	return sf_task_saved(pid, regs, state_of(row), &ret->look, &ret->regs);
}

const struct sf_saved_source *sf_bpf_source_open(struct sf_error *err)
{
	struct reading *ret = malloc(sizeof(*ret));

	if (!ret) {
		sf_fail_memory(err);
		return NULL;
	}
	*ret = (struct reading){ .source = { ret, get }, .program = sf_bpf_load(err) };
	if (ret->program >= 0)
		return &ret->source;
	free(ret);
	return NULL;
}

void sf_bpf_source_close(const struct sf_saved_source *source)
{
	struct reading *reading = source ? source->arg : NULL;

	if (!reading)
		return;
	close(reading->program);
	sf_vec_deinit(&reading->rows.all);
	sf_vec_deinit(&reading->one.all);
	free(reading);
}
