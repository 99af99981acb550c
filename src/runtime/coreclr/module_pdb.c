/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds a module's PDB: in the assembly, beside it, or where the compiler wrote it. Of an assembly in a program of a
 * single file, which has no file of its own, the image in the process's memory is read, and beside it means beside the
 * program.
 */
#include "runtime/coreclr/modules.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/block.h"
#include "os/process.h"
#include "runtime/coreclr/image.h"

#define HEADERS 4096u
#define MAX_FILE (64u << 20)

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
