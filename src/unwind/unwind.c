/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sources in the order of their authority, and the cache around them. Each source only fills
 * what earlier ones left open (rows.h), so the order below is the whole policy.
 */
#include "unwind/unwind.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "elf/debug_file.h"
#include "elf/file.h"
#include "unwind/cache.h"
#include "unwind/cfi.h"
#include "unwind/plt.h"
#include "unwind/rows.h"

SF_DEFINE_CLEANUP(struct sf_rows *, sf_rows_destroy)

static bool add_eh_frame(struct sf_elf *elf, struct sf_rows *rows, struct sf_error *err)
{
	struct sf_cfi cfi;

	return !sf_elf_eh_frame(elf, &cfi) || sf_cfi_read(&cfi, elf->arch, rows, err);
}

static bool add_debug_frame(struct sf_elf *elf, struct sf_rows *rows, struct sf_error *err)
{
	struct sf_cfi cfi;

	return !sf_elf_debug_frame(elf, &cfi) || sf_cfi_read(&cfi, elf->arch, rows, err);
}

static bool add_debug_file(struct sf_elf *elf, struct sf_rows *rows, struct sf_error *err)
{
	struct sf_elf other;
	bool ok;

	if (!sf_debug_file_open(elf, NULL, SF_DEBUG_ROOT, &other))
		return true;
	ok = add_debug_frame(&other, rows, err);
	sf_elf_close(&other);
	return ok;
}

static bool add_debug_data(struct sf_elf *elf, struct sf_rows *rows, struct sf_error *err)
{
	struct sf_elf other;
	bool ok;

	if (!sf_debug_data_open(elf, &other))
		return true;
	ok = add_debug_frame(&other, rows, err);
	sf_elf_close(&other);
	return ok;
}

/* False only when memory ran out: a file that makes no sense gives fewer rows. */
typedef bool source_fn(struct sf_elf *elf, struct sf_rows *rows, struct sf_error *err);

static source_fn *const sources[] = {
	add_eh_frame,
	add_debug_frame,
	add_debug_file,
	add_debug_data,
	sf_plt_read,
};

static bool build(struct sf_elf *elf, void **ret, size_t *size_ret, struct sf_error *err)
{
	SF_CLEANUP(sf_rows_destroy) struct sf_rows *rows = NULL;
	struct sf_table_header header = {
		.elf_machine = elf->arch->elf_machine,
		.build_id_size = (uint32_t)elf->build_id_size,
	};

	if (elf->code_end - elf->code_start > UINT32_MAX)
		return sf_fail(err, SF_E_UNSUPPORTED, "code that spans more than 4 GiB (%#llx to "
						      "%#llx)", (unsigned long long)elf->code_start,
			       (unsigned long long)elf->code_end);
	rows = sf_rows_create(elf->code_start, elf->code_end);
	if (!rows)
		return sf_fail_memory(err);
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		if (!sources[i](elf, rows, err))
			return false;
	}
	if (elf->no_memory)
		return sf_fail_memory(err);
	memcpy(header.build_id, elf->build_id, sizeof(header.build_id));
	return sf_rows_pack(rows, &header, ret, size_ret, err);
}

bool sf_unwind_build(int fd, void **ret, size_t *size_ret, struct sf_error *err)
{
	struct sf_elf elf;
	bool ok;

	if (!sf_elf_open(fd, &elf, err))
		return false;
	ok = build(&elf, ret, size_ret, err);
	sf_elf_close(&elf);
	return ok;
}

/* The architecture, without libelf: so that a hit in the cache reads 20 bytes of the file. */
static const struct sf_arch *read_arch(int fd)
{
	Elf64_Ehdr header;

	if (pread(fd, &header, sizeof(header), 0) != sizeof(header) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
		return NULL;
	return sf_arch_by_machine(header.e_machine);
}

static bool get_cached(const struct sf_cache_key *key, void **ret, size_t *size_ret)
{
	SF_CLEANUP(close) int folder = key->arch && key->build_id_size ? sf_cache_open() : -1;

	return folder >= 0 && sf_cache_get(folder, key, ret, size_ret);
}

/* Puts a block into the cache and maps it from there, so that all who use it share its pages. */
static bool put_cached(const struct sf_cache_key *key, const void *block, size_t size, void **ret,
		       size_t *size_ret)
{
	SF_CLEANUP(close) int folder = key->arch && key->build_id_size ? sf_cache_open() : -1;

	return folder >= 0 && sf_cache_put(folder, key, block, size) &&
	       sf_cache_get(folder, key, ret, size_ret);
}

/* A copy that munmap frees, like one from the cache. */
static bool copy_to_map(const void *block, size_t size, void **ret, struct sf_error *err)
{
	void *copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED)
		return sf_fail_memory(err);
	memcpy(copy, block, size);
	*ret = copy;
	return true;
}

static bool build_and_put(int fd, const struct sf_cache_key *key, void **ret, size_t *size_ret,
			  struct sf_error *err)
{
	SF_CLEANUP(free) void *block = NULL;

	if (!sf_unwind_build(fd, &block, size_ret, err))
		return false;
	return put_cached(key, block, *size_ret, ret, size_ret) ||
	       copy_to_map(block, *size_ret, ret, err);
}

bool sf_unwind_open(int fd, const uint8_t *build_id, size_t build_id_size, struct sf_table *ret,
		    void **block_ret, size_t *size_ret, struct sf_error *err)
{
	struct sf_cache_key key = {
		.build_id = build_id, .build_id_size = build_id_size, .arch = read_arch(fd),
	};
	void *block = NULL;
	size_t size = 0;

	if (!get_cached(&key, &block, &size) && !build_and_put(fd, &key, &block, &size, err))
		return false;
	if (!sf_table_init(ret, block, size)) {
		sf_unwind_close(block, size);
		return sf_fail(err, SF_E_INPUT, "an unwind table that is not consistent");
	}
	*block_ret = block;
	*size_ret = size;
	return true;
}

void sf_unwind_close(void *block, size_t size)
{
	if (block)
		munmap(block, size);
}
