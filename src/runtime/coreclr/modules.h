/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The modules of a process: the assemblies that CoreCLR has loaded, with their metadata and their PDBs. Metadata is
 * read from the process's memory, so that no file is needed. A PDB is read from the file beside the assembly, or from
 * the assembly. Ordinary code, one thread at a time.
 */
#ifndef SF_RUNTIME_CORECLR_MODULES_H
#define SF_RUNTIME_CORECLR_MODULES_H

#include "base/vec.h"
#include "runtime/coreclr/description.h"
#include "runtime/coreclr/metadata.h"
#include "runtime/coreclr/pdb.h"

#define SF_CLR_PATH 4096
#define SF_CLR_MAX_BYTES (UINT64_C(256) << 20)     /* of all assemblies of a process */
#define SF_CLR_MAX_MODULES 16384u                   /* that are read of a process, with those that cannot be read */

struct sf_clr_module {
	uint64_t address, base;        /* of the Module; of its image, 0: none */
	bool is_mapped;                /* the image's sections are at their relative virtual addresses */
	bool is_open, has_pdb, sought_pdb;
	struct sf_clr_metadata metadata, pdb;
	uint8_t *bytes, *pdb_bytes;    /* owned */
	uint64_t n_bytes;              /* of both */
	uint32_t mark;                 /* frozen/coreclr/method_id.h; 0: it could not be read */
	char *path;                    /* owned; "" where the assembly has no file, its name where it is in that of the program */
};

struct sf_clr_modules {
	SF_VEC(struct sf_clr_module) items;
	uint64_t n_bytes;              /* of all that is in memory */
	uint32_t n_read;               /* modules, with those in whose place others are */
};

void sf_clr_modules_deinit(struct sf_clr_modules *modules);

/*
 * The module whose Module object this is, valid until the next call, as its texts are; NULL: its metadata cannot be read, no
 * memory, or too many were read. Where another module has come to the address, it is read.
 */
struct sf_clr_module *sf_clr_modules_find(struct sf_clr_modules *modules,
					  const struct sf_clr_description *description,
					  const struct sf_reader *memory, uint64_t address);

/* Opens (pdb.c) the module's PDB, if there is one that belongs to it. `pid`: the process whose files they are. */
bool sf_clr_module_open_pdb(struct sf_clr_modules *modules, struct sf_clr_module *module,
			    const struct sf_reader *memory, int32_t pid);

/* The file's name without its folder and ".dll"; "?" where there is none. */
void sf_clr_module_name(const struct sf_clr_module *module, char *ret, size_t size);

#endif
