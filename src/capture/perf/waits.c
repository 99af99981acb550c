/* SPDX-License-Identifier: Apache-2.0 */
/* Tells from the kernel's frames what a thread waits for. */
#include "capture/perf/waits.h"

#include <stdlib.h>
#include <string.h>

#include "os/syscalls.h"

enum kind { NOTHING, CALL, FAULT, BLOCK_IO, KERNEL_LOCK, STOP, STOP_OF_ITS_OWN, END };

#define N_SCHEDULE 2 /* frames that a function which sleeps has called at most: schedule(), and __schedule() in it */

/*
 * Names, or with `begins` the beginnings of names. Of a system call the rest of the name is the call's. The first line
 * that fits counts. To add one: add a line, and a chain to tests/unit/test_perf_waits.c.
 */
static const struct {
	const char *name;
	enum kind kind;
	bool begins;
} names[] = {
	{ "__x64_sys_", CALL, true },
	{ "__arm64_sys_", CALL, true },
	{ "__se_sys_", CALL, true },
	{ "__do_sys_", CALL, true },
	{ "ksys_", CALL, true },
	{ "do_sys_", CALL, true },
	{ "__sys_", CALL, true },
	{ "do_futex", CALL, false },
	{ "do_epoll_wait", CALL, false },
	{ "do_fsync", CALL, false },
	{ "exc_page_fault", FAULT, false },
	{ "asm_exc_page_fault", FAULT, false },
	{ "do_page_fault", FAULT, false },
	{ "el0_da", FAULT, false },
	{ "el0_ia", FAULT, false },
	{ "io_schedule", BLOCK_IO, false },
	{ "io_schedule_timeout", BLOCK_IO, false },
	{ "blk_mq_get_tag", BLOCK_IO, false },
	{ "rwsem_down_", KERNEL_LOCK, true },
	{ "percpu_rwsem_wait", KERNEL_LOCK, false },
	{ "__mutex_lock", KERNEL_LOCK, true },
	{ "__rt_mutex_slowlock", KERNEL_LOCK, true },
	{ "__down_", KERNEL_LOCK, true },
	{ "do_signal_stop", STOP, false },
	{ "ptrace_stop", STOP, true },
	{ "do_freezer_trap", STOP, false },
	{ "__refrigerator", STOP, false },
	{ "get_signal", STOP_OF_ITS_OWN, false }, /* where the compiler made the freezer a part of it */
	{ "do_task_dead", END, false },
};

/* "__x64_sys_futex": the number of futex. "do_futex": of what is behind "do_". */
static int32_t call_of(const char *name, size_t i)
{
	return sf_syscall_number(name + (names[i].begins ? strlen(names[i].name) : strlen("do_")));
}

static enum kind kind_of(const char *name, int32_t *call_ret)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (name[0] != names[i].name[0] || name[1] != names[i].name[1]) /* without a call: the kernel has 100,000 functions */
			continue;
		if (names[i].begins ? strncmp(name, names[i].name, strlen(names[i].name)) != 0 : strcmp(name, names[i].name) != 0)
			continue;
		*call_ret = names[i].kind == CALL ? call_of(name, i) : SF_SYSCALL_NONE;
		return names[i].kind == CALL && *call_ret < 0 ? NOTHING : names[i].kind;
	}
	return NOTHING;
}

bool sf_perf_waits_take(struct sf_perf_waits *waits, const struct sf_kernel_symbols *symbols)
{
	for (size_t i = 0; i < symbols->symbols.n; i++) {
		const struct sf_kernel_symbol *symbol = &symbols->symbols.items[i];
		struct sf_perf_wait_function function = { .start = symbol->address, .end = symbol->address };

		function.kind = (uint8_t)kind_of(symbols->names.items + symbol->name, &function.syscall);
		if (function.kind == NOTHING)
			continue;
		/* Several names of one address: the next address is the end. */
		for (size_t j = i; j < symbols->symbols.n && function.end == function.start; j++)
			function.end = symbols->symbols.items[j].address;
		if (!sf_vec_push(&waits->functions, function))
			return false;
	}
	return true;
}

void sf_perf_waits_deinit(struct sf_perf_waits *waits)
{
	sf_vec_deinit(&waits->functions);
}

static int compare(const void *key, const void *element)
{
	const struct sf_perf_wait_function *function = element;
	const uint64_t address = *(const uint64_t *)key;

	return address < function->start ? -1 : address >= function->end;
}

static const struct sf_perf_wait_function *function_at(const struct sf_perf_waits *waits, uint64_t address)
{
	if (!waits->functions.n)
		return NULL;
	return bsearch(&address, waits->functions.items, waits->functions.n, sizeof(waits->functions.items[0]), compare);
}

/* Return addresses are behind their calls, which may be the last instruction of a function. */
void sf_perf_waits_find(const struct sf_perf_waits *waits, const uint64_t *chain, size_t n, struct sf_perf_wait *ret)
{
	*ret = (struct sf_perf_wait){ .syscall = SF_SYSCALL_UNTOLD };
	for (size_t i = n; i-- > 0;) {
		const struct sf_perf_wait_function *function = function_at(waits, chain[i] - (i > 0));

		switch (function ? function->kind : NOTHING) {
		case CALL:
			if (ret->syscall == SF_SYSCALL_UNTOLD)
				ret->syscall = function->syscall;
			break;
		case FAULT:
			if (ret->syscall == SF_SYSCALL_UNTOLD)
				ret->syscall = SF_SYSCALL_FAULT;
			break;
		case BLOCK_IO:
			ret->cause = SF_CAUSE_BLOCK_IO;
			break;
		case KERNEL_LOCK:
			ret->cause = SF_CAUSE_KERNEL_LOCK;
			break;
		case STOP:
			ret->is_stopped = true;
			break;
		case STOP_OF_ITS_OWN:
			ret->is_stopped |= i <= N_SCHEDULE;
			break;
		case END:
			ret->has_ended = true;
			break;
		default:
			break;
		}
	}
}
