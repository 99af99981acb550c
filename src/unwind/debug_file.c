/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A debug file must prove that it belongs to the file: by the same build id, or by the
 * checksum in the link (GDB manual, "Debugging Information in Separate Files" and "MiniDebugInfo").
 */
#include "unwind/debug_file.h"

#include <fcntl.h>
#include <limits.h>
#include <lzma.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "unwind/bytes.h"

/* Of unpacked .gnu_debugdata; xz can promise several thousand times what it is given. */
#define MAX_UNPACKED ((size_t)256 << 20)
#define MAX_DECODER_MEMORY ((uint64_t)128 << 20)

/* Opens a candidate; false unless it is an ELF file for the same machine with a .debug_frame. */
static bool open_candidate(const struct sf_elf *elf, const char *path, struct sf_elf *ret)
{
	SF_CLEANUP(close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat status;
	struct sf_cfi unused;

	if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
	    !sf_elf_open(fd, ret, NULL))
		return false;
	if (ret->arch != elf->arch || !sf_elf_debug_frame(ret, &unused)) {
		sf_elf_close(ret);
		return false;
	}
	ret->owns_fd = true;
	sf_steal_fd(&fd);
	return true;
}

static bool has_same_build_id(const struct sf_elf *a, const struct sf_elf *b)
{
	return a->build_id_size == b->build_id_size &&
	       memcmp(a->build_id, b->build_id, sizeof(a->build_id)) == 0;
}

static bool open_by_build_id(const struct sf_elf *elf, const char *root, struct sf_elf *ret)
{
	char hex[2 * SF_ELF_MAX_BUILD_ID + 1] = "", path[PATH_MAX];

	if (elf->build_id_size < 2)
		return false;
	for (size_t i = 0; i < elf->build_id_size; i++)
		snprintf(hex + 2 * i, 3, "%02x", elf->build_id[i]);
	if (snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s.debug", root, hex, hex + 2) >=
	    (int)sizeof(path) || !open_candidate(elf, path, ret))
		return false;
	if (has_same_build_id(elf, ret))
		return true;
	sf_elf_close(ret);
	return false;
}

static bool has_checksum(int fd, uint32_t checksum)
{
	SF_CLEANUP(free) uint8_t *buffer = malloc(1 << 16);
	uLong sum = crc32(0, NULL, 0);
	off_t offset = 0;
	ssize_t n;

	if (!buffer)
		return false;
	while ((n = pread(fd, buffer, 1 << 16, offset)) > 0) {
		sum = crc32(sum, buffer, (uInt)n);
		offset += n;
	}
	return n == 0 && (uint32_t)sum == checksum;
}

/* The link: a file name with its zero, padding to 4 bytes, a checksum. */
static bool read_link(struct sf_elf *elf, const char **name, uint32_t *checksum)
{
	struct sf_section section;
	struct sf_bytes bytes;

	if (!sf_elf_section(elf, ".gnu_debuglink", &section))
		return false;
	bytes = (struct sf_bytes){ .at = section.bytes, .end = section.bytes + section.size };
	*name = sf_bytes_string(&bytes);
	if (!*name || !**name || strchr(*name, '/'))
		return false;
	sf_bytes_take(&bytes, -(size_t)(bytes.at - section.bytes) & 3);
	*checksum = sf_bytes_u32(&bytes);
	return !bytes.bad;
}

/* The folder of the file behind a descriptor, as the kernel knows it. */
static bool folder_of(int fd, char ret[PATH_MAX])
{
	char link[32], *slash;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
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

static bool open_by_link(struct sf_elf *elf, const char *root, struct sf_elf *ret)
{
	char folder[PATH_MAX], path[3 * PATH_MAX];
	/* In front of the folder's path, and behind it. */
	const char *const places[][2] = { { "", "/" }, { "", "/.debug/" }, { root, "/" } };
	const char *name;
	uint32_t checksum;

	if (elf->fd < 0 || !read_link(elf, &name, &checksum) || !folder_of(elf->fd, folder))
		return false;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s%s%s%s", places[i][0], folder, places[i][1], name);
		if (!open_candidate(elf, path, ret))
			continue;
		if (has_checksum(ret->fd, checksum))
			return true;
		sf_elf_close(ret);
	}
	return false;
}

bool sf_debug_file_open(struct sf_elf *elf, const char *root, struct sf_elf *ret)
{
	return open_by_build_id(elf, root, ret) || open_by_link(elf, root, ret);
}

/* Room for what comes next: twice as much, within the bound. */
static bool grow(struct sf_elf *elf, uint8_t **bytes, size_t *capacity)
{
	size_t wanted = *capacity ? *capacity * 2 : 1 << 20;
	uint8_t *grown = wanted <= MAX_UNPACKED ? realloc(*bytes, wanted) : NULL;

	if (!grown) {
		elf->no_memory = wanted <= MAX_UNPACKED;
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

bool sf_debug_data_open(struct sf_elf *elf, struct sf_elf *ret)
{
	struct sf_section section;
	struct sf_error err;
	uint8_t *bytes;
	size_t size;

	if (!sf_elf_section(elf, ".gnu_debugdata", &section) ||
	    !unpack(elf, &section, &bytes, &size))
		return false;
	if (!sf_elf_open_memory(bytes, size, ret, &err)) {
		elf->no_memory = err.code == SF_E_NO_MEMORY;
		return false;
	}
	if (ret->arch == elf->arch)
		return true;
	sf_elf_close(ret);
	return false;
}
