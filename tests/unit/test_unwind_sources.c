/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where unwind data may be in a file or beside it: each place in turn, in ELF files made here, and
 * which place wins. Plus what must fail, and how.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dwarf.h>
#include <fcntl.h>
#include <glob.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "elf/debug_file.h"
#include "elf_builder.h"
#include "folder.h"
#include "frozen/arch.h"
#include "unwind/inputs.h"
#include "unwind/unwind.h"

#define TEXT 0x1000u
#define EH_FRAME 0x2000u
#define EH_FRAME_HDR 0x2100u

static const uint8_t code[0x100] = { 0xc3 };

/* The unwind data of one function at `start`, 16 bytes long, with this CFA offset; 56 bytes. */
struct frames {
	uint8_t bytes[64];
	size_t size;
};

static void put(struct frames *f, uint64_t value, size_t size)
{
	assert_true(f->size + size <= sizeof(f->bytes));
	memcpy(f->bytes + f->size, &value, size);
	f->size += size;
}

static struct frames make_frames(bool eh, uint64_t start, uint8_t cfa)
{
	struct frames f = { .size = 0 };

	put(&f, 20, 4);                      /* CIE */
	put(&f, eh ? 0 : UINT32_MAX, 4);
	put(&f, 1, 1);                       /* version */
	put(&f, 0, 1);                       /* no augmentation */
	put(&f, 1, 1);                       /* code alignment */
	put(&f, 0x78, 1);                    /* data alignment -8 */
	put(&f, 16, 1);                      /* return column */
	put(&f, DW_CFA_offset | 16, 1);
	put(&f, 1, 1);
	put(&f, DW_CFA_def_cfa, 1);
	put(&f, 7, 1);
	put(&f, 8, 1);
	put(&f, 0, 6);
	put(&f, 24, 4);                      /* FDE */
	put(&f, eh ? f.size : 0, 4);
	put(&f, start, 8);
	put(&f, 16, 8);
	put(&f, DW_CFA_def_cfa_offset, 1);
	put(&f, cfa, 1);
	put(&f, 0, 2);
	return f;
}

static const struct elf_part text = {
	.name = ".text", .segment = PT_LOAD, .segment_flags = PF_R | PF_X,
	.section_flags = SHF_ALLOC | SHF_EXECINSTR, .address = TEXT,
	.bytes = code, .size = sizeof(code),
};

static struct elf_part section(const char *name, uint64_t address, const void *bytes, size_t size)
{
	return (struct elf_part){ .name = name, .address = address, .bytes = bytes, .size = size };
}

struct made {
	struct sf_table table;
	void *block;
};

static struct made build_fd(int fd)
{
	struct made made;
	struct sf_error err;
	size_t size;

	if (!sf_unwind_build(fd, &made.block, &size, &err))
		fail_msg("%s", err.text);
	assert_true(sf_table_init(&made.table, made.block, size));
	return made;
}

static struct made build_on(uint16_t machine, const struct elf_part *parts, size_t n,
			    bool without_sections)
{
	const struct elf_description description = {
		.machine = machine, .parts = parts, .n_parts = n,
		.without_sections = without_sections,
	};
	int fd = elf_build_fd(&description);
	struct made made = build_fd(fd);

	close(fd);
	return made;
}

static struct made build(const struct elf_part *parts, size_t n)
{
	return build_on(EM_X86_64, parts, n, false);
}

/* The CFA's offset from the stack pointer at an address; -1 without rules. */
static int cfa_at(const struct made *made, uint64_t address)
{
	const struct sf_rules *rules = sf_table_find(&made->table, address);

	return rules ? rules->cfa.value : -1;
}

static void sections_win_in_order(void **state)
{
	struct frames eh = make_frames(true, TEXT, 1);
	struct frames debug = make_frames(false, TEXT, 2);
	struct frames more = make_frames(false, TEXT + 8, 3);
	uint8_t both[128];
	const struct elf_part parts[] = {
		text, section(".debug_frame", 0, both, debug.size + more.size),
		section(".eh_frame", EH_FRAME, eh.bytes, eh.size),
	};
	const uint32_t cie = (uint32_t)debug.size;
	struct made made;
	(void)state;

	memcpy(both, debug.bytes, debug.size);
	memcpy(more.bytes + 28, &cie, 4);
	memcpy(both + debug.size, more.bytes, more.size);
	made = build(parts, 3);
	assert_int_equal(cfa_at(&made, TEXT), 1);
	assert_int_equal(cfa_at(&made, TEXT + 15), 1);
	assert_int_equal(cfa_at(&made, TEXT + 16), 3);
	assert_int_equal(cfa_at(&made, TEXT + 23), 3);
	assert_int_equal(cfa_at(&made, TEXT + 24), -1);
	sf_unwind_close(made.block, made.table.header->size);
	made = build(parts, 2);
	assert_int_equal(cfa_at(&made, TEXT), 2);
	sf_unwind_close(made.block, made.table.header->size);
}

/* As GNU ld and gold leave it, where one segment has the file's header and the code. */
static struct made build_with_header(const struct elf_part *parts, size_t n)
{
	const struct elf_description description = { .machine = EM_X86_64, .parts = parts, .n_parts = n };
	const int fd = memfd_create("elf", MFD_CLOEXEC);
	Elf64_Ehdr header;
	struct made made;
	size_t size;
	char *file = elf_build(&description, &size);
	Elf64_Phdr *segment;

	memcpy(&header, file, sizeof(header));
	segment = (Elf64_Phdr *)(file + header.e_phoff);
	segment->p_offset = segment->p_vaddr = 0;
	segment->p_filesz = segment->p_memsz = 2 * TEXT;
	assert_int_equal(write(fd, file, size), size);
	made = build_fd(fd);
	close(fd);
	free(file);
	return made;
}

/* The linker keeps the size of a function that it drops, but begins it at 0. */
static void a_dropped_function_has_no_rules(void **state)
{
	struct frames dropped = make_frames(false, 0, 1), kept = make_frames(false, TEXT, 2);
	const uint64_t size = TEXT + 0x40;
	const uint32_t cie = (uint32_t)dropped.size;
	uint8_t both[128];
	const struct elf_part parts[] = { text, section(".debug_frame", 0, both, dropped.size + kept.size) };
	struct made made;
	(void)state;

	memcpy(dropped.bytes + 40, &size, 8);
	memcpy(kept.bytes + 28, &cie, 4);
	memcpy(both, dropped.bytes, dropped.size);
	memcpy(both + dropped.size, kept.bytes, kept.size);
	made = build_with_header(parts, 2);
	assert_int_equal(cfa_at(&made, TEXT - 1), -1);
	assert_int_equal(cfa_at(&made, TEXT), 2);
	assert_int_equal(cfa_at(&made, TEXT + 16), -1);
	sf_unwind_close(made.block, made.table.header->size);
}

static void no_unwind_data_gives_no_rows(void **state)
{
	struct made made = build(&text, 1);
	(void)state;

	assert_int_equal(made.table.header->n_rows, 0);
	assert_int_equal(cfa_at(&made, TEXT), -1);
	sf_unwind_close(made.block, made.table.header->size);
}

static void found_through_its_segment(void **state)
{
	struct frames eh = make_frames(true, TEXT, 1);
	const int32_t delta = (int32_t)(EH_FRAME - (EH_FRAME_HDR + 4));
	uint8_t data[0x200] = { 0 };
	uint8_t header[12] = {
		1, DW_EH_PE_pcrel | DW_EH_PE_sdata4, DW_EH_PE_omit, DW_EH_PE_omit,
	};
	const struct elf_part parts[] = {
		text,
		{ .segment = PT_LOAD, .segment_flags = PF_R, .address = EH_FRAME, .bytes = data,
		  .size = sizeof(data) },
		{ .segment = PT_GNU_EH_FRAME, .address = EH_FRAME_HDR, .bytes = header,
		  .size = sizeof(header) },
	};
	struct made made;
	(void)state;

	memcpy(header + 4, &delta, 4);
	memcpy(data, eh.bytes, eh.size);
	memset(data + eh.size + 4, 0x55, 100); /* behind the zero that ends it */
	made = build_on(EM_X86_64, parts, 3, true);
	assert_int_equal(cfa_at(&made, TEXT), 1);
	assert_int_equal(made.table.header->n_rows, 2);
	sf_unwind_close(made.block, made.table.header->size);

	header[1] = DW_EH_PE_omit;
	made = build_on(EM_X86_64, parts, 3, true);
	assert_int_equal(made.table.header->n_rows, 0);
	sf_unwind_close(made.block, made.table.header->size);
}

static size_t compress_frame(const struct frames *f, uint8_t *ret, size_t room)
{
	uLongf size = room;

	assert_int_equal(compress(ret, &size, f->bytes, f->size), Z_OK);
	return size;
}

static void compressed_sections(void **state)
{
	struct frames debug = make_frames(false, TEXT, 7);
	uint8_t bytes[256] = { 0 };
	Elf64_Chdr header = {
		.ch_type = ELFCOMPRESS_ZLIB, .ch_size = debug.size, .ch_addralign = 1,
	};
	struct elf_part parts[] = { text, section(".debug_frame", 0, bytes, 0) };
	struct made made;
	(void)state;

	memcpy(bytes, &header, sizeof(header));
	parts[1].size = sizeof(header) + compress_frame(&debug, bytes + sizeof(header), 200);
	parts[1].section_flags = SHF_COMPRESSED;
	made = build(parts, 2);
	assert_int_equal(cfa_at(&made, TEXT), 7);
	sf_unwind_close(made.block, made.table.header->size);

	header.ch_size = UINT64_C(1) << 40; /* a lie that would cost a terabyte */
	memcpy(bytes, &header, sizeof(header));
	made = build(parts, 2);
	assert_int_equal(cfa_at(&made, TEXT), -1);
	sf_unwind_close(made.block, made.table.header->size);

	memcpy(bytes, "ZLIB\0\0\0\0\0\0\0", 11);
	bytes[11] = (uint8_t)debug.size;
	parts[1].size = 12 + compress_frame(&debug, bytes + 12, 200);
	parts[1].section_flags = 0;
	parts[1].name = ".zdebug_frame";
	made = build(parts, 2);
	assert_int_equal(cfa_at(&made, TEXT), 7);
	sf_unwind_close(made.block, made.table.header->size);

	bytes[4] = 1;
	made = build(parts, 2);
	assert_int_equal(cfa_at(&made, TEXT), -1);
	sf_unwind_close(made.block, made.table.header->size);
}

static void packed_debug_data(void **state)
{
	struct frames debug = make_frames(false, TEXT, 9);
	const struct elf_part inner[] = {
		text, section(".debug_frame", 0, debug.bytes, debug.size),
	};
	const struct elf_description description = {
		.machine = EM_X86_64, .parts = inner, .n_parts = 2,
	};
	uint8_t packed[4096];
	size_t packed_size = 0, size;
	void *file = elf_build(&description, &size);
	struct elf_part parts[] = { text, section(".gnu_debugdata", 0, packed, 0) };
	struct made made;
	(void)state;

	assert_int_equal(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC32, NULL, file, size, packed,
						 &packed_size, sizeof(packed)), LZMA_OK);
	parts[1].size = packed_size;
	made = build(parts, 2);
	assert_int_equal(cfa_at(&made, TEXT), 9);
	sf_unwind_close(made.block, made.table.header->size);

	parts[1].size = packed_size / 2;
	made = build(parts, 2);
	assert_int_equal(cfa_at(&made, TEXT), -1);
	sf_unwind_close(made.block, made.table.header->size);
	free(file);
}

static void write_file(const char *path, const void *bytes, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	close(fd);
}

struct folder {
	char path[64];
	struct frames frames;
	void *debug;       /* a debug file */
	size_t debug_size;
};

static const struct {
	uint32_t name_size, size, type;
	char name[4];
	uint8_t id[4];
} note = { 4, 4, NT_GNU_BUILD_ID, "GNU", { 0xde, 0xad, 0xbe, 0xef } };

static const struct elf_part note_part = {
	.segment = PT_NOTE, .bytes = &note, .size = sizeof(note),
};

static int make_folder(void **state)
{
	struct folder *folder = calloc(1, sizeof(*folder));
	struct elf_part parts[3] = { text, note_part };
	struct elf_description description = {
		.machine = EM_X86_64, .parts = parts, .n_parts = 3,
	};

	folder->frames = make_frames(false, TEXT, 5);
	parts[2] = section(".debug_frame", 0, folder->frames.bytes, folder->frames.size);
	folder->debug = elf_build(&description, &folder->debug_size);
	strcpy(folder->path, "/tmp/sf-debug-XXXXXX");
	assert_non_null(mkdtemp(folder->path));
	*state = folder;
	return 0;
}

static int remove_folder(void **state)
{
	struct folder *folder = *state;

	assert_int_equal(folder_remove(folder->path), 0);
	free(folder->debug);
	free(folder);
	return 0;
}

/* Whether a file made of `parts`, at folder/program, finds a debug file with the folder as root. */
static bool finds(const struct folder *folder, const struct elf_part *parts, size_t n)
{
	const struct elf_description description = {
		.machine = EM_X86_64, .parts = parts, .n_parts = n,
	};
	char path[128];
	size_t size;
	void *file = elf_build(&description, &size);
	struct sf_elf elf, other;
	bool found;
	int fd;

	snprintf(path, sizeof(path), "%s/program", folder->path);
	write_file(path, file, size);
	free(file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(sf_elf_open(fd, &elf, NULL));
	found = sf_debug_file_open(&elf, NULL, folder->path, &other);
	if (found) {
		struct sf_cfi cfi;

		assert_true(sf_elf_debug_frame(&other, &cfi));
		assert_int_equal(cfi.size, folder->frames.size);
		sf_elf_close(&other);
	}
	sf_elf_close(&elf);
	close(fd);
	return found;
}

static void by_build_id(void **state)
{
	const struct folder *folder = *state;
	const struct elf_part parts[] = { text, note_part };
	struct elf_part other[] = { text, note_part };
	__typeof__(note) other_note = note;
	char path[128];

	assert_false(finds(folder, parts, 2));
	snprintf(path, sizeof(path), "%s/.build-id", folder->path);
	assert_int_equal(mkdir(path, 0700), 0);
	strcat(path, "/de");
	assert_int_equal(mkdir(path, 0700), 0);
	strcat(path, "/adbeef.debug");
	write_file(path, folder->debug, folder->debug_size);
	assert_true(finds(folder, parts, 2));
	assert_false(finds(folder, parts, 1));

	/* The name fits, the build id inside does not. */
	memcpy((uint8_t *)&other_note + offsetof(__typeof__(note), id), "\xde\xad\xbe\xee", 4);
	other[1].bytes = &other_note;
	strcpy(strrchr(path, '/'), "/adbeee.debug");
	write_file(path, folder->debug, folder->debug_size);
	assert_false(finds(folder, other, 2));
}

static struct elf_part link_part(uint8_t bytes[32], const char *name, uint32_t checksum)
{
	size_t size = (strlen(name) + 4) & ~(size_t)3;

	memset(bytes, 0, 32);
	memcpy(bytes, name, strlen(name));
	memcpy(bytes + size, &checksum, 4);
	return section(".gnu_debuglink", 0, bytes, size + 4);
}

static void by_link(void **state)
{
	const struct folder *folder = *state;
	const uint32_t checksum = (uint32_t)crc32(0, folder->debug, (uInt)folder->debug_size);
	uint8_t bytes[32];
	struct elf_part parts[] = { text, link_part(bytes, "the.dbg", checksum) };
	char path[300];

	assert_false(finds(folder, parts, 2));
	snprintf(path, sizeof(path), "%s/the.dbg", folder->path);
	write_file(path, folder->debug, folder->debug_size);
	assert_true(finds(folder, parts, 2));
	assert_int_equal(unlink(path), 0);

	snprintf(path, sizeof(path), "%s/.debug", folder->path);
	assert_int_equal(mkdir(path, 0700), 0);
	strcat(path, "/the.dbg");
	write_file(path, folder->debug, folder->debug_size);
	assert_true(finds(folder, parts, 2));

	parts[1] = link_part(bytes, "the.dbg", checksum + 1);
	assert_false(finds(folder, parts, 2));
	parts[1] = link_part(bytes, ".debug/the.dbg", checksum);
	assert_false(finds(folder, parts, 2));
	assert_int_equal(unlink(path), 0);

	snprintf(path, sizeof(path), "mkdir -p '%s%s'", folder->path, folder->path);
	assert_int_equal(system(path), 0);
	snprintf(path, sizeof(path), "%s%s/the.dbg", folder->path, folder->path);
	write_file(path, folder->debug, folder->debug_size);
	parts[1] = link_part(bytes, "the.dbg", checksum);
	assert_true(finds(folder, parts, 2));
}

static void x86_64_plt(void **state)
{
	static const uint8_t plt[] = {
		0xff, 0x35, 0, 0, 0, 0, 0xff, 0x25, 0, 0, 0, 0, 0x0f, 0x1f, 0x40, 0,
		0xff, 0x25, 0, 0, 0, 0, 0x68, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0,
		0xf3, 0x0f, 0x1e, 0xfa, 0x68, 1, 0, 0, 0, 0xe9, 0, 0, 0, 0, 0x66, 0x90,
	};
	struct elf_part parts[] = { text, section(".plt", TEXT + 0x40, plt, sizeof(plt)) };
	static const struct { unsigned offset; int cfa; } expected[] = {
		{ 0, 16 }, { 5, 16 }, { 6, 24 }, { 15, 24 }, { 16, 8 }, { 26, 8 }, { 27, 16 },
		{ 31, 16 }, { 32, 8 }, { 40, 8 }, { 41, 16 }, { 47, 16 }, { 48, -1 },
	};
	struct made made = build(parts, 2);
	(void)state;

	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		assert_int_equal(cfa_at(&made, TEXT + 0x40 + expected[i].offset), expected[i].cfa);
	assert_true(sf_table_find(&made.table, TEXT + 0x40)->flags & SF_RULES_GUESS);
	sf_unwind_close(made.block, made.table.header->size);
}

static void aarch64_plt(void **state)
{
	uint32_t plt[12] = { 0xa9bf7bf0 }; /* stp x16, x30, [sp, #-16]! */
	struct elf_part parts[] = { text, section(".plt", TEXT + 0x40, plt, sizeof(plt)) };
	struct made made = build_on(EM_AARCH64, parts, 2, false);
	(void)state;

	assert_int_equal(cfa_at(&made, TEXT + 0x40), 0);
	assert_int_equal(sf_table_find(&made.table, TEXT + 0x40)->ra.how, SF_HOW_SAME);
	assert_int_equal(cfa_at(&made, TEXT + 0x44), 16);
	assert_int_equal(sf_table_find(&made.table, TEXT + 0x5f)->ra.how, SF_HOW_AT_CFA);
	assert_int_equal(cfa_at(&made, TEXT + 0x60), 0);
	assert_int_equal(cfa_at(&made, TEXT + 0x70), -1);
	sf_unwind_close(made.block, made.table.header->size);
}

static void rows_win_over_the_plt_guess(void **state)
{
	struct frames eh = make_frames(true, TEXT + 0x50, 33);
	const uint8_t plt[0x30] = { 0 };
	struct elf_part parts[] = {
		text, section(".plt.sec", TEXT + 0x40, plt, sizeof(plt)),
		section(".eh_frame", EH_FRAME, eh.bytes, eh.size),
	};
	struct made made = build(parts, 3);
	(void)state;

	assert_int_equal(cfa_at(&made, TEXT + 0x4f), 8);
	assert_int_equal(cfa_at(&made, TEXT + 0x50), 33);
	assert_int_equal(cfa_at(&made, TEXT + 0x60), 8);
	sf_unwind_close(made.block, made.table.header->size);
}

static struct made build_entered(const struct elf_part *parts, size_t n, uint64_t entry)
{
	const struct elf_description description = { .machine = EM_X86_64, .parts = parts, .n_parts = n, .entry = entry };
	int fd = elf_build_fd(&description);
	struct made made = build_fd(fd);

	close(fd);
	return made;
}

static bool is_first(const struct made *made, uint64_t address)
{
	const struct sf_rules *rules = sf_table_find(&made->table, address);

	return rules && rules->ra.how == SF_HOW_UNDEFINED;
}

/* Up to the next function, as nothing else covers it, if that is near; in a file that describes nothing, nowhere. */
static void the_entry_point_has_no_caller(void **state)
{
	struct frames eh = make_frames(true, TEXT + 0x30, 33);
	const struct elf_part parts[] = { text, section(".eh_frame", EH_FRAME, eh.bytes, eh.size) };
	struct made made = build_entered(parts, 2, TEXT + 0x20);
	(void)state;

	assert_false(is_first(&made, TEXT + 0x1f));
	assert_true(is_first(&made, TEXT + 0x20));
	assert_true(is_first(&made, TEXT + 0x2f));
	assert_int_equal(cfa_at(&made, TEXT + 0x30), 33);
	assert_false(is_first(&made, TEXT + 0x30));
	sf_unwind_close(made.block, made.table.header->size);
	made = build_entered(parts, 2, TEXT + 0x38);
	assert_int_equal(cfa_at(&made, TEXT + 0x38), 33);
	assert_int_equal(cfa_at(&made, TEXT + 0x40), -1);
	sf_unwind_close(made.block, made.table.header->size);
	made = build_entered(parts, 2, TEXT + 0x48);
	assert_false(is_first(&made, TEXT + 0x48));
	sf_unwind_close(made.block, made.table.header->size);
	made = build_entered(parts, 1, TEXT + 0x20);
	assert_false(is_first(&made, TEXT + 0x20));
	sf_unwind_close(made.block, made.table.header->size);
}

static struct sf_cache_key key_of(const struct elf_part *parts, size_t n)
{
	const struct elf_description description = { .machine = EM_X86_64, .parts = parts, .n_parts = n };
	int fd = elf_build_fd(&description);
	struct sf_cache_key key;

	assert_true(sf_unwind_key(fd, &key));
	close(fd);
	return key;
}

static bool is_same_key(const struct sf_cache_key *a, const struct sf_cache_key *b)
{
	return a->arch == b->arch && memcmp(a->made_from, b->made_from, sizeof(a->made_from)) == 0;
}

/* Files that differ in anything that a table is made from have other keys, whatever build id they claim. */
static void all_that_makes_a_table_is_in_its_key(void **state)
{
	const struct frames rows = make_frames(true, TEXT, 33), others = make_frames(true, TEXT, 34);
	const struct frames debug = make_frames(false, TEXT, 33);
	const uint8_t plt[2][0x10] = { { 0 }, { 1 } };
	const struct elf_part eh = section(".eh_frame", EH_FRAME, rows.bytes, rows.size);
	const struct elf_part files[][4] = {
		{ text, note_part, eh },
		{ text, note_part, section(".eh_frame", EH_FRAME, others.bytes, others.size) },
		{ text, note_part, section(".eh_frame", EH_FRAME + 8, rows.bytes, rows.size) },
		{ text, note_part, section(".debug_frame", EH_FRAME, debug.bytes, debug.size) },
		{ text, note_part, eh, section(".debug_frame", 0, debug.bytes, debug.size) },
		{ text, note_part, eh, section(".plt", TEXT + 0x40, plt[0], sizeof(plt[0])) },
		{ text, note_part, eh, section(".plt", TEXT + 0x40, plt[1], sizeof(plt[1])) },
		{ text, note_part, eh, section(".plt", TEXT + 0x50, plt[1], sizeof(plt[1])) },
		{ text, note_part, eh, section(".gnu_debugdata", 0, plt[0], sizeof(plt[0])) },
		{ text, note_part, eh, section(".gnu_debugdata", 0, plt[1], sizeof(plt[1])) },
		{ text, note_part, eh }, /* one byte of code less, below */
	};
	struct sf_cache_key keys[sizeof(files) / sizeof(files[0])];
	const size_t n = sizeof(files) / sizeof(files[0]);
	(void)state;

	for (size_t i = 0; i < n; i++) {
		struct elf_part parts[4];
		size_t n_parts = files[i][3].bytes ? 4 : 3;

		memcpy(parts, files[i], sizeof(parts));
		if (i == n - 1)
			parts[0].size -= 1;
		keys[i] = key_of(parts, n_parts);
		for (size_t k = 0; k < i; k++)
			assert_false(is_same_key(&keys[i], &keys[k]));
	}
}

/* The name that a file gives itself is nothing that its table is made from. */
static void a_build_id_is_not_in_the_key(void **state)
{
	const struct frames rows = make_frames(true, TEXT, 33);
	const struct elf_part with[] = { text, section(".eh_frame", EH_FRAME, rows.bytes, rows.size), note_part };
	struct sf_cache_key a = key_of(with, 3), b = key_of(with, 2);
	(void)state;

	assert_true(is_same_key(&a, &b));
}

/*
 * CoreCLR's routine for hijacked returns, but for what is between its pushes and its pops: by its rules a word is
 * between the saved registers and the return address, and its code returns to that word.
 */
static const uint8_t hijack_code[] = {
	0x50, 0x55, 0x53, 0x41, 0x57, 0x41, 0x56, 0x41, 0x55, 0x41, 0x54, 0x52, 0x50, 0x90, 0x58, 0x5a,
	0x41, 0x5c, 0x41, 0x5d, 0x41, 0x5e, 0x41, 0x5f, 0x5b, 0x5d, 0xc3,
};
static const uint8_t hijack_rules[] = {
	0x41, 0x0e, 16, 0x41, 0x0e, 24, 0x41, 0x0e, 32, 0x42, 0x0e, 40, 0x42, 0x0e, 48, 0x42, 0x0e, 56, 0x42, 0x0e, 64,
	0x41, 0x0e, 72, 0x41, 0x0e, 80, 0x42, 0x0e, 72, 0x41, 0x0e, 64, 0x42, 0x0e, 56, 0x42, 0x0e, 48, 0x42, 0x0e, 40,
	0x42, 0x0e, 32, 0x41, 0x0e, 24, 0x41, 0x0e, 16,
};
/* The bytes on the stack up to the return address and with it, by the code. */
static const uint8_t hijack_taken[] = {
	0, 8, 16, 24, 24, 32, 32, 40, 40, 48, 48, 56, 64, 72, 72, 64, 56, 56, 48, 48, 40, 40, 32, 32, 24, 16, 8,
};

#define HIJACK (TEXT + 0x20)

/* Its .eh_frame: the size. */
static size_t put_hijack_rules(uint8_t *ret)
{
	const struct frames f = make_frames(true, HIJACK, 8);
	const uint32_t length = 20 + sizeof(hijack_rules) + 1;
	const uint64_t size = sizeof(hijack_code);

	memcpy(ret, f.bytes, f.size);
	memcpy(ret + 24, &length, sizeof(length));
	memcpy(ret + 40, &size, sizeof(size));
	memcpy(ret + 48, hijack_rules, sizeof(hijack_rules));
	ret[48 + sizeof(hijack_rules)] = DW_CFA_nop;
	return 48 + sizeof(hijack_rules) + 1;
}

static void check_taken(const struct elf_part *parts, int more)
{
	struct made made = build(parts, 2);

	for (size_t i = 0; i < sizeof(hijack_taken); i++)
		assert_int_equal(cfa_at(&made, HIJACK + i), hijack_taken[i] + more);
	sf_unwind_close(made.block, made.table.header->size);
}

/* Code that does not return to that word has the rules as they are. The code is a part of the key. */
static void the_rules_of_hijacked_returns_are_mended(void **state)
{
	uint8_t bytes[sizeof(code)] = { 0xc3 }, rules[128];
	struct elf_part parts[] = { text, section(".eh_frame", EH_FRAME, rules, put_hijack_rules(rules)) };
	struct sf_cache_key keys[2];
	(void)state;

	memcpy(bytes + 0x20, hijack_code, sizeof(hijack_code));
	parts[0].bytes = bytes;
	check_taken(parts, 0);
	keys[0] = key_of(parts, 2);
	bytes[0x20 + sizeof(hijack_code) - 1] = 0x90;
	check_taken(parts, 8);
	keys[1] = key_of(parts, 2);
	assert_false(is_same_key(&keys[0], &keys[1]));
}

/* In each runtime that this machine has. */
static void runtimes_have_a_routine_for_hijacked_returns(void **state)
{
	glob_t found = { 0 };
	(void)state;

	glob("/usr/*/dotnet/shared/Microsoft.NETCore.App/*/libcoreclr.so", 0, NULL, &found);
	glob("~/.nuget/packages/microsoft.netcore.app.runtime.linux*-x64/*/runtimes/*/native/libcoreclr.so",
	     GLOB_TILDE | GLOB_APPEND, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		int fd = open(found.gl_pathv[i], O_RDONLY | O_CLOEXEC);
		struct sf_inputs inputs;

		assert_true(sf_inputs_open(fd, NULL, &inputs, NULL));
		if (!inputs.hijack)
			fail_msg("%s has none", found.gl_pathv[i]);
		sf_inputs_close(&inputs);
		close(fd);
	}
	if (!found.gl_pathc)
		skip();
	globfree(&found);
}

static void assert_refused(int fd, enum sf_code code_wanted, const char *words)
{
	struct sf_error err;
	void *block;
	size_t size;

	assert_false(sf_unwind_build(fd, &block, &size, &err));
	assert_int_equal(err.code, code_wanted);
	assert_non_null(strstr(err.text, words));
	close(fd);
}

static void files_that_are_refused(void **state)
{
	struct elf_part parts[] = { text };
	struct elf_description description = { .machine = EM_68K, .parts = parts, .n_parts = 1 };
	int fd;
	(void)state;

	assert_refused(elf_build_fd(&description), SF_E_UNSUPPORTED, "machine (4)");
	description.machine = EM_X86_64;
	parts[0].memory_size = UINT64_C(1) << 33;
	assert_refused(elf_build_fd(&description), SF_E_UNSUPPORTED, "more than 4 GiB");
	fd = elf_build_fd(&description);
	assert_int_equal(pwrite(fd, "\1", 1, EI_CLASS), 1);
	assert_refused(fd, SF_E_UNSUPPORTED, "64-bit");
	assert_refused(open("/dev/null", O_RDONLY | O_CLOEXEC), SF_E_INPUT, "ELF");
	assert_refused(-1, SF_E_SYSTEM, "ELF");
}

#define WITH_FOLDER(function) cmocka_unit_test_setup_teardown(function, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sections_win_in_order),
		cmocka_unit_test(a_dropped_function_has_no_rules),
		cmocka_unit_test(no_unwind_data_gives_no_rows),
		cmocka_unit_test(found_through_its_segment),
		cmocka_unit_test(compressed_sections),
		cmocka_unit_test(packed_debug_data),
		WITH_FOLDER(by_build_id),
		cmocka_unit_test(all_that_makes_a_table_is_in_its_key),
		cmocka_unit_test(a_build_id_is_not_in_the_key),
		WITH_FOLDER(by_link),
		cmocka_unit_test(x86_64_plt),
		cmocka_unit_test(aarch64_plt),
		cmocka_unit_test(rows_win_over_the_plt_guess),
		cmocka_unit_test(the_entry_point_has_no_caller),
		cmocka_unit_test(the_rules_of_hijacked_returns_are_mended),
		cmocka_unit_test(runtimes_have_a_routine_for_hijacked_returns),
		cmocka_unit_test(files_that_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
