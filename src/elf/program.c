/* SPDX-License-Identifier: Apache-2.0 */
/* Finds a program along PATH, and examines how its file is started. The file is hostile input. */
#include "elf/program.h"

#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/foreign_file.h"
#include "base/musl.h"
#include "elf/file.h"

#define MAX_SEGMENTS 1024
#define MAX_ENTRIES 65536
#define MAX_LOADER 4096 /* bytes of its path */
#define MAX_SCRIPTS 4 /* interpreters that are scripts themselves */

/*
 * The run-time libraries that end their program when another library is loaded before them (gcc's;
 * clang's are linked in). To add one: the start of its name.
 */
static const char *const sanitizers[] = { "libasan.so.", "libtsan.so.", "libhwasan.so.", NULL };

static bool find(const char *name, char *ret, unsigned long size)
{
	const char *path = getenv("PATH");

	if (strchr(name, '/'))
		return (unsigned long)snprintf(ret, size, "%s", name) < size;
	for (path = path ? path : "/bin:/usr/bin"; path; path = *path ? path + 1 : NULL) {
		int n = (int)strcspn(path, ":");
		struct stat about;

		if ((unsigned long)snprintf(ret, size, "%.*s/%s", n ? n : 1, n ? path : ".", name) <
			    size &&
		    access(ret, X_OK) == 0 && stat(ret, &about) == 0 && S_ISREG(about.st_mode))
			return true;
		path += n;
	}
	return false;
}

static void look_at_script(int fd, struct sf_program_file *ret)
{
	char line[sizeof(ret->interpreter) + 2] = "";
	ssize_t n = pread(fd, line, sizeof(line) - 1, 0);
	char *start;

	if (n < 2 || memcmp(line, "#!", 2) != 0)
		return;
	line[n] = 0;
	start = line + 2 + strspn(line + 2, " \t");
	start[strcspn(start, " \t\r\n")] = 0;
	ret->script = true;
	memcpy(ret->interpreter, start, strlen(start) + 1);
}

static void note_library(const char *name, struct sf_program_file *ret)
{
	for (const char *const *start = sanitizers; *start; start++) {
		if (strncmp(name, *start, strlen(*start)) == 0 && !strpbrk(name, ": /") &&
		    strlen(name) < sizeof(ret->sanitizer))
			memcpy(ret->sanitizer, name, strlen(name) + 1);
	}
}

/* DT_NEEDED: the libraries that the program itself is linked with. */
static void look_at_libraries(Elf *elf, Elf_Scn *section, const GElf_Shdr *header,
			      struct sf_program_file *ret)
{
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Dyn entry;

	for (int i = 0; data && i < MAX_ENTRIES && gelf_getdyn(data, i, &entry); i++) {
		const char *name = entry.d_tag != DT_NEEDED ? NULL
				   : elf_strptr(elf, header->sh_link, (size_t)entry.d_un.d_val);

		if (entry.d_tag == DT_NULL)
			return;
		if (name)
			note_library(name, ret);
	}
}

/* Also of files that are not for this machine, which libelf is not given. */
static void look_at_kind(int fd, struct sf_program_file *ret)
{
	Elf32_Ehdr header; /* begins as one of 64 bits does */

	ret->elf = pread(fd, &header, sizeof(header), 0) == sizeof(header) && memcmp(header.e_ident, ELFMAG, SELFMAG) == 0;
	if (!ret->elf)
		return;
	ret->is_64_bit = header.e_ident[EI_CLASS] == ELFCLASS64;
	ret->machine = header.e_machine;
}

static void look_at_loader(Elf *elf, const GElf_Phdr *segment, struct sf_program_file *ret)
{
	static const char musl[] = "/" SF_MUSL_LOADER;
	const Elf_Data *data = segment->p_filesz > MAX_LOADER ? NULL
				: elf_getdata_rawchunk(elf, (int64_t)segment->p_offset, segment->p_filesz, ELF_T_BYTE);

	ret->has_loader = true;
	ret->has_musl = data && memmem(data->d_buf, data->d_size, musl, strlen(musl));
}

static void look_at_elf(Elf *elf, struct sf_program_file *ret)
{
	GElf_Phdr segment;
	GElf_Shdr section_header;
	size_t n = 0;

	if (!elf || elf_kind(elf) != ELF_K_ELF)
		return;
	if (elf_getphdrnum(elf, &n) != 0 || n > MAX_SEGMENTS)
		n = 0;
	for (size_t i = 0; i < n; i++) {
		if (gelf_getphdr(elf, (int)i, &segment) && segment.p_type == PT_INTERP)
			look_at_loader(elf, &segment, ret);
	}
	for (Elf_Scn *section = elf_nextscn(elf, NULL); section;
	     section = elf_nextscn(elf, section)) {
		if (gelf_getshdr(section, &section_header) &&
		    section_header.sh_type == SHT_DYNAMIC &&
		    section_header.sh_size <= MAX_ENTRIES * sizeof(Elf64_Dyn))
			look_at_libraries(elf, section, &section_header, ret);
	}
}

static bool look_at_file(int fd, struct sf_program_file *ret)
{
	struct stat about;
	Elf *elf;

	if (fstat(fd, &about) != 0)
		return false;
	ret->gains_rights = (about.st_mode & S_ISUID && about.st_uid != geteuid()) ||
			    (about.st_mode & S_ISGID && about.st_gid != getegid()) ||
			    fgetxattr(fd, "security.capability", NULL, 0) > 0;
	look_at_script(fd, ret);
	look_at_kind(fd, ret);
	elf_version(EV_CURRENT);
	elf = sf_elf_may_begin(fd, NULL) ? elf_begin(fd, ELF_C_READ, NULL) : NULL;
	look_at_elf(elf, ret);
	elf_end(elf);
	return true;
}

/* Whatever the file is is said in *ret; false where it cannot be read. */
static bool look(const char *path, struct sf_program_file *ret)
{
	SF_CLEANUP(close) int fd = -1;

	*ret = (struct sf_program_file){ 0 };
	snprintf(ret->path, sizeof(ret->path), "%s", path);
	return sf_foreign_open(AT_FDCWD, path, &fd, NULL) && look_at_file(fd, ret);
}

bool sf_program_look_named(const char *name, struct sf_program_file *ret)
{
	char path[sizeof(ret->path)];
	bool fine = find(name, path, sizeof(path)) && look(path, ret);

	for (int i = 0; fine && ret->script && i < MAX_SCRIPTS; i++) {
		snprintf(path, sizeof(path), "%s", ret->interpreter);
		fine = look(path, ret);
	}
	return fine;
}

bool sf_program_look_process(int32_t pid, struct sf_program_file *ret)
{
	SF_CLEANUP(close) int found = -1;
	SF_CLEANUP(close) int fd = -1;

	*ret = (struct sf_program_file){ 0 };
	snprintf(ret->path, sizeof(ret->path), "/proc/%d/exe", pid);
	/* The link leads to the file itself, not to its name: O_PATH follows the link and opens nothing. */
	found = open(ret->path, O_PATH | O_CLOEXEC);
	return found >= 0 && sf_foreign_open_found(found, ret->path, &fd, NULL) && look_at_file(fd, ret);
}
