/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that makes long calls which a signal undoes: it has a BPF program verified, where it may, and allocates memory to a
 * file; and works before and after.
 *
 * in_undone NUMBER [SECONDS]: the number says nothing
 */
#include <fcntl.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "in_spins.h"

#define TURNS 100000         /* that the verifier follows; takes a tenth of a second */
#define SIZE (128 << 20)     /* takes some ten milliseconds */

static const char *result(long value)
{
	return value < 0 ? strerror(errno) : "done";
}

static const char *verify(void)
{
	static const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_6 },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_6, .imm = 1 },
		{ .code = BPF_JMP | BPF_JLT | BPF_K, .dst_reg = BPF_REG_6, .off = -2, .imm = TURNS },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr wanted = { .prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
				  .insns = (uint64_t)(uintptr_t)code,
				  .insn_cnt = sizeof(code) / sizeof(code[0]),
				  .license = (uint64_t)(uintptr_t)"Apache" };

	return result(syscall(SYS_bpf, BPF_PROG_LOAD, &wanted, sizeof(wanted)));
}

int main(int argc, char **argv)
{
	const int64_t ns = argument(argc, argv, 2, 0.3) * NS_PER_S;

	bounded(60);
	spin_before(ns);
	for (int i = 0; i < 3; i++)
		printf("verified: %s\n", verify());
	printf("allocated: %s\n", result(fallocate(memfd_create("memory", 0), 0, 0, SIZE)));
	printf("allocated, by number: %s\n", result(syscall(SYS_fallocate, memfd_create("memory", 0), 0, 0L, (long)SIZE)));
	printf("allocated, by POSIX: %d\n", posix_fallocate(memfd_create("memory", 0), 0, SIZE));
	spin_after(ns);
	return 0;
}
