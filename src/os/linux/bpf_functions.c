/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the kernel's BPF programs, and gets the places and sizes of their functions (bpf(2)). */
#include "os/bpf_functions.h"

#include <linux/bpf.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/search.h"

#define MAX_PROGRAMS 65536 /* each is a few calls */
#define MAX_FUNCTIONS 1024 /* of one program: BPF_MAX_SUBPROGS is 256 */

static int call(int command, union bpf_attr *attributes)
{
	return (int)syscall(SYS_bpf, command, attributes, sizeof(*attributes));
}

static bool get_info(int fd, struct bpf_prog_info *info)
{
	union bpf_attr attributes = { .info = { .bpf_fd = (uint32_t)fd, .info_len = sizeof(*info), .info = (uintptr_t)info } };

	return call(BPF_OBJ_GET_INFO_BY_FD, &attributes) == 0;
}

/* False: there is no memory. */
static bool add_program(struct sf_bpf_functions *functions, int fd)
{
	uint64_t starts[MAX_FUNCTIONS] = { 0 };
	uint32_t sizes[MAX_FUNCTIONS] = { 0 };
	struct bpf_prog_info info = {
		.nr_jited_ksyms = MAX_FUNCTIONS, .jited_ksyms = (uintptr_t)starts,
		.nr_jited_func_lens = MAX_FUNCTIONS, .jited_func_lens = (uintptr_t)sizes,
	};

	if (!get_info(fd, &info))
		return true;
	for (uint32_t i = 0; i < info.nr_jited_ksyms && i < info.nr_jited_func_lens && i < MAX_FUNCTIONS; i++) {
		if (starts[i] && sizes[i] && !sf_vec_push(&functions->items, (struct sf_bpf_function){ starts[i], sizes[i] }))
			return false;
	}
	return true;
}

static int by_start(const void *left, const void *right)
{
	const struct sf_bpf_function *a = left, *b = right;

	return sf_order(a->start, b->start);
}

void sf_bpf_functions_load(struct sf_bpf_functions *functions)
{
	uint32_t id = 0;

	for (unsigned i = 0; i < MAX_PROGRAMS; i++) {
		union bpf_attr next = { .start_id = id }, wanted = { 0 };
		SF_CLEANUP(close) int fd = -1;

		if (call(BPF_PROG_GET_NEXT_ID, &next) != 0)
			break;
		wanted.prog_id = id = next.next_id;
		fd = call(BPF_PROG_GET_FD_BY_ID, &wanted);
		if (fd >= 0 && !add_program(functions, fd))
			break;
	}
	if (functions->items.n)
		qsort(functions->items.items, functions->items.n, sizeof(*functions->items.items), by_start);
}

void sf_bpf_functions_deinit(struct sf_bpf_functions *functions)
{
	sf_vec_deinit(&functions->items);
}

uint64_t sf_bpf_functions_end(const struct sf_bpf_functions *functions, uint64_t start)
{
	const struct sf_bpf_function *items = functions->items.items;
	const size_t n = sf_count_before(functions->items.n, i, items[i].start < start);

	return n < functions->items.n && items[n].start == start ? start + items[n].size : 0;
}
