/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds a module's portable PDB, and decodes its sequence points and documents.
 *
 * The PDB is in the assembly, beside it, or where the compiler wrote it. Of an assembly in a program of a
 * single file, which has no file of its own, the image in the process's memory is read, and beside it means beside the
 * program.
 */
#include "runtime/coreclr/pdb.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/block.h"
#include "os/process.h"
#include "runtime/coreclr/image.h"
#include "runtime/coreclr/modules.h"

#define HEADERS 4096u
#define MAX_FILE (64u << 20)
#define MAX_PARTS 128 /* of a path */

/* --- what is in it --- */

bool sf_clr_pdb_is(const struct sf_clr_metadata *pdb, const struct sf_clr_pdb_name *name)
{
	return sf_bytes_left(&pdb->pdb_id) == sizeof(name->id) &&
	       !memcmp(pdb->pdb_id.at, name->id, sizeof(name->id));
}

/* Where the decoding of a blob of sequence points stands. Numbers are differences to those before.
 */
struct points {
	struct sf_bytes in;
	uint32_t il, line, document;
	bool has_line;  /* the first visible point has its line in full */
	bool is_hidden; /* the point at hand has no line */
	bool is_first;
};

/* The lines and columns of a point. Only the start's line is of interest. */
static void read_place(struct points *points)
{
	const uint32_t lines = sf_clr_compressed(&points->in);
	const int64_t columns = lines ? sf_clr_compressed_signed(&points->in)
				      : (int64_t)sf_clr_compressed(&points->in);

	points->is_hidden = lines == 0 && columns == 0;
	if (points->is_hidden)
		return;
	if (points->has_line) {
		points->line += (uint32_t)sf_clr_compressed_signed(&points->in);
		sf_clr_compressed_signed(&points->in);
	} else {
		points->line = sf_clr_compressed(&points->in);
		sf_clr_compressed(&points->in);
	}
	points->has_line = true;
}

/* The next point, or a change of the document, after which the point is as before. False: there is
 * none. */
static bool next_point(struct points *points, bool *is_point)
{
	uint32_t step;

	if (!sf_bytes_left(&points->in))
		return false;
	step = sf_clr_compressed(&points->in);
	*is_point = step != 0 || points->is_first;
	points->is_first = false;
	points->il += step;
	if (*is_point)
		read_place(points);
	else
		points->document = sf_clr_compressed(&points->in);
	return !points->in.bad;
}

bool sf_clr_pdb_line(const struct sf_clr_metadata *pdb, uint32_t method, uint32_t il_offset,
		     struct sf_clr_line *ret)
{
	struct points points = {
		.in = sf_clr_blob(pdb, SF_CLR_METHOD_DEBUG, method, SF_CLR_METHOD_DEBUG_POINTS),
		.document = sf_clr_value(pdb, SF_CLR_METHOD_DEBUG, method,
					 SF_CLR_METHOD_DEBUG_DOCUMENT),
		.is_first = true,
	};
	bool is_point;

	*ret = (struct sf_clr_line){ 0 };
	sf_clr_compressed(&points.in); /* the signature of the local variables */
	if (!points.document)
		points.document = sf_clr_compressed(&points.in);
	while (next_point(&points, &is_point) && (points.il <= il_offset || !ret->line)) {
		if (is_point && !points.is_hidden)
			*ret = (struct sf_clr_line){ points.document, points.line };
	}
	return ret->line != 0;
}

void sf_clr_pdb_document(const struct sf_clr_metadata *pdb, uint32_t document, char *ret,
			 size_t size)
{
	struct sf_bytes parts = sf_clr_blob(pdb, SF_CLR_DOCUMENT, document, SF_CLR_DOCUMENT_NAME);
	struct sf_text text = sf_text_in(ret, size);
	const char separator = (char)sf_bytes_u8(&parts);

	for (unsigned i = 0; i < MAX_PARTS && sf_bytes_left(&parts); i++) {
		const struct sf_bytes part = sf_clr_blob_at(pdb, sf_clr_compressed(&parts));

		if (i && separator)
			sf_text_put_n(&text, &separator, 1);
		if (part.at)
			sf_text_put_n(&text, (const char *)part.at, sf_bytes_left(&part));
	}
	for (char *zero = ret; zero < text.at; zero++) {
		if (!*zero)
			*zero = '?';
	}
}

/* The kind of CustomDebugInformation "async method stepping information" (54FD2AC5-E925-401A-9C2A-F94F171072F8). */
static const uint8_t stepping[] = {
	0xc5, 0x2a, 0xfd, 0x54, 0x25, 0xe9, 0x1a, 0x40, 0x9c, 0x2a, 0xf9, 0x4f, 0x17, 0x10, 0x72, 0xf8,
};

/* The stepping information of a method; empty: it has none. */
static struct sf_bytes stepping_of(const struct sf_clr_metadata *pdb, uint32_t method)
{
	const uint32_t parent = method << 5; /* HasCustomDebugInformation: tag 0 is a method */
	uint32_t row = sf_clr_find(pdb, SF_CLR_CUSTOM_DEBUG, SF_CLR_CUSTOM_DEBUG_PARENT, parent);

	for (; row && sf_clr_value(pdb, SF_CLR_CUSTOM_DEBUG, row, SF_CLR_CUSTOM_DEBUG_PARENT) == parent; row++) {
		const uint8_t *kind = sf_clr_guid(pdb, SF_CLR_CUSTOM_DEBUG, row, SF_CLR_CUSTOM_DEBUG_KIND);

		if (kind && !memcmp(kind, stepping, sizeof(stepping)))
			return sf_clr_blob(pdb, SF_CLR_CUSTOM_DEBUG, row, SF_CLR_CUSTOM_DEBUG_VALUE);
	}
	return (struct sf_bytes){ 0 };
}

bool sf_clr_pdb_await(const struct sf_clr_metadata *pdb, uint32_t move_next, uint32_t state, uint32_t *il_ret)
{
	struct sf_bytes awaits = stepping_of(pdb, move_next);

	sf_bytes_u32(&awaits); /* the handler of exceptions */
	for (uint32_t i = 0; sf_bytes_left(&awaits); i++) {
		*il_ret = sf_bytes_u32(&awaits);
		sf_bytes_u32(&awaits); /* where the method goes on */
		sf_clr_compressed(&awaits);
		if (i == state)
			return !awaits.bad;
	}
	return false;
}

/* --- where it is --- */

/* A file of the process, whole; NULL: it is not there, or it is too large. */
static uint8_t *read_file(int32_t pid, const char *path, size_t *size_ret)
{
	const int fd = sf_process_open_path(pid, path);
	uint8_t *bytes = NULL;
	struct stat status;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &status) == 0 && status.st_size > 0 && status.st_size <= MAX_FILE) {
		*size_ret = (size_t)status.st_size;
		bytes = sf_block_new(*size_ret);
		if (bytes && pread(fd, bytes, *size_ret, 0) != (ssize_t)*size_ret) {
			sf_block_free(bytes);
			bytes = NULL;
		}
	}
	close(fd);
	return bytes;
}

static bool take_pdb(struct sf_clr_modules *modules, struct sf_clr_module *module, uint8_t *bytes,
		     size_t size, const struct sf_clr_pdb_name *name)
{
	if (bytes && modules->n_bytes + size <= SF_CLR_MAX_BYTES &&
	    sf_clr_metadata_open(&module->pdb, bytes, size) &&
	    (!name || sf_clr_pdb_is(&module->pdb, name))) {
		module->pdb_bytes = bytes;
		module->n_bytes += size;
		modules->n_bytes += size;
		return true;
	}
	sf_block_free(bytes);
	return false;
}

/* `path`: of the assembly, or what it would have if it were a file. */
static bool open_pdb_file(struct sf_clr_modules *modules, struct sf_clr_module *module, int32_t pid, const char *path,
			  const struct sf_clr_pdb_name *name)
{
	const size_t n = strlen(path);
	char beside[SF_CLR_PATH + 4];
	size_t size = 0;
	uint8_t *bytes;

	snprintf(beside, sizeof(beside), "%.*s.pdb", (int)(n > 4 && strcmp(path + n - 4, ".dll") == 0 ? n - 4 : n), path);
	bytes = read_file(pid, beside, &size);
	if (take_pdb(modules, module, bytes, size, name))
		return true;
	if (name->path[0] != '/')
		return false;
	bytes = read_file(pid, name->path, &size);
	return take_pdb(modules, module, bytes, size, name);
}

/* An assembly, of which only the pieces that are needed are read. */
struct assembly {
	int fd;                          /* of its file; < 0: it is in the process's memory */
	const struct sf_reader *memory;
	uint64_t base;
	const char *path;
	bool in_memory;                  /* its sections are at their relative virtual addresses */
	uint8_t *bytes;                  /* a block, with room for the whole file or image */
};

static bool fetch(const void *arg, const uint8_t *piece, size_t size)
{
	const struct assembly *assembly = arg;
	const size_t at = (size_t)(piece - assembly->bytes);

	if (assembly->fd < 0)
		return sf_read(assembly->memory, assembly->bytes + at, assembly->base + at, size);
	return pread(assembly->fd, assembly->bytes + at, size, (off_t)at) == (ssize_t)size;
}

static bool find_pdb(struct sf_clr_modules *modules, struct sf_clr_module *module, int32_t pid,
		     const struct assembly *assembly, size_t size)
{
	struct sf_clr_pdb_name name;
	struct sf_clr_image image;
	size_t pdb_size = 0;
	uint8_t *pdb;

	if (!assembly->bytes || !fetch(assembly, assembly->bytes, size < HEADERS ? size : HEADERS) ||
	    !sf_clr_image_open(&image, assembly->bytes, size, assembly->in_memory))
		return false;
	image.fetch = fetch;
	image.fetch_arg = assembly;
	pdb = sf_clr_image_embedded_pdb(&image, &pdb_size);
	if (take_pdb(modules, module, pdb, pdb_size, NULL))
		return true;
	return sf_clr_image_pdb_name(&image, &name) && open_pdb_file(modules, module, pid, assembly->path, &name);
}

static bool find_pdb_of_file(struct sf_clr_modules *modules, struct sf_clr_module *module, int32_t pid)
{
	struct assembly assembly = { .fd = sf_process_open_path(pid, module->path), .path = module->path };
	struct stat status;
	bool found = false;

	if (assembly.fd < 0)
		return false;
	if (fstat(assembly.fd, &status) == 0 && status.st_size > 0 && status.st_size <= MAX_FILE) {
		assembly.bytes = sf_block_new((size_t)status.st_size);
		found = find_pdb(modules, module, pid, &assembly, (size_t)status.st_size);
		sf_block_free(assembly.bytes);
	}
	close(assembly.fd);
	return found;
}

/* Where the last section ends; 0: it is no image, or too large. */
static size_t size_in_memory(const struct assembly *assembly)
{
	uint8_t headers[HEADERS];
	struct sf_clr_image image;
	uint64_t end = 0;

	if (!sf_read(assembly->memory, headers, assembly->base, sizeof(headers)) ||
	    !sf_clr_image_open(&image, headers, sizeof(headers), assembly->in_memory))
		return 0;
	for (uint32_t i = 0; i < image.n_sections; i++) {
		const struct sf_clr_section *section = &image.sections[i];
		const uint64_t its = (uint64_t)(assembly->in_memory ? section->rva : section->offset) + section->size;

		end = its > end ? its : end;
	}
	return end >= HEADERS && end <= MAX_FILE ? (size_t)end : 0;
}

struct mapped {
	uint64_t address;    /* 0: of the program, which is the file that is mapped lowest */
	char *path;
};

static bool note_path(const struct sf_mapping *mapping, void *arg)
{
	struct mapped *mapped = arg;

	const bool is_file = mapping->path[0] == '/' && strncmp(mapping->path, "/memfd:", 7) != 0;

	if (mapped->address ? mapped->address < mapping->start || mapped->address >= mapping->end : !is_file)
		return true;
	mapped->path = is_file ? strdup(mapping->path) : NULL;
	return false;
}

/* The path that the assembly would have beside the program. */
static bool path_beside_program(const struct sf_clr_module *module, int32_t pid, char *ret, size_t size)
{
	struct mapped program = { 0 };
	const char *slash;
	int n = -1;

	sf_process_maps(pid, note_path, &program, NULL);
	slash = program.path ? strrchr(program.path, '/') : NULL;
	if (slash)
		n = snprintf(ret, size, "%.*s/%s", (int)(slash - program.path), program.path, module->path);
	free(program.path);
	return n >= 0 && (size_t)n < size;
}

static bool find_pdb_of_image(struct sf_clr_modules *modules, struct sf_clr_module *module,
			      const struct sf_reader *memory, int32_t pid)
{
	char path[SF_CLR_PATH];
	struct assembly assembly = {
		.fd = -1, .memory = memory, .base = module->base, .path = path, .in_memory = module->is_mapped,
	};
	const size_t size = module->base && path_beside_program(module, pid, path, sizeof(path)) ? size_in_memory(&assembly) : 0;
	bool found;

	if (!size)
		return false;
	assembly.bytes = sf_block_new(size);
	found = find_pdb(modules, module, pid, &assembly, size);
	sf_block_free(assembly.bytes);
	return found;
}

/* Where the runtime tells no path, the process's map does. */
static void find_path(struct sf_clr_module *module, int32_t pid)
{
	struct mapped mapped = { .address = module->base };

	sf_process_maps(pid, note_path, &mapped, NULL);
	if (!mapped.path)
		return;
	free(module->path);
	module->path = mapped.path;
}

bool sf_clr_module_open_pdb(struct sf_clr_modules *modules, struct sf_clr_module *module,
			    const struct sf_reader *memory, int32_t pid)
{
	if (module->sought_pdb)
		return module->has_pdb;
	module->sought_pdb = true;
	if (!module->path[0] && module->base)
		find_path(module, pid);
	module->has_pdb = (module->path[0] == '/' && find_pdb_of_file(modules, module, pid)) ||
			  find_pdb_of_image(modules, module, memory, pid);
	return module->has_pdb;
}
