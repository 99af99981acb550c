/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the files with symbols and debug data for an image. */
#include "symbols/sources.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "elf/debug_file.h"
#include "symbols/alt_file.h"
#include "symbols/dwarf_file.h"

static bool has_dwarf(Elf *elf)
{
	GElf_Shdr header;

	return sf_elf_find_section(elf, ".debug_info", &header) ||
	       sf_elf_find_section(elf, ".zdebug_info", &header);
}

/* The process looks up names and does nothing else (lookup.h). */
static __attribute__((noreturn)) void out_of_memory(void)
{
	_exit(EXIT_FAILURE);
}

/*
 * NULL without DWARF, and when it is not safe to read. libdw gets a mapped file: it has no descriptor
 * then from which it could find other files.
 */
static Dwarf *begin_dwarf(const struct sf_elf *file)
{
	Dwarf *dwarf = NULL;

	if (file->map && has_dwarf(file->elf) && sf_dwarf_is_sane(file->elf))
		dwarf = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
	if (dwarf && sf_dwarf_strings_end(dwarf)) {
		dwarf_new_oom_handler(dwarf, out_of_memory);
		return dwarf;
	}
	if (dwarf)
		dwarf_end(dwarf);
	return NULL;
}

/* Each Dwarf gets another one that it shares data with: libdw would open what it names. */
static void open_dwarf(struct sf_sources *sources, const struct sf_elf *file)
{
	if (!sf_alt_none(&sources->no_alt, &sources->no_alt_dwarf))
		return;
	sources->dwarf = begin_dwarf(file);
	if (!sources->dwarf)
		return;
	if (sf_alt_find(sources->dwarf, file, &sources->alt) && sf_elf_map(&sources->alt))
		sources->alt_dwarf = begin_dwarf(&sources->alt);
	if (sources->alt_dwarf)
		dwarf_setalt(sources->alt_dwarf, sources->no_alt_dwarf);
	dwarf_setalt(sources->dwarf,
		     sources->alt_dwarf ? sources->alt_dwarf : sources->no_alt_dwarf);
}

/* The image's own debug data wins; a debug file may still have the symbols that it lacks. */
static void open_debug_data(struct sf_sources *sources, const char *path, bool dwarf)
{
	if (has_dwarf(sources->image.elf)) {
		if (dwarf)
			open_dwarf(sources, &sources->image);
		return;
	}
	if (sf_debug_file_open(&sources->image, path, SF_DEBUG_ROOT, &sources->debug) &&
	    sf_elf_map(&sources->debug) && dwarf)
		open_dwarf(sources, &sources->debug);
}

bool sf_sources_open(int fd, const char *path, bool dwarf, struct sf_sources *ret,
		     struct sf_error *err)
{
	int own_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	*ret = (struct sf_sources){ 0 };
	if (own_fd < 0)
		return sf_fail_os(err, "cannot keep %s open", path ? path : "an image");
	if (!sf_elf_open(own_fd, &ret->image, err)) {
		close(own_fd);
		return false;
	}
	ret->image.owns_fd = true;
	sf_elf_map(&ret->image);
	open_debug_data(ret, path, dwarf);
	return true;
}

void sf_sources_close(struct sf_sources *sources)
{
	if (sources->dwarf)
		dwarf_end(sources->dwarf);
	if (sources->alt_dwarf)
		dwarf_end(sources->alt_dwarf);
	if (sources->no_alt_dwarf)
		dwarf_end(sources->no_alt_dwarf);
	sf_elf_close(&sources->no_alt);
	sf_elf_close(&sources->alt);
	sf_elf_close(&sources->debug);
	sf_elf_close(&sources->image);
}

const struct sf_elf *sf_sources_dwarf_file(const struct sf_sources *sources)
{
	return sources->debug.elf ? &sources->debug : &sources->image;
}
