/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens the files with symbols and debug data for an image, and checks their DWARF before libdw may read it.
 *
 * Debug data may refer to data that it shares with others, in a file that .gnu_debugaltlink names. libdw
 * opens this file by its name as soon as an entry refers to it, unless the Dwarf has one already. Each
 * Dwarf is therefore given such a file, and an empty one if there is no other.
 */
#include "symbols/sources.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elf/debug_file.h"

/*
 * All compressed sections of a file together: libdw unpacks each when it begins. The bound is
 * absolute: a sparse file has any size that its maker likes, and zlib packs zeros a thousand times.
 */
#define MAX_UNPACKED ((uint64_t)192 << 20)

#define MAX_LOADED ((uint64_t)16 << 20) /* of an image and its debug file: libc and its debug data have 6 MB */

/* The size of a section in memory when it is unpacked; 0 when it is not packed. */
static bool unpacked_size(Elf_Scn *section, const GElf_Shdr *header, uint64_t *ret)
{
	GElf_Chdr compressed;
	ssize_t old_style;

	*ret = 0;
	if (header->sh_flags & SHF_COMPRESSED) {
		if (!gelf_getchdr(section, &compressed))
			return false;
		*ret = compressed.ch_size;
		return true;
	}
	old_style = dwelf_scn_gnu_compressed_size(section);
	if (old_style > 0)
		*ret = (uint64_t)old_style;
	return true;
}

bool sf_dwarf_is_sane(Elf *elf)
{
	uint64_t total = 0;

	for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
		GElf_Shdr header;
		uint64_t size;

		if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS)
			continue;
		if (!unpacked_size(section, &header, &size) ||
		    __builtin_add_overflow(total, size, &total) || total > MAX_UNPACKED)
			return false;
	}
	return true;
}

static bool ends_with_zero(Elf *elf, const char *name)
{
	GElf_Shdr header;
	Elf_Scn *section = sf_elf_find_section(elf, name, &header);
	Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;

	if (!data || !data->d_buf || data->d_size == 0)
		return true;
	return ((const char *)data->d_buf)[data->d_size - 1] == 0;
}

bool sf_dwarf_strings_end(Dwarf *dwarf)
{
	static const char *const names[] = {
		".debug_str", ".zdebug_str", ".debug_line_str", ".zdebug_line_str", ".debug_str.dwo",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!ends_with_zero(dwarf_getelf(dwarf), names[i]))
			return false;
	}
	return true;
}

bool sf_dwarf_make_writable(const void *bytes, size_t size)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)bytes & ~(page - 1);

	return mprotect((void *)start, (uintptr_t)bytes + size - start, PROT_READ | PROT_WRITE) == 0;
}

bool sf_dwarf_join_path(const char *folder, const char *name, char ret[SF_JOINED_MAX])
{
	if (name[0] == '/')
		folder = "";
	return snprintf(ret, SF_JOINED_MAX, "%s%s%s", folder, *folder ? "/" : "", name) <
	       SF_JOINED_MAX;
}

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
	dwarf_end(dwarf);
	return NULL;
}

/* By its note, in whatever section or segment. */
static bool has_build_id(const struct sf_elf *elf, const void *id, size_t size)
{
	const void *found;
	const ssize_t found_size = dwelf_elf_gnu_build_id(elf->elf, &found);

	return found_size > 0 && (size_t)found_size == size && memcmp(found, id, size) == 0;
}

static bool open_if_same(const char *path, const void *id, size_t size, struct sf_elf *ret)
{
	if (!sf_elf_open_data(path, ret, NULL))
		return false;
	if (has_build_id(ret, id, size))
		return true;
	sf_elf_close(ret);
	return false;
}

/* Opens what the link of `dwarf` (from `file`) names, if the build id is the link's. */
static bool open_alt(Dwarf *dwarf, const struct sf_elf *file, struct sf_elf *ret)
{
	char folder[PATH_MAX] = "", path[SF_JOINED_MAX];
	const char *name;
	const void *id;
	ssize_t size = dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &id);

	if (size <= 0)
		return false;
	sf_elf_folder(file, folder);
	return (sf_debug_file_path(SF_DEBUG_ROOT, id, (size_t)size, path) &&
		open_if_same(path, id, (size_t)size, ret)) ||
	       (sf_dwarf_join_path(folder, name, path) &&
		open_if_same(path, id, (size_t)size, ret));
}

/* An ELF file with one section of debug data, which holds no unit. */
static struct empty {
	Elf64_Ehdr header;
	Elf64_Shdr sections[3];
	char names[32], info[8];
} empty = {
	.header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = EV_CURRENT,
		.e_shoff = offsetof(struct empty, sections), .e_ehsize = sizeof(Elf64_Ehdr),
		.e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 3, .e_shstrndx = 2,
	},
	.sections = {
		{ 0 },
		{ .sh_name = 1, .sh_type = SHT_PROGBITS, .sh_addralign = 1,
		  .sh_offset = offsetof(struct empty, info), .sh_size = sizeof(empty.info) },
		{ .sh_name = 13, .sh_type = SHT_STRTAB, .sh_addralign = 1,
		  .sh_offset = offsetof(struct empty, names), .sh_size = sizeof(empty.names) },
	},
	.names = "\0.debug_info\0.shstrtab",
};

static void open_dwarf(struct sf_sources *sources, const struct sf_elf *file)
{
	sources->no_alt = elf_memory((char *)&empty, sizeof(empty));
	sources->no_alt_dwarf = dwarf_begin_elf(sources->no_alt, DWARF_C_READ, NULL);
	sources->dwarf = sources->no_alt_dwarf ? begin_dwarf(file) : NULL;
	if (!sources->dwarf)
		return;
	if (open_alt(sources->dwarf, file, &sources->alt) && sf_elf_map(&sources->alt))
		sources->alt_dwarf = begin_dwarf(&sources->alt);
	if (sources->alt_dwarf)
		dwarf_setalt(sources->alt_dwarf, sources->no_alt_dwarf);
	dwarf_setalt(sources->dwarf,
		     sources->alt_dwarf ? sources->alt_dwarf : sources->no_alt_dwarf);
}

void sf_sources_need_dwarf(struct sf_sources *sources)
{
	if (sources->dwarf_of && !sources->no_alt)
		open_dwarf(sources, sources->dwarf_of);
}

/* The image's own debug data wins; a debug file may still have the symbols that it lacks. */
static const struct sf_elf *find_debug_data(struct sf_sources *sources, const char *path)
{
	if (has_dwarf(sources->image.elf))
		return &sources->image;
	return sf_debug_file_open(&sources->image, path, SF_DEBUG_ROOT, &sources->debug) ? &sources->debug : NULL;
}

/* Small files with debug data are copied: their names are kept. Others are mapped; what cannot be is read by its descriptor. */
static void load_or_map(struct sf_sources *sources)
{
	struct sf_elf *image = &sources->image, *debug = &sources->debug;

	sources->settled = sources->dwarf_of && image->size + (debug->elf ? debug->size : 0) <= MAX_LOADED && sf_elf_load(image) &&
			   (!debug->elf || sf_elf_load(debug));
	if (!image->map)
		sf_elf_map(image);
	if (debug->elf && !debug->map)
		sf_elf_map(debug);
}

bool sf_sources_open(int fd, const char *path, bool dwarf, struct sf_sources *ret,
		     struct sf_error *err)
{
	const struct sf_elf *of;
	int own_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	*ret = (struct sf_sources){ 0 };
	if (own_fd < 0)
		return sf_fail_os(err, "cannot keep %s open", path ? path : "an image");
	if (!sf_elf_open(own_fd, &ret->image, err)) {
		close(own_fd);
		return false;
	}
	ret->image.owns_fd = true;
	of = find_debug_data(ret, path);
	ret->dwarf_of = dwarf ? of : NULL;
	load_or_map(ret);
	return true;
}

/* The build id of a program or library that this process runs, by its notes in memory. */
static int add_build(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct sf_digest *digest = arg;

	(void)size;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		const char *at = (const char *)(info->dlpi_addr + segment->p_vaddr), *end = at + segment->p_memsz;

		while (segment->p_type == PT_NOTE && end - at > (ptrdiff_t)sizeof(ElfW(Nhdr))) {
			const ElfW(Nhdr) *note = (const void *)at;
			const char *id = at + sizeof(*note) + ((note->n_namesz + 3u) & ~3u);

			if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == sizeof("GNU") && memcmp(note + 1, "GNU", sizeof("GNU")) == 0) {
				sf_digest_add(digest, id, note->n_descsz);
				return 0;
			}
			at = id + ((note->n_descsz + 3u) & ~3u);
		}
	}
	return info->dlpi_name && strstr(info->dlpi_name, "vdso") ? 0 : 1;
}

static void add_file(struct sf_digest *digest, const struct sf_elf *file)
{
	const uint64_t size = file->elf ? file->size : 0;

	sf_digest_add(digest, &size, sizeof(size));
	if (size)
		sf_digest_add(digest, file->map, size);
}

bool sf_sources_digest(const struct sf_sources *sources, const char *name, uint8_t ret[SF_DIGEST_SIZE])
{
	GElf_Shdr header;
	struct sf_digest digest;

	if (!sources->settled || (sources->dwarf_of && sf_elf_find_section(sources->dwarf_of->elf, ".gnu_debugaltlink", &header)))
		return false;
	sf_digest_begin(&digest);
	if (dl_iterate_phdr(add_build, &digest) != 0)
		return false;
	sf_digest_add(&digest, name, strlen(name) + 1);
	add_file(&digest, &sources->image);
	add_file(&digest, &sources->debug);
	sf_digest_end(&digest, ret);
	return true;
}

void sf_sources_close(struct sf_sources *sources)
{
	dwarf_end(sources->dwarf);
	dwarf_end(sources->alt_dwarf);
	dwarf_end(sources->no_alt_dwarf);
	elf_end(sources->no_alt);
	sf_elf_close(&sources->alt);
	sf_elf_close(&sources->debug);
	sf_elf_close(&sources->image);
}

const struct sf_elf *sf_sources_dwarf_file(const struct sf_sources *sources)
{
	return sources->debug.elf ? &sources->debug : &sources->image;
}
