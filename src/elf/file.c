/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens ELF files, and finds their sections and segments.
 *
 * Finds bytes, and does not interpret them, but for three headers that say where others are:
 * program headers, notes with a build id, and .eh_frame_hdr.
 */
#include "elf/file.h"

#include <dwarf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/foreign_file.h"
#include "frozen/memory/bytes.h"

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

/* The names of all sections. */
#define MAX_NAMES ((uint64_t)1 << 20)

/* Linkers make about a dozen. All are looked at again and again. */
#define MAX_SEGMENTS 1024

static bool check_header(struct sf_elf *elf, struct sf_error *err)
{
	GElf_Ehdr header;

	if (!elf->elf || elf_kind(elf->elf) != ELF_K_ELF || !gelf_getehdr(elf->elf, &header))
		return sf_fail(err, SF_E_INPUT, "not an ELF file");
	if (header.e_type != ET_EXEC && header.e_type != ET_DYN)
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
			elf->code_start = segment.p_vaddr;
		if (segment.p_vaddr < elf->code_start)
			elf->code_start = segment.p_vaddr;
		if (end > elf->code_end)
			elf->code_end = end;
	}
}

static bool read_all(int fd, uint8_t *to, uint64_t offset, size_t size)
{
	while (size) {
		ssize_t n = pread(fd, to, size, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		to += n;
		offset += (uint64_t)n;
		size -= (size_t)n;
	}
	return true;
}

/*
 * `size` bytes, not 0, at `offset` of the file, valid until it is closed; NULL if they cannot be had. They
 * are in pages of their own: the agent reads files inside a watched program, whose malloc would keep
 * megabytes of memory after a free.
 */
static const uint8_t *read_bytes(struct sf_elf *elf, uint64_t offset, size_t size)
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

/* Looks at an Elf that was just begun, which may be NULL. */
static bool open_elf(struct sf_elf *elf, struct sf_error *err)
{
	if (!check_header(elf, err)) {
		sf_elf_close(elf);
		return false;
	}
	find_code(elf);
	if (elf->fd >= 0)
		sf_elf_build_id(elf->fd, elf->build_id, &elf->build_id_size);
	return true;
}

bool sf_elf_open(int fd, struct sf_elf *ret, struct sf_error *err)
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
	return open_elf(ret, err);
}

bool sf_elf_open_path(const char *path, struct sf_elf *ret, struct sf_error *err)
{
	SF_CLEANUP(close) int fd = -1;

	*ret = (struct sf_elf){ .fd = -1 };
	if (!sf_foreign_open(AT_FDCWD, path, &fd, err) || !sf_elf_open(fd, ret, err))
		return false;
	ret->owns_fd = true;
	sf_steal_fd(&fd);
	return true;
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

bool sf_elf_open_memory(void *bytes, size_t size, struct sf_elf *ret, struct sf_error *err)
{
	*ret = (struct sf_elf){ .fd = -1, .size = size, .memory = bytes };
	elf_version(EV_CURRENT);
	ret->elf = may_begin_memory(bytes, size) ? elf_memory(bytes, size) : NULL;
	return open_elf(ret, err);
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

/* The section with the names of sections, of which libelf reads all at the first name. */
static bool has_names(Elf *elf, size_t *ret)
{
	GElf_Shdr header;

	return elf_getshdrstrndx(elf, ret) == 0 && gelf_getshdr(elf_getscn(elf, *ret), &header) &&
	       header.sh_size <= MAX_NAMES && !(header.sh_flags & SHF_COMPRESSED);
}

Elf_Scn *sf_elf_find_section(Elf *elf, const char *name, GElf_Shdr *header_ret)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (!has_names(elf, &names))
		return NULL;
	while ((section = elf_nextscn(elf, section))) {
		const char *found;

		if (!gelf_getshdr(section, header_ret) || header_ret->sh_type == SHT_NOBITS ||
		    header_ret->sh_type == SHT_NULL)
			continue;
		found = elf_strptr(elf, names, header_ret->sh_name);
		if (found && strcmp(found, name) == 0)
			return section;
	}
	return NULL;
}

/* The old form (.zdebug_*): "ZLIB", the size big-endian, the stream. */
static bool unpacked_zdebug(Elf_Scn *section, uint64_t *ret)
{
	Elf_Data *data = elf_rawdata(section, NULL);
	uint64_t size;

	if (!data || !data->d_buf || data->d_size < 12 || memcmp(data->d_buf, "ZLIB", 4) != 0)
		return false;
	memcpy(&size, (const char *)data->d_buf + 4, sizeof(size));
	*ret = __builtin_bswap64(size);
	return true;
}

/* The size in a compressed section's header is a promise by the file: counted first. */
static bool decompress(struct sf_elf *elf, Elf_Scn *section, const GElf_Shdr *header,
		       bool is_zdebug)
{
	GElf_Chdr compressed;
	uint64_t size;

	if (is_zdebug)
		return unpacked_zdebug(section, &size) && sf_elf_spend(elf, size, true) &&
		       elf_compress_gnu(section, 0, 0) >= 0;
	if (!(header->sh_flags & SHF_COMPRESSED))
		return true;
	return gelf_getchdr(section, &compressed) &&
	       sf_elf_spend(elf, compressed.ch_size, true) && elf_compress(section, 0, 0) >= 0;
}

bool sf_elf_section(struct sf_elf *elf, const char *name, struct sf_section *ret)
{
	GElf_Shdr header;
	Elf_Scn *section = sf_elf_find_section(elf->elf, name, &header);
	const bool is_zdebug = strncmp(name, ".zdebug_", 8) == 0;
	Elf_Data *data;

	if (!section || !header.sh_size || !sf_elf_spend(elf, header.sh_size, !elf->map))
		return false;
	*ret = (struct sf_section){ .size = header.sh_size, .address = header.sh_addr };
	elf->unpacked |= is_zdebug || header.sh_flags & SHF_COMPRESSED;
	if (!elf->unpacked) {
		ret->bytes = read_bytes(elf, header.sh_offset, ret->size);
		return ret->bytes;
	}
	data = decompress(elf, section, &header, is_zdebug) ? elf_rawdata(section, NULL) : NULL;
	if (!data || !data->d_size)
		return false;
	ret->bytes = data->d_buf;
	ret->size = data->d_size;
	return ret->bytes;
}

/* The address of a section, whether or not it has bytes; 0 if it is not there. */
static uint64_t address_of(struct sf_elf *elf, const char *name)
{
	GElf_Shdr header;

	return sf_elf_find_section(elf->elf, name, &header) ? header.sh_addr : 0;
}

/*
 * .eh_frame_hdr: version, three encodings, and the address of .eh_frame (LSB Core 5.0, section
 * 10.6.2). Its search table is for those who look up one address, and may be missing.
 */
static bool read_eh_frame_address(struct sf_elf *elf, uint64_t *ret)
{
	struct sf_pointers pointers = { .address_size = 8 };
	struct sf_bytes bytes = { 0 };
	GElf_Phdr segment;
	uint8_t encoding;

	if (!sf_elf_find_segment(elf, PT_GNU_EH_FRAME, &segment) || segment.p_filesz < 8)
		return false;
	bytes.at = read_bytes(elf, segment.p_offset, segment.p_filesz < 32 ? segment.p_filesz : 32);
	if (!bytes.at)
		return false;
	bytes.end = bytes.at + (segment.p_filesz < 32 ? segment.p_filesz : 32);
	pointers.start = bytes.at;
	pointers.address = pointers.data = segment.p_vaddr;
	if (sf_bytes_u8(&bytes) != 1)
		return false;
	encoding = sf_bytes_u8(&bytes);
	sf_bytes_take(&bytes, 2);
	return sf_pointer_read(&pointers, &bytes, encoding, ret);
}

/* From the address in .eh_frame_hdr to the end of its segment, which is not its own end. */
static bool eh_frame_by_segment(struct sf_elf *elf, struct sf_cfi *ret)
{
	GElf_Phdr segment;
	uint64_t address, past, size, offset;
	const uint8_t *bytes;

	if (!read_eh_frame_address(elf, &address) ||
	    !sf_elf_find_loaded(elf, address, 0, &segment))
		return false;
	past = address - segment.p_vaddr;
	size = segment.p_filesz - past;
	if (__builtin_add_overflow(segment.p_offset, past, &offset) ||
	    !sf_elf_spend(elf, size, true))
		return false;
	bytes = read_bytes(elf, offset, size);
	if (!bytes)
		return false;
	*ret = (struct sf_cfi){
		.bytes = bytes, .size = size, .address = address, .eh = true, .ends_at_zero = true,
		.work = elf->work,
	};
	return true;
}

bool sf_elf_eh_frame(struct sf_elf *elf, struct sf_cfi *ret)
{
	struct sf_section section;

	if (!sf_elf_section(elf, ".eh_frame", &section))
		return eh_frame_by_segment(elf, ret);
	*ret = (struct sf_cfi){
		.bytes = section.bytes, .size = section.size, .address = section.address,
		.eh = true, .text = address_of(elf, ".text"), .data = address_of(elf, ".got"),
		.work = elf->work,
	};
	return true;
}

bool sf_elf_debug_frame(struct sf_elf *elf, struct sf_cfi *ret)
{
	struct sf_section section;

	if (!sf_elf_section(elf, ".debug_frame", &section) &&
	    !sf_elf_section(elf, ".zdebug_frame", &section))
		return false;
	*ret = (struct sf_cfi){
		.bytes = section.bytes, .size = section.size, .address = section.address,
		.work = elf->work,
	};
	return true;
}
