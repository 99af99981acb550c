/* SPDX-License-Identifier: Apache-2.0 */
/* aarch64: register numbers of AADWARF64, section 4.1; the kernel's signal frame. */
#include <elf.h>
#include <string.h>

#include "frozen/arch.h"
#include "frozen/reader.h"

#include "frozen/frozen.h"

enum { X0, X19 = 19, X29 = 29, X30 = 30, SP = 31, N_REGS = 32 };

static bool read_instruction(const struct sf_reader *reader, uint64_t addr, uint32_t *ret)
{
	return sf_read(reader, ret, addr, sizeof(*ret));
}

/* rt_sigreturn is system call 139 (asm-generic/unistd.h): the vDSO's mov x8, #139; svc #0. */
#define MOV_X8_139 UINT32_C(0xd2801168)
#define SVC_0 UINT32_C(0xd4000001)

static bool is_trampoline(const struct sf_reader *reader, uint64_t addr)
{
	uint32_t code[2];

	return sf_read(reader, code, addr, sizeof(code)) && code[0] == MOV_X8_139 &&
	       code[1] == SVC_0;
}

static bool is_sigreturn(const struct sf_reader *reader, uint64_t pc)
{
	return is_trampoline(reader, pc) || is_trampoline(reader, pc - 4);
}

/*
 * sp points at struct rt_sigframe (arch/arm64/kernel/signal.c): 128 bytes of siginfo, then
 * struct ucontext (arch/arm64 asm/ucontext.h), whose uc_mcontext is at 176: behind uc_flags,
 * uc_link, uc_stack and 128 bytes of signal mask, aligned to 16. That is struct sigcontext
 * (asm/sigcontext.h): fault_address, then x0 to x30, sp and pc.
 */
#define SIGCONTEXT_REGS (128 + 176 + 8)

static bool sigreturn(const struct sf_reader *reader, struct sf_regs *regs)
{
	uint64_t saved[N_REGS + 1];

	if (!sf_read(reader, saved, regs->r[SP] + SIGCONTEXT_REGS, sizeof(saved)))
		return false;
	memcpy(regs->r, saved, N_REGS * sizeof(saved[0]));
	regs->known = (UINT64_C(1) << N_REGS) - 1;
	regs->pc = saved[N_REGS];
	return true;
}

static bool is_system_call(const struct sf_reader *reader, uint64_t pc)
{
	uint32_t code;

	return read_instruction(reader, pc, &code) && code == SVC_0;
}

/* Arm ARM C6.2: bl has 0b100101 on top; blr, blraa and blrab differ in the bits that are masked. */
static bool is_behind_call(const struct sf_reader *reader, uint64_t pc, uint64_t *target_ret)
{
	uint32_t code;

	if (!read_instruction(reader, pc - 4, &code))
		return false;
	*target_ret = 0;
	if (code >> 26 == 0x25) {
		/* 26 bits, counted in instructions, signed: shifted up to the sign bit and back */
		const int64_t relative = (int32_t)(code << 6) / 64 * 4;

		*target_ret = pc - 4 + (uint64_t)relative;
		return true;
	}
	return (code & 0xfefff000) == 0xd63f0000;
}

#define BEFORE_CALL 16  /* instructions */

/* mov x29, #0, or xzr */
static bool clears_fp(const struct sf_reader *reader, uint64_t pc)
{
	uint32_t code;

	for (unsigned i = 1; i <= BEFORE_CALL && read_instruction(reader, pc - 4 * i, &code); i++) {
		if (code == 0xd280001d || code == 0xaa1f03fd)
			return true;
	}
	return false;
}

static const struct edge {
	uint32_t mask, code;
} edges[] = {
	{ 0xffc07fff, 0xa9807bfd }, /* stp x29, x30, [sp, #-n]! */
	{ 0xffffffff, 0xd503233f }, /* paciasp */
	{ 0xffffffff, 0xd503237f }, /* pacibsp */
	{ 0xffffffff, 0xd503245f }, /* bti c */
	{ 0xffffffff, 0xd65f03c0 }, /* ret */
	{ 0xfffffbff, 0xd65f0bff }, /* retaa, retab */
};

static bool is_frame_edge(const struct sf_reader *reader, uint64_t pc, uint8_t *pushed_ret)
{
	uint32_t code;

	if (!read_instruction(reader, pc, &code))
		return false;
	for (unsigned i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
		if ((code & edges[i].mask) == edges[i].code) {
			*pushed_ret = 0;
			return true;
		}
	}
	return false;
}

/*
 * Entries only jump. The first one, 32 bytes, starts with stp x16, x30, [sp, #-16]!, perhaps behind
 * bti c; the return address stays in x30, too, but the dynamic linker's code does not.
 */
static unsigned plt_steps(const uint8_t *section, size_t size, size_t at,
			  struct sf_plt_step ret[SF_PLT_STEPS])
{
	const uint32_t bti = 0xd503245f, stp = 0xa9bf7bf0;
	uint32_t code[2] = { 0, 0 };
	bool behind_bti;

	if (at > 0)
		return 0;
	memcpy(code, section, size < sizeof(code) ? size : sizeof(code));
	behind_bti = code[0] == bti;
	ret[0] = (struct sf_plt_step){ 0, 0 };
	ret[1] = (struct sf_plt_step){ behind_bti ? 8 : 4, 16 };
	ret[2] = (struct sf_plt_step){ 32, 0 };
	return code[behind_bti] == stp && size >= 32 ? 3 : 1;
}

const struct sf_arch sf_arch_aarch64 = {
	.name = "aarch64",
	.elf_machine = EM_AARCH64,
	.n_regs = N_REGS,
	.sp = SP,
	.fp = X29,
	.lr = X30,
	.result = X0,
	.return_column = X30,
	.red_zone = 0,
	.n_saved = 11,
	.syscall_args = { X0, 1, 2, 3, 4, 5 },
	.signs_returns = true,
	.vdso_clock = "__kernel_clock_gettime",
	.saved = { X19, 20, 21, 22, 23, 24, 25, 26, 27, 28, X29 },
	/*
	 * Pointer authentication and tags use the bits above the address. User addresses have 48
	 * bits, or 52 where a program asked for them with an mmap hint; code is not put there.
	 */
	.code_mask = (UINT64_C(1) << 48) - 1,
	.is_sigreturn = is_sigreturn,
	.sigreturn = sigreturn,
	.sigframe_size = SIGCONTEXT_REGS + (N_REGS + 1) * 8,
	.syscall_size = 4,
	.is_system_call = is_system_call,
	.plt_steps = plt_steps,
	.is_behind_call = is_behind_call,
	.is_frame_edge = is_frame_edge,
	.clears_fp = clears_fp,
};
