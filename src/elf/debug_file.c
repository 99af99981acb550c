/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the separate debug file of an ELF file, and unpacks the one in .gnu_debugdata ("MiniDebugInfo" in
 * the GDB manual), which is packed with xz.
 *
 * A debug file must prove that it belongs to the file: by the same build id, or by the
 * checksum in the link (GDB manual, "Debugging Information in Separate Files").
 */
#include "elf/debug_file.h"

#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hex.h"
#include "frozen/memory/bytes.h"

bool sf_debug_file_path(const char *root, const uint8_t *build_id, size_t size, char ret[PATH_MAX])
{
	char hex[2 * 64 + 1];

	if (size < 2 || size > sizeof(hex) / 2)
		return false;
	sf_hex(build_id, size, hex);
	return snprintf(ret, PATH_MAX, "%s/.build-id/%.2s/%s.debug", root, hex, hex + 2) < PATH_MAX;
}

/* Keeps an opened file if it is for the same machine. */
static bool is_for(const struct sf_elf *elf, struct sf_elf *ret)
{
	sf_elf_share_work(elf, ret);
	if (ret->arch == elf->arch)
		return true;
	sf_elf_close(ret);
	return false;
}

/* Opens a candidate; false unless it is an ELF file for the same machine. */
static bool open_candidate(const struct sf_elf *elf, const char *path, struct sf_elf *ret)
{
	return sf_elf_open_path(path, ret, NULL) && is_for(elf, ret);
}

static bool is_same_build(const struct sf_elf *a, const struct sf_elf *b)
{
	return a->build_id_size == b->build_id_size &&
	       memcmp(a->build_id, b->build_id, a->build_id_size) == 0;
}

static bool open_by_build_id(const struct sf_elf *elf, const char *root, struct sf_elf *ret)
{
	char path[PATH_MAX];

	if (!sf_debug_file_path(root, elf->build_id, elf->build_id_size, path) ||
	    !open_candidate(elf, path, ret))
		return false;
	if (is_same_build(elf, ret))
		return true;
	sf_elf_close(ret);
	return false;
}

/*
 * The checksum that a debug link carries: the CRC-32 of all bytes. Of a file that is larger than this,
 * it is not taken: only a build id proves that it belongs. Going through a file costs a sixteenth of
 * understanding it.
 */
#define MAX_CHECKED ((uint64_t)4 << 30)
#define CHECKED_SHARE 16

static bool has_checksum(struct sf_elf *debug, uint32_t wanted)
{
	SF_CLEANUP(free) uint8_t *buffer = malloc(1 << 18);
	uint32_t checksum = 0;
	off_t offset = 0;
	ssize_t n = 0;

	if (!buffer || debug->size > MAX_CHECKED)
		return false;
	while (sf_elf_spend(debug, (1 << 18) / CHECKED_SHARE, false) &&
	       (n = pread(debug->fd, buffer, 1 << 18, offset)) > 0) {
		checksum = lzma_crc32(buffer, (size_t)n, checksum);
		offset += n;
	}
	return n == 0 && !debug->limited && checksum == wanted;
}

static bool belongs(const struct sf_elf *elf, struct sf_elf *debug, uint32_t checksum)
{
	if (elf->build_id_size && debug->build_id_size)
		return is_same_build(elf, debug);
	return has_checksum(debug, checksum);
}

/* The link: a file name with its zero, padding to 4 bytes, a checksum. */
static bool read_link(struct sf_elf *elf, const char **name, uint32_t *checksum)
{
	struct sf_section section;
	struct sf_bytes bytes;

	if (!sf_elf_section(elf, ".gnu_debuglink", &section))
		return false;
	bytes = sf_bytes_of(section.bytes, section.size);
	*name = sf_bytes_string(&bytes);
	if (!*name || !**name || strchr(*name, '/'))
		return false;
	sf_bytes_take(&bytes, -(size_t)(bytes.at - section.bytes) & 3);
	*checksum = sf_bytes_u32(&bytes);
	return !bytes.bad;
}

bool sf_elf_folder(const struct sf_elf *elf, char ret[PATH_MAX])
{
	char link[32], *slash;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", elf->fd);
	n = readlink(link, ret, PATH_MAX - 1);
	if (n <= 0)
		return false;
	ret[n] = 0;
	slash = strrchr(ret, '/');
	if (ret[0] != '/' || !slash)
		return false;
	*slash = 0;
	return true;
}

/* The folder of `path`, or without a path the folder that the kernel shows for the open file. */
static bool find_folder(const struct sf_elf *elf, const char *path, char ret[PATH_MAX])
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	if (!path)
		return sf_elf_folder(elf, ret);
	if (path[0] != '/')
		return false;
	return snprintf(ret, PATH_MAX, "%.*s", (int)(slash - path), path) < PATH_MAX;
}

/* The same paths, in the same order, as gdb. */
static bool open_by_link(struct sf_elf *elf, const char *path, const char *root,
			 struct sf_elf *ret)
{
	char folder[PATH_MAX], candidate[PATH_MAX];
	/* In front of the folder's path, and behind it. */
	const char *const paths[][2] = { { "", "/" }, { "", "/.debug/" }, { root, "/" } };
	const char *name;
	uint32_t checksum;

	if (elf->fd < 0 || !read_link(elf, &name, &checksum) || !find_folder(elf, path, folder))
		return false;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (snprintf(candidate, sizeof(candidate), "%s%s%s%s", paths[i][0], folder,
			     paths[i][1], name) >= (int)sizeof(candidate) ||
		    !open_candidate(elf, candidate, ret))
			continue;
		if (belongs(elf, ret, checksum))
			return true;
		elf->limited |= ret->limited;
		sf_elf_close(ret);
	}
	return false;
}

bool sf_debug_file_open(struct sf_elf *elf, const char *path, const char *root,
			struct sf_elf *ret)
{
	return open_by_build_id(elf, root, ret) || open_by_link(elf, path, root, ret);
}

/*
 * Fedora's largest is below 10 MB unpacked; xz can promise several thousand times what it is
 * given.
 */
#define MAX_UNPACKED ((size_t)32 << 20)
#define MAX_DECODER_MEMORY ((uint64_t)40 << 20) /* xz -8 */

/* Room for what comes next: twice as much, within the bound. */
static bool grow(struct sf_elf *elf, uint8_t **bytes, size_t *capacity)
{
	size_t wanted = *capacity ? *capacity * 2 : 256 << 10;
	uint8_t *grown;

	if (wanted > MAX_UNPACKED || !sf_elf_spend(elf, wanted - *capacity, true))
		return false;
	grown = realloc(*bytes, wanted);
	if (!grown) {
		elf->no_memory = true;
		return false;
	}
	*bytes = grown;
	*capacity = wanted;
	return true;
}

static bool unpack_stream(struct sf_elf *elf, lzma_stream *stream, uint8_t **ret,
			  size_t *size_ret)
{
	SF_CLEANUP(free) uint8_t *bytes = NULL;
	size_t capacity = 0;
	lzma_ret result = LZMA_OK;

	while (result == LZMA_OK) {
		size_t done = stream->total_out;

		if (done == capacity && !grow(elf, &bytes, &capacity))
			return false;
		stream->next_out = bytes + done;
		stream->avail_out = capacity - done;
		result = lzma_code(stream, LZMA_FINISH);
	}
	if (result != LZMA_STREAM_END)
		return false;
	*size_ret = stream->total_out;
	*ret = sf_steal(&bytes);
	return true;
}

static bool unpack(struct sf_elf *elf, const struct sf_section *section, uint8_t **ret,
		   size_t *size_ret)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	bool ok;

	if (lzma_stream_decoder(&stream, MAX_DECODER_MEMORY, 0) != LZMA_OK)
		return false;
	stream.next_in = section->bytes;
	stream.avail_in = section->size;
	ok = unpack_stream(elf, &stream, ret, size_ret);
	lzma_end(&stream);
	return ok;
}

bool sf_debug_data_unpack(struct sf_elf *elf, const struct sf_section *packed, struct sf_elf *ret)
{
	struct sf_error err;
	uint8_t *bytes;
	size_t size;

	if (!unpack(elf, packed, &bytes, &size))
		return false;
	if (!sf_elf_open_memory(bytes, size, ret, &err)) {
		elf->no_memory = err.code == SF_E_NO_MEMORY;
		return false;
	}
	return is_for(elf, ret);
}

bool sf_debug_data_open(struct sf_elf *elf, struct sf_elf *ret)
{
	struct sf_section packed;

	return sf_elf_section(elf, ".gnu_debugdata", &packed) &&
	       sf_debug_data_unpack(elf, &packed, ret);
}
