/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening ELF files that somebody else wrote and may still be writing.
 *
 * A mapped file that shrinks kills its reader with SIGBUS. So a file is mapped only if nobody but
 * root and ourselves can change it; any other file is read, which costs memory and no more.
 */
#include "symbols/elf_file.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

static bool only_we_can_write(const struct stat *status)
{
	return (status->st_uid == 0 || status->st_uid == geteuid()) &&
	       !(status->st_mode & (S_IWGRP | S_IWOTH)) && status->st_nlink > 0;
}

static bool is_image(Elf *elf)
{
	GElf_Ehdr header;

	return elf && elf_kind(elf) == ELF_K_ELF && gelf_getehdr(elf, &header) &&
	       (header.e_type == ET_EXEC || header.e_type == ET_DYN);
}

bool sf_elf_file_take(int fd, struct sf_elf_file *ret)
{
	struct sf_elf_file file = { .fd = fd };
	struct stat status;

	elf_version(EV_CURRENT);
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
		file.size = (uint64_t)status.st_size;
		file.elf = elf_begin(fd, only_we_can_write(&status) ? ELF_C_READ_MMAP_PRIVATE
								    : ELF_C_READ,
				     NULL);
	}
	if (!is_image(file.elf)) {
		elf_end(file.elf);
		close(fd);
		return false;
	}
	*ret = file;
	return true;
}

bool sf_elf_file_open(const char *path, struct sf_elf_file *ret)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	return fd >= 0 && sf_elf_file_take(fd, ret);
}

bool sf_elf_file_take_memory(void *memory, size_t size, struct sf_elf_file *ret)
{
	struct sf_elf_file file = { .fd = -1, .memory = memory, .size = size };

	elf_version(EV_CURRENT);
	file.elf = elf_memory(memory, size);
	if (!is_image(file.elf)) {
		elf_end(file.elf);
		free(memory);
		return false;
	}
	*ret = file;
	return true;
}

void sf_elf_file_close(struct sf_elf_file *file)
{
	if (!file->elf)
		return;
	elf_end(file->elf);
	if (file->fd >= 0)
		close(file->fd);
	free(file->memory);
	*file = (struct sf_elf_file){ .fd = -1 };
}

Elf_Scn *sf_elf_file_section(Elf *elf, const char *name, GElf_Shdr *header_ret)
{
	size_t names;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return NULL;
	for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
		GElf_Shdr header;
		const char *found;

		if (!gelf_getshdr(section, &header))
			continue;
		found = elf_strptr(elf, names, header.sh_name);
		if (found && strcmp(found, name) == 0) {
			*header_ret = header;
			return section;
		}
	}
	return NULL;
}

bool sf_elf_is_code(Elf *elf, uint64_t address)
{
	size_t n;

	if (elf_getphdrnum(elf, &n) != 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr header;

		if (gelf_getphdr(elf, (int)i, &header) && header.p_type == PT_LOAD &&
		    header.p_flags & PF_X && address >= header.p_vaddr &&
		    address - header.p_vaddr < header.p_memsz)
			return true;
	}
	return false;
}

enum sf_same sf_elf_same_build(Elf *a, Elf *b)
{
	const void *a_id, *b_id;
	ssize_t a_size = dwelf_elf_gnu_build_id(a, &a_id);
	ssize_t b_size = dwelf_elf_gnu_build_id(b, &b_id);

	if (a_size <= 0 || b_size <= 0)
		return SF_SAME_UNKNOWN;
	return a_size == b_size && memcmp(a_id, b_id, (size_t)a_size) == 0 ? SF_SAME_YES
									    : SF_SAME_NO;
}
