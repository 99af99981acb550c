/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds flags of a Java virtual machine, and sets the one that makes its compilers describe every instruction.
 *
 * The table of flags is an array of structs that the other tables describe (HotSpot: runtime/flags/jvmFlag.hpp).
 */
#include "runtime/hotspot/flags.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/hotspot/tables.h"

#define MAX_FLAGS 16384
#define ORIGIN_MASK 15u /* JVMFlag::VALUE_ORIGIN_MASK; 0 there is JVMFlagOrigin::DEFAULT, in 8 to 26 */
#define FLAG "DebugNonSafepoints"

static bool get(const struct sf_hotspot *hotspot, const struct sf_reader *memory, enum sf_hotspot_field_name field,
		uint64_t base, uint64_t *ret)
{
	return sf_hotspot_get(hotspot, memory, field, base, ret);
}

/* The place of a flag in the table; 0: none. */
static uint64_t find_entry(const struct sf_hotspot *hotspot, const struct sf_reader *memory, const char *name)
{
	const uint32_t stride = hotspot->sizes[SF_HS_SIZE_FLAG];
	uint64_t flags, n, text;
	char found[64];

	if (!stride || !get(hotspot, memory, SF_HS_FLAGS, 0, &flags) || !get(hotspot, memory, SF_HS_N_FLAGS, 0, &n) ||
	    n > MAX_FLAGS)
		return 0;
	for (uint64_t i = 0; i < n; i++) {
		if (!get(hotspot, memory, SF_HS_FLAG_NAME, flags + i * stride, &text))
			return 0;
		if (sf_hotspot_read_string(memory, text, found, sizeof(found)) && strcmp(found, name) == 0)
			return flags + i * stride;
	}
	return 0;
}

/* False: the virtual machine has no flag of this name, or it cannot be read. */
static bool find_flag(const struct sf_hotspot *hotspot, const struct sf_reader *memory, const char *name,
		      struct sf_java_flag *ret)
{
	const uint64_t entry = find_entry(hotspot, memory, name);
	uint64_t origin;

	if (!entry || !get(hotspot, memory, SF_HS_FLAG_NAME, entry, &ret->name) ||
	    !get(hotspot, memory, SF_HS_FLAG_ADDRESS, entry, &ret->address) ||
	    !sf_read(memory, &ret->value, ret->address, 1))
		return false;
	ret->is_default = get(hotspot, memory, SF_HS_FLAG_ORIGIN, entry, &origin) && (origin & ORIGIN_MASK) == 0;
	return true;
}

int sf_java_flag(const struct sf_hotspot *hotspot, const struct sf_reader *memory, const char *name)
{
	struct sf_java_flag flag;

	return find_flag(hotspot, memory, name, &flag) ? flag.value : -1;
}

bool sf_java_flag_was_given(const struct sf_hotspot *hotspot, const struct sf_reader *memory, const char *name)
{
	struct sf_java_flag flag;

	return find_flag(hotspot, memory, name, &flag) && flag.value == 1 && !flag.is_default;
}

/* --- debug information at every instruction --- */

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

static bool find_in_process(const struct sf_reader *memory, int fd, uint64_t bias, struct sf_java_flag *ret)
{
	struct sf_hotspot *tables = calloc(1, sizeof(*tables));
	struct sf_hotspot_exports exports;
	bool found = tables && sf_hotspot_exports(fd, bias, &exports, NULL) &&
		     sf_hotspot_read_tables(memory, &exports, tables, NULL) &&
		     find_flag(tables, memory, FLAG, ret);

	free(tables);
	return found;
}

bool sf_java_debug_info_begin(struct sf_java_debug_info *info, int32_t pid, const struct sf_reader *memory, int fd,
			      uint64_t bias)
{
	struct sf_java_flag flag;

	if (!find_in_process(memory, fd, bias, &flag))
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
