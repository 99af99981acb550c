/* SPDX-License-Identifier: Apache-2.0 */
/* The flag that makes compilers describe every instruction: found, set, and set back. */
#include "runtime/hotspot/debug_info.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/hotspot/exports.h"
#include "runtime/hotspot/tables.h"

#define FLAG "DebugNonSafepoints"

/* Whether a name is in libjvm, and a byte is in memory that only this process writes to. */
struct places {
	const struct sf_java_flag *flag;
	bool is_named, is_own;
};

static bool holds(const struct sf_mapping *mapping, uint64_t address)
{
	return address >= mapping->start && address < mapping->end;
}

static bool look_at(const struct sf_mapping *mapping, void *arg)
{
	struct places *places = arg;

	if (holds(mapping, places->flag->name) && strstr(mapping->path, "/libjvm.so"))
		places->is_named = true;
	if (holds(mapping, places->flag->address) && mapping->is_own)
		places->is_own = true;
	return true;
}

static bool is_in_place(int32_t pid, const struct sf_java_flag *flag)
{
	struct places places = { .flag = flag };

	return sf_process_maps(sf_process_live_id(pid), look_at, &places, NULL) && places.is_named && places.is_own;
}

/* In the process itself the system need not be asked, which a filter of system calls may forbid. */
static bool exchange(int32_t pid, uint64_t address, uint8_t from, uint8_t to)
{
	const int32_t id = sf_process_live_id(pid);
	uint8_t found;

	if (pid == getpid())
		return __atomic_compare_exchange_n((uint8_t *)(uintptr_t)address, &from, to, false, __ATOMIC_SEQ_CST,
						   __ATOMIC_SEQ_CST);
	return sf_process_read(id, &found, address, 1) == 1 && found == from &&
	       sf_process_write(id, address, &to, 1) == 1;
}

static bool find_flag(const struct sf_reader *memory, int fd, uint64_t bias, struct sf_java_flag *ret)
{
	struct sf_hotspot *tables = calloc(1, sizeof(*tables));
	struct sf_hotspot_exports exports;
	bool found = tables && sf_hotspot_exports(fd, bias, &exports, NULL) &&
		     sf_hotspot_read_tables(memory, &exports, tables, NULL) &&
		     sf_java_flag_find(tables, memory, FLAG, ret);

	free(tables);
	return found;
}

bool sf_java_debug_info_begin(struct sf_java_debug_info *info, int32_t pid, const struct sf_reader *memory, int fd,
			      uint64_t bias)
{
	struct sf_java_flag flag;

	if (!find_flag(memory, fd, bias, &flag))
		return false;
	if (flag.value || !flag.is_default || !is_in_place(pid, &flag) || !sf_process_program(pid, &info->program) ||
	    !exchange(pid, flag.address, 0, 1))
		return true;
	info->pid = pid;
	info->flag = flag;
	return true;
}

void sf_java_debug_info_end(struct sf_java_debug_info *info)
{
	struct sf_program now;

	if (info->flag.address && sf_process_program(info->pid, &now) && sf_program_is(&info->program, &now) &&
	    is_in_place(info->pid, &info->flag))
		exchange(info->pid, info->flag.address, 1, 0);
	*info = (struct sf_java_debug_info){ 0 };
}
