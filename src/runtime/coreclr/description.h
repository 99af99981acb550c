/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CoreCLR's description of itself: where its structures have their fields, and where its variables are. A runtime exports it as
 * the symbol DotNetRuntimeContractDescriptor (dotnet/runtime: the design document "Contract Descriptor").
 *
 * It lies in the memory of a process that is not trusted. It is read and checked once.
 */
#ifndef SF_RUNTIME_CORECLR_DESCRIPTION_H
#define SF_RUNTIME_CORECLR_DESCRIPTION_H

#include "base/error.h"
#include "frozen/coreclr/coreclr.h"
#include "frozen/reader.h"

#define SF_CLR_NOTE 400

struct sf_clr_description {
	struct sf_clr_layout layout;
	uint64_t range_map;        /* address of the range map */
	/* Addresses of the runtime's variables; 0: unknown. Each holds a pointer. */
	uint64_t thread_store;
	uint64_t finalizer;        /* the Thread that runs finalizers */
	uint64_t domain;           /* the AppDomain */
	uint64_t sync_table;       /* the locks that objects have, and the objects */
	uint64_t suspender;        /* the Thread that has suspended the others; 0: they run */
	unsigned token_bits;       /* of a method's token that are in the MethodDesc; 0: unknown */
	uint32_t execution;        /* version of the contract ExecutionManager; 0: none */
	uint8_t patchpoint_n, patchpoint_size; /* in debug information: where the number of slots is, and what is before them */
	bool has_nibble_maps;      /* maps from code to IL are numbers of nibbles throughout; else their entries are packed bits */
	bool has_short_rows;       /* a MethodTable has 16 bits for its type's row, in the upper half of its second flags; else the upper 24 */
	bool is_completed;         /* a part is from the table of a version (versions.h), and is to be proved */
	char note[SF_CLR_NOTE];    /* what is not shown, and what is missing for it; "": nothing */
};

/*
 * Reads the descriptor at `address`; 0: the runtime has none, and the description is empty. False: it is no descriptor;
 * the reason is in `err`. SF_E_GONE: the runtime has not started yet, and a later try may do.
 */
bool sf_clr_describe(const struct sf_reader *memory, uint64_t address,
		     struct sf_clr_description *ret, struct sf_error *err);

/* Whether a descriptor is at this address. */
bool sf_clr_is_descriptor(const struct sf_reader *memory, uint64_t address);

/* Whether the description has what walks need, and what is not shown for lack of the rest: its note. */
bool sf_clr_check_description(struct sf_clr_description *description, struct sf_error *err);

#endif
