/* SPDX-License-Identifier: Apache-2.0 */
/* Opens ELF files, reads their bytes within limits, and finds their segments. */
#include "elf/file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/foreign_file.h"
#include "base/whole_io.h"

/*
 * The largest .eh_frame seen is chromium's, 20 MB. A larger section than this, or one with which a
 * file would have more than that in memory, counts for nothing: walks find no rule there.
 */
#define MAX_SECTION ((uint64_t)48 << 20)
#define MAX_READ ((uint64_t)64 << 20)

/* Files of which more than this is read take turns, so that memory does not grow with the CPUs. */
#define MAX_SMALL ((uint64_t)1 << 20)

/* libelf reads all section headers, 300 bytes of memory for each. Linkers make some dozens. */
#define MAX_SECTIONS 16384

/* Linkers make about a dozen. All are looked at again and again. */
#define MAX_SEGMENTS 1024

static bool check_header(struct sf_elf *elf, bool is_data, struct sf_error *err)
{
	GElf_Ehdr header;

	if (!elf->elf || elf_kind(elf->elf) != ELF_K_ELF || !gelf_getehdr(elf->elf, &header))
		return sf_fail(err, SF_E_INPUT, "not an ELF file");
	if (!is_data && header.e_type != ET_EXEC && header.e_type != ET_DYN)
		return sf_fail(err, SF_E_INPUT, "an ELF file, but no program or library");
	if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
		return sf_fail(err, SF_E_UNSUPPORTED, "not a 64-bit little-endian ELF file");
	elf->arch = sf_arch_by_machine(header.e_machine);
	if (!elf->arch)
		return sf_fail(err, SF_E_UNSUPPORTED, "an ELF file for a machine (%u) that "
						      "stillframe does not know", header.e_machine);
	elf->entry = header.e_entry;
	if (elf_getphdrnum(elf->elf, &elf->n_segments) != 0)
		elf->n_segments = 0;
	if (elf->n_segments > MAX_SEGMENTS)
		elf->n_segments = MAX_SEGMENTS;
	return true;
}

/* The file's header is no code, where a segment of code begins with it. */
static uint64_t first_code(const GElf_Phdr *segment)
{
	const uint64_t header = segment->p_offset < sizeof(Elf64_Ehdr) ? sizeof(Elf64_Ehdr) - segment->p_offset : 0;

	return segment->p_vaddr + (header < segment->p_memsz ? header : 0);
}

static void find_code(struct sf_elf *elf)
{
	GElf_Phdr segment;

	for (size_t i = 0; i < elf->n_segments; i++) {
		uint64_t end;

		if (!gelf_getphdr(elf->elf, (int)i, &segment) || segment.p_type != PT_LOAD ||
		    !(segment.p_flags & PF_X) || !segment.p_memsz ||
		    __builtin_add_overflow(segment.p_vaddr, segment.p_memsz, &end))
			continue;
		if (elf->code_start == elf->code_end)
			elf->code_start = first_code(&segment);
		if (first_code(&segment) < elf->code_start)
			elf->code_start = first_code(&segment);
		if (end > elf->code_end)
			elf->code_end = end;
	}
}

static bool read_all(int fd, uint8_t *to, uint64_t offset, size_t size)
{
	return sf_move_all(done, size, pread(fd, to + done, size - done, (off_t)(offset + done)));
}

/*
 * The bytes are in pages of their own: the agent reads files inside a watched program, whose malloc would keep
 * megabytes of memory after a free.
 */
const uint8_t *sf_elf_read(struct sf_elf *elf, uint64_t offset, size_t size)
{
	struct sf_elf_piece piece = { .size = size };
	size_t file_size;
	const char *image;

	if (elf->fd < 0 || elf->map) {
		image = elf_rawfile(elf->elf, &file_size);
		if (!image || offset > file_size || size > file_size - offset)
			return NULL;
		return (const uint8_t *)image + offset;
	}
	piece.bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (piece.bytes == MAP_FAILED) {
		elf->no_memory = true;
		return NULL;
	}
	if (read_all(elf->fd, piece.bytes, offset, size)) {
		if (sf_vec_push(&elf->pieces, piece))
			return piece.bytes;
		elf->no_memory = true;
	}
	munmap(piece.bytes, size);
	return NULL;
}

/* Looks at an Elf that was just begun, which may be NULL. is_data: it may be neither a program nor a library. */
static bool open_elf(struct sf_elf *elf, bool is_data, struct sf_error *err)
{
	if (!check_header(elf, is_data, err)) {
		sf_elf_close(elf);
		return false;
	}
	find_code(elf);
	if (elf->fd >= 0)
		sf_elf_build_id(elf->fd, elf->build_id, &elf->build_id_size);
	return true;
}

static bool open_file(int fd, bool is_data, struct sf_elf *ret, struct sf_error *err)
{
	struct stat status;

	*ret = (struct sf_elf){ .fd = -1 };
	if (fstat(fd, &status) != 0)
		return sf_fail_os(err, "cannot read an ELF file");
	if (!S_ISREG(status.st_mode))
		return sf_fail(err, SF_E_INPUT, "not an ELF file, nor a regular one");
	elf_version(EV_CURRENT);
	ret->fd = fd;
	ret->size = (uint64_t)status.st_size;
	if (!sf_elf_may_begin(fd, err))
		return false;
	ret->elf = elf_begin(fd, ELF_C_READ, NULL);
	return open_elf(ret, is_data, err);
}

bool sf_elf_open(int fd, struct sf_elf *ret, struct sf_error *err)
{
	return open_file(fd, false, ret, err);
}

static bool open_path(const char *path, bool is_data, struct sf_elf *ret, struct sf_error *err)
{
	SF_CLEANUP(close) int fd = -1;

	*ret = (struct sf_elf){ .fd = -1 };
	if (!sf_foreign_open(AT_FDCWD, path, &fd, err) || !open_file(fd, is_data, ret, err))
		return false;
	ret->owns_fd = true;
	sf_steal_fd(&fd);
	return true;
}

bool sf_elf_open_path(const char *path, struct sf_elf *ret, struct sf_error *err)
{
	return open_path(path, false, ret, err);
}

bool sf_elf_open_data(const char *path, struct sf_elf *ret, struct sf_error *err)
{
	return open_path(path, true, ret, err);
}

static bool has_few_headers(const Elf64_Ehdr *header, const Elf64_Shdr *first)
{
	uint64_t n_sections = header->e_shnum || !header->e_shoff ? header->e_shnum
								  : first->sh_size;

	return n_sections <= MAX_SECTIONS && header->e_phnum != PN_XNUM;
}

bool sf_elf_may_begin(int fd, struct sf_error *err)
{
	Elf64_Ehdr header = { 0 };
	Elf64_Shdr first = { 0 };

	if (pread(fd, &header, sizeof(header), 0) != sizeof(header))
		return sf_fail(err, SF_E_INPUT, "not an ELF file");
	if (header.e_shoff && !header.e_shnum &&
	    pread(fd, &first, sizeof(first), (off_t)header.e_shoff) < 0)
		return sf_fail(err, SF_E_INPUT, "an ELF file without its section headers");
	return has_few_headers(&header, &first) ||
	       sf_fail(err, SF_E_UNSUPPORTED, "an ELF file with more than %d sections",
		       MAX_SECTIONS);
}

/* The same of a file in memory. */
static bool may_begin_memory(const uint8_t *bytes, size_t size)
{
	Elf64_Ehdr header = { 0 };
	Elf64_Shdr first = { 0 };

	if (size < sizeof(header))
		return false;
	memcpy(&header, bytes, sizeof(header));
	if (header.e_shoff < size && size - header.e_shoff >= sizeof(first))
		memcpy(&first, bytes + header.e_shoff, sizeof(first));
	return has_few_headers(&header, &first);
}

/* libelf changes the header of a section that it unpacks: these pages are made writable. */
static bool unlock_headers(const struct sf_elf *elf, uint8_t *map)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), start, end;
	GElf_Ehdr header;
	size_t n;

	if (!gelf_getehdr(elf->elf, &header) || elf_getshdrnum(elf->elf, &n) != 0 ||
	    header.e_shoff > elf->size || n > (elf->size - header.e_shoff) / sizeof(Elf64_Shdr))
		return false;
	start = header.e_shoff & ~(page - 1);
	end = header.e_shoff + n * sizeof(Elf64_Shdr);
	return !n || mprotect(map + start, end - start, PROT_READ | PROT_WRITE) == 0;
}

bool sf_elf_map(struct sf_elf *elf)
{
	void *map = mmap(NULL, elf->size, PROT_READ, MAP_PRIVATE, elf->fd, 0);
	Elf *mapped;

	if (map == MAP_FAILED)
		return false;
	mapped = unlock_headers(elf, map) ? elf_memory(map, elf->size) : NULL;
	if (!mapped) {
		munmap(map, elf->size);
		return false;
	}
	elf_end(elf->elf);
	elf->elf = mapped;
	elf->map = map;
	return true;
}

bool sf_elf_load(struct sf_elf *elf)
{
	struct sf_elf loaded = { .fd = -1, .size = elf->size };

	loaded.map = mmap(NULL, elf->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (loaded.map == MAP_FAILED)
		return false;
	if (read_all(elf->fd, loaded.map, 0, elf->size) && may_begin_memory(loaded.map, elf->size))
		loaded.elf = elf_memory(loaded.map, elf->size);
	if (!open_elf(&loaded, false, NULL))
		return false;
	memcpy(loaded.build_id, elf->build_id, sizeof(loaded.build_id));
	loaded.build_id_size = elf->build_id_size;
	loaded.fd = elf->fd;
	loaded.owns_fd = elf->owns_fd;
	elf->owns_fd = false;
	sf_elf_close(elf);
	*elf = loaded;
	return true;
}

bool sf_elf_open_memory(void *bytes, size_t size, struct sf_elf *ret, struct sf_error *err)
{
	*ret = (struct sf_elf){ .fd = -1, .size = size, .memory = bytes };
	elf_version(EV_CURRENT);
	ret->elf = may_begin_memory(bytes, size) ? elf_memory(bytes, size) : NULL;
	return open_elf(ret, false, err);
}

void sf_elf_close(struct sf_elf *elf)
{
	elf_end(elf->elf);
	if (elf->map)
		munmap(elf->map, elf->size);
	free(elf->memory);
	for (size_t i = 0; i < elf->pieces.n; i++)
		munmap(elf->pieces.items[i].bytes, elf->pieces.items[i].size);
	sf_vec_deinit(&elf->pieces);
	if (elf->owns_fd)
		close(elf->fd);
	if (elf->ends_turn)
		pthread_mutex_unlock(&elf->work->turn);
	*elf = (struct sf_elf){ .fd = -1 };
}

bool sf_elf_spend(struct sf_elf *elf, uint64_t bytes, bool kept)
{
	if (kept && (bytes > MAX_SECTION || bytes > MAX_READ - elf->n_read))
		return false;
	if (!sf_work_spend(elf->work, bytes)) {
		elf->limited = true;
		return false;
	}
	elf->n_read += kept ? bytes : 0;
	if (elf->n_read > MAX_SMALL && elf->work && !elf->in_turn) {
		pthread_mutex_lock(&elf->work->turn);
		elf->in_turn = elf->ends_turn = true;
	}
	return true;
}

void sf_elf_share_work(const struct sf_elf *elf, struct sf_elf *other)
{
	other->work = elf->work;
	other->n_read = elf->n_read;
	other->in_turn = elf->in_turn;
}

bool sf_elf_find_segment(const struct sf_elf *elf, uint32_t type, GElf_Phdr *ret)
{
	for (size_t i = 0; i < elf->n_segments; i++) {
		if (gelf_getphdr(elf->elf, (int)i, ret) && ret->p_type == type)
			return true;
	}
	return false;
}

bool sf_elf_find_loaded(const struct sf_elf *elf, uint64_t address, uint32_t flags, GElf_Phdr *ret)
{
	for (size_t i = 0; i < elf->n_segments; i++) {
		if (gelf_getphdr(elf->elf, (int)i, ret) && ret->p_type == PT_LOAD &&
		    (ret->p_flags & flags) == flags && address >= ret->p_vaddr &&
		    address - ret->p_vaddr < (flags & PF_X ? ret->p_memsz : ret->p_filesz))
			return true;
	}
	return false;
}
