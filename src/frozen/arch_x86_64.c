/* SPDX-License-Identifier: Apache-2.0 */
/* x86-64: register numbers of the System V psABI, figure 3.36; the kernel's signal frame. */
#include <elf.h>
#include <string.h>

#include "frozen/arch.h"
#include "frozen/reader.h"

#include "frozen/frozen.h"

enum { RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, R8, R9, R10, R11, R12, R13, R14, R15, RIP, N_REGS };

/* Code that is recognised by its bytes; `second` is where the second instruction starts. */
struct pattern {
	uint8_t size, second;
	uint8_t bytes[9];
};

/* rt_sigreturn is system call 15 (asm/unistd_64.h). glibc and musl: mov $15, %rax; syscall. */
static const struct pattern trampolines[] = {
	{ 9, 7, { 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05 } },
	{ 7, 5, { 0xb8, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05 } },
};

static bool matches(const struct sf_reader *reader, uint64_t addr, const struct pattern *pattern)
{
	uint8_t bytes[sizeof(pattern->bytes)];
	uint8_t difference = 0;

	if (!sf_read(reader, bytes, addr, pattern->size))
		return false;
	for (unsigned i = 0; i < pattern->size; i++)
		difference |= bytes[i] ^ pattern->bytes[i];
	return difference == 0;
}

static bool is_sigreturn(const struct sf_reader *reader, uint64_t pc)
{
	for (unsigned i = 0; i < sizeof(trampolines) / sizeof(trampolines[0]); i++) {
		const struct pattern *pattern = &trampolines[i];

		if (matches(reader, pc, pattern) || matches(reader, pc - pattern->second, pattern))
			return true;
	}
	return false;
}

/*
 * The handler's return has popped the first word of struct rt_sigframe (arch/x86/include/asm/
 * sigframe.h), so sp points at its struct ucontext. Its uc_mcontext is behind uc_flags, uc_link and
 * uc_stack (asm-generic/ucontext.h), at 40, and starts with these (asm/sigcontext.h).
 */
#define UC_MCONTEXT 40

static const uint8_t sigcontext_order[] = {
	R8, R9, R10, R11, R12, R13, R14, R15, RDI, RSI, RBP, RBX, RDX, RAX, RCX, RSP, RIP,
};

static bool sigreturn(const struct sf_reader *reader, struct sf_regs *regs)
{
	uint64_t saved[sizeof(sigcontext_order)];

	if (!sf_read(reader, saved, regs->r[RSP] + UC_MCONTEXT, sizeof(saved)))
		return false;
	for (unsigned i = 0; i < sizeof(sigcontext_order); i++)
		sf_reg_set(regs, sigcontext_order[i], saved[i]);
	regs->pc = regs->r[RIP];
	return true;
}

/* The bytes of an indirect call (ff /2) with this ModRM byte, or 0 if it is another instruction. */
static unsigned indirect_call_size(uint8_t modrm)
{
	static const uint8_t displacement[] = { 0, 1, 4, 0 };
	const unsigned mode = modrm >> 6, base = modrm & 7;
	const bool has_sib = mode != 3 && base == 4;
	const bool is_rip_relative = mode == 0 && base == 5;

	if ((modrm >> 3 & 7) != 2)
		return 0;
	return 2 + has_sib + (is_rip_relative ? 4 : displacement[mode]);
}

static bool is_behind_call(const struct sf_reader *reader, uint64_t pc, uint64_t *target_ret)
{
	uint8_t code[7];
	int32_t relative;

	if (!sf_read(reader, code, pc - sizeof(code), sizeof(code)))
		return false;
	*target_ret = 0;
	if (code[2] == 0xe8) { /* call rel32 */
		memcpy(&relative, code + 3, sizeof(relative));
		*target_ret = pc + (uint64_t)(int64_t)relative;
		return true;
	}
	for (unsigned size = 2; size <= sizeof(code); size++) {
		const uint8_t *call = code + sizeof(code) - size;

		if (call[0] == 0xff && indirect_call_size(call[1]) == size)
			return true;
	}
	return false;
}

/* Here `second` is the number of bytes that were pushed above the return address. */
static const struct pattern edges[] = {
	{ 4, 0, { 0xf3, 0x0f, 0x1e, 0xfa } }, /* endbr64 */
	{ 1, 0, { 0x55 } },                   /* push %rbp */
	{ 3, 8, { 0x48, 0x89, 0xe5 } },       /* mov %rsp, %rbp, as gas and gcc encode it */
	{ 3, 8, { 0x48, 0x8b, 0xec } },       /* the same, the other encoding */
	{ 1, 0, { 0xc3 } },                   /* ret */
	{ 2, 0, { 0xf3, 0xc3 } },             /* rep ret */
	{ 1, 0, { 0xc2 } },                   /* ret $n */
};

static bool is_frame_edge(const struct sf_reader *reader, uint64_t pc, uint8_t *pushed_ret)
{
	for (unsigned i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
		if (matches(reader, pc, &edges[i])) {
			*pushed_ret = edges[i].second;
			return true;
		}
	}
	return false;
}

const struct sf_arch sf_arch_x86_64 = {
	.name = "x86_64",
	.elf_machine = EM_X86_64,
	.n_regs = N_REGS,
	.sp = RSP,
	.fp = RBP,
	.lr = SF_NO_REG,
	.return_column = RIP,
	.red_zone = 128,
	.n_saved = 6,
	.saved = { RBX, RBP, R12, R13, R14, R15 },
	.code_mask = UINT64_MAX,
	.is_sigreturn = is_sigreturn,
	.sigreturn = sigreturn,
	.sigframe_size = UC_MCONTEXT + sizeof(sigcontext_order) * 8,
	.is_behind_call = is_behind_call,
	.is_frame_edge = is_frame_edge,
};
