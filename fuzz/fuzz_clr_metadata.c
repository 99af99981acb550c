/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile .NET assemblies, metadata and PDBs: every name and line of them, with no crash and no
 * endless work. */
#include <stdint.h>
#include <stdlib.h>

#include "base/block.h"
#include "runtime/coreclr/names.h"
#include "runtime/coreclr/pdb.h"

#define MOST_ROWS 2000 /* an input of some KB can claim more rows than a run has time for */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use_metadata(const void *bytes, size_t size)
{
	static struct sf_clr_metadata metadata;
	static struct sf_clr_method_name name;
	struct sf_clr_line line;
	uint32_t il;
	char path[64];

	if (!sf_clr_metadata_open(&metadata, bytes, size))
		return;
	for (uint32_t row = 1;
	     row <= MOST_ROWS && row <= sf_clr_n_rows(&metadata, SF_CLR_METHOD_DEF); row++)
		sf_clr_method_name(&metadata, row, NULL, &name);
	for (uint32_t row = 1;
	     row <= MOST_ROWS && row <= sf_clr_n_rows(&metadata, SF_CLR_METHOD_DEBUG); row++) {
		if (sf_clr_pdb_line(&metadata, row, 100, &line))
			sf_clr_pdb_document(&metadata, line.document, path, sizeof(path));
		sf_clr_pdb_await(&metadata, row, 3, &il);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (int in_memory = 0; in_memory < 2; in_memory++) {
		static struct sf_clr_image image;
		struct sf_clr_pdb_name name;
		struct sf_bytes bytes;
		size_t pdb_size;
		uint8_t *pdb;

		if (!sf_clr_image_open(&image, data, size, in_memory))
			continue;
		bytes = sf_clr_image_metadata(&image);
		use_metadata(bytes.at, sf_bytes_left(&bytes));
		sf_clr_image_pdb_name(&image, &name);
		pdb = sf_clr_image_embedded_pdb(&image, &pdb_size);
		if (pdb)
			use_metadata(pdb, pdb_size);
		sf_block_free(pdb);
	}
	use_metadata(data, size);
	return 0;
}
