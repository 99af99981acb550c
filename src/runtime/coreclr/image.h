/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a .NET assembly: a PE file (Microsoft: "PE Format") with a CLI header (ECMA-335,
 * II.25). A reader over bytes that the caller owns and keeps unchanged, and that are hostile. They
 * are either the file, or its image in memory, where each section lies at its relative virtual
 * address (RVA).
 */
#ifndef SF_RUNTIME_CORECLR_IMAGE_H
#define SF_RUNTIME_CORECLR_IMAGE_H

#include "frozen/memory/bytes.h"

#define SF_CLR_MAX_SECTIONS 96

struct sf_clr_section {
	uint32_t rva, size, offset; /* where it lies in memory and in the file */
};

struct sf_clr_image {
	struct sf_bytes bytes;
	bool in_memory; /* else as in the file */
	/* Where the bytes are not there yet: reads a piece of them before its first use. NULL: they are. */
	bool (*fetch)(const void *arg, const uint8_t *piece, size_t size);
	const void *fetch_arg;
	uint32_t stamp; /* of the header; of no use as a time in a deterministic build */
	struct sf_bytes directories;
	uint32_t n_sections;
	struct sf_clr_section sections[SF_CLR_MAX_SECTIONS];
};

/* False: this is no PE file. */
bool sf_clr_image_open(struct sf_clr_image *ret, const void *bytes, size_t size, bool in_memory);

/* The metadata (metadata.h). Empty: the file is no .NET assembly. */
struct sf_bytes sf_clr_image_metadata(const struct sf_clr_image *image);

/* The name of the assembly's portable PDB, and its id, which the PDB has, too. */
struct sf_clr_pdb_name {
	uint8_t id[20];
	const char *path; /* where the compiler wrote it; in the image's bytes */
};

/* False: the assembly names no portable PDB. */
bool sf_clr_image_pdb_name(const struct sf_clr_image *image, struct sf_clr_pdb_name *ret);

/* The PDB inside the assembly, decompressed. A block (base/block.h), which the caller
 * frees. NULL: there is none, or no memory. */
uint8_t *sf_clr_image_embedded_pdb(const struct sf_clr_image *image, size_t *size_ret);

#endif
