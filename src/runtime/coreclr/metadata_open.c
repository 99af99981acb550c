/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens the metadata of .NET assemblies and of portable PDBs: the root with its streams, the widths
 * of columns, rows and heaps.
 *
 * Layouts: ECMA-335 (6th edition), II.22 (tables), II.24 (root, streams, widths); "Portable PDB v1.0: Format Specification" (tables from 0x30 on, the stream
 * #Pdb).
 */
#include "runtime/coreclr/metadata.h"

#define SIGNATURE 0x424a5342
#define MAX_STREAMS 16
#define WIDE_ROWS 0xffff /* an index into a table with more rows has four bytes */
#define EXTRA_DATA 0x40  /* heap sizes: four bytes follow the numbers of rows */

/*
 * Columns, one letter each: 2 and 4 are numbers of so many bytes, S, G and B are indexes into the
 * heaps of strings, GUIDs and blobs, a small letter is a coded index, and "#XX" is an index into
 * the table XX.
 */
static const char *const columns[SF_CLR_N_TABLES] = {
	[0x00] = "2SGGG",          /* Module */
	[0x01] = "rSS",            /* TypeRef */
	[0x02] = "4SSt#04#06",     /* TypeDef */
	[0x03] = "#04",            /* FieldPtr */
	[0x04] = "2SB",            /* Field */
	[0x05] = "#06",            /* MethodPtr */
	[0x06] = "422SB#08",       /* MethodDef */
	[0x07] = "#08",            /* ParamPtr */
	[0x08] = "22S",            /* Param */
	[0x09] = "#02t",           /* InterfaceImpl */
	[0x0a] = "mSB",            /* MemberRef */
	[0x0b] = "2kB",            /* Constant */
	[0x0c] = "ayB",            /* CustomAttribute */
	[0x0d] = "fB",             /* FieldMarshal */
	[0x0e] = "2dB",            /* DeclSecurity */
	[0x0f] = "24#02",          /* ClassLayout */
	[0x10] = "4#04",           /* FieldLayout */
	[0x11] = "B",              /* StandAloneSig */
	[0x12] = "#02#14",         /* EventMap */
	[0x13] = "#14",            /* EventPtr */
	[0x14] = "2St",            /* Event */
	[0x15] = "#02#17",         /* PropertyMap */
	[0x16] = "#17",            /* PropertyPtr */
	[0x17] = "2SB",            /* Property */
	[0x18] = "2#06h",          /* MethodSemantics */
	[0x19] = "#02oo",          /* MethodImpl */
	[0x1a] = "S",              /* ModuleRef */
	[0x1b] = "B",              /* TypeSpec */
	[0x1c] = "2wS#1a",         /* ImplMap */
	[0x1d] = "4#04",           /* FieldRVA */
	[0x1e] = "44",             /* EncLog */
	[0x1f] = "4",              /* EncMap */
	[0x20] = "422224BSS",      /* Assembly */
	[0x21] = "4",              /* AssemblyProcessor */
	[0x22] = "444",            /* AssemblyOS */
	[0x23] = "22224BSSB",      /* AssemblyRef */
	[0x24] = "4#23",           /* AssemblyRefProcessor */
	[0x25] = "444#23",         /* AssemblyRefOS */
	[0x26] = "4SB",            /* File */
	[0x27] = "44SSi",          /* ExportedType */
	[0x28] = "44Si",           /* ManifestResource */
	[0x29] = "#02#02",         /* NestedClass */
	[0x2a] = "22gS",           /* GenericParam */
	[0x2b] = "oB",             /* MethodSpec */
	[0x2c] = "#2at",           /* GenericParamConstraint */
	[0x30] = "BGBG",           /* Document */
	[0x31] = "#30B",           /* MethodDebugInformation */
	[0x32] = "#06#35#33#3444", /* LocalScope */
	[0x33] = "22S",            /* LocalVariable */
	[0x34] = "SB",             /* LocalConstant */
	[0x35] = "#35B",           /* ImportScope */
	[0x36] = "#06#06",         /* StateMachineMethod */
	[0x37] = "cGB",            /* CustomDebugInformation */
};

/* Coded indexes (II.24.2.6): the letter, the bits of the tag, and the tables that the tag chooses
 * from. */
static const struct coded {
	char letter;
	uint8_t bits;
	const char *tables; /* bytes; 0x3f: a tag that is not used */
	uint8_t n;
} coded_indexes[] = {
#define CODED(letter, bits, tables)                                                                \
	{                                                                                          \
		letter, bits, tables, sizeof(tables) - 1                                           \
	}
	CODED('t', 2, "\x02\x01\x1b"), /* TypeDefOrRef */
	CODED('k', 2, "\x04\x08\x17"), /* HasConstant */
	CODED('a', 5,
	      "\x06\x04\x01\x02\x08\x09\x0a\x00\x0e\x17\x14\x11\x1a\x1b\x20\x23\x26\x27\x28\x2a\x2c"
	      "\x2b"),
	CODED('f', 1, "\x04\x08"),             /* HasFieldMarshal */
	CODED('d', 2, "\x02\x06\x20"),         /* HasDeclSecurity */
	CODED('m', 3, "\x02\x01\x1a\x06\x1b"), /* MemberRefParent */
	CODED('h', 1, "\x14\x17"),             /* HasSemantics */
	CODED('o', 1, "\x06\x0a"),             /* MethodDefOrRef */
	CODED('w', 1, "\x04\x06"),             /* MemberForwarded */
	CODED('i', 2, "\x26\x23\x27"),         /* Implementation */
	CODED('y', 3, "\x3f\x3f\x06\x0a"),     /* CustomAttributeType */
	CODED('r', 2, "\x00\x1a\x23\x01"),     /* ResolutionScope */
	CODED('g', 1, "\x02\x06"),             /* TypeOrMethodDef */
	CODED('c', 5,
	      "\x06\x04\x01\x02\x08\x09\x0a\x00\x0e\x17\x14\x11\x1a\x1b\x20\x23\x26\x27\x28\x2a\x2c"
	      "\x2b\x30\x32\x33\x34\x35"),
#undef CODED
};

/* The facts from which the widths of columns follow. */
struct geometry {
	uint32_t rows[64]; /* of each table, those of the assembly for a PDB included */
	uint8_t heap_sizes;
};

static uint8_t heap_width(const struct geometry *geometry, char letter)
{
	const uint8_t bit = letter == 'S' ? 1 : letter == 'G' ? 2 : 4;

	return geometry->heap_sizes & bit ? 4 : 2;
}

static uint8_t coded_width(const struct geometry *geometry, char letter)
{
	const struct coded *coded = coded_indexes;

	while (coded->letter != letter)
		coded++;
	for (unsigned i = 0; i < coded->n; i++) {
		if (geometry->rows[coded->tables[i] & 63] > (uint32_t)WIDE_ROWS >> coded->bits)
			return 4;
	}
	return 2;
}

static unsigned hex(char digit)
{
	return (unsigned)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

/* The width of the column at `*letters`, which moves on to the next one. */
static uint8_t column_width(const struct geometry *geometry, const char **letters)
{
	const char *at = *letters;

	*letters += *at == '#' ? 3 : 1;
	switch (*at) {
	case '2':
		return 2;
	case '4':
		return 4;
	case 'S':
	case 'G':
	case 'B':
		return heap_width(geometry, *at);
	case '#':
		return geometry->rows[hex(at[1]) << 4 | hex(at[2])] > WIDE_ROWS ? 4 : 2;
	default:
		return coded_width(geometry, *at);
	}
}

static bool open_rows(struct sf_clr_rows *ret, unsigned table, const struct geometry *geometry,
		      uint32_t n, struct sf_bytes *bytes)
{
	const char *letters = columns[table];

	if (!letters)
		return false;
	for (unsigned i = 0; i < SF_CLR_MAX_COLUMNS && *letters; i++) {
		ret->width[i] = column_width(geometry, &letters);
		ret->size += ret->width[i];
	}
	ret->n = n;
	ret->first = sf_bytes_take(bytes, (uint64_t)n * ret->size);
	return ret->first != NULL;
}

/* The stream of tables (II.24.2.6). A PDB has the row numbers of its assembly's tables in
 * `outside`. */
static bool open_tables(struct sf_clr_metadata *ret, struct sf_bytes bytes,
			const struct geometry *outside)
{
	struct geometry geometry = *outside;
	uint32_t rows[64] = { 0 };
	uint64_t valid;

	sf_bytes_take(&bytes, 6);
	geometry.heap_sizes = sf_bytes_u8(&bytes);
	sf_bytes_take(&bytes, 1);
	valid = sf_bytes_number(&bytes, 8);
	sf_bytes_take(&bytes, 8);
	for (unsigned table = 0; table < 64; table++) {
		if (valid >> table & 1)
			geometry.rows[table] = rows[table] = sf_bytes_u32(&bytes);
	}
	if (geometry.heap_sizes & EXTRA_DATA)
		sf_bytes_take(&bytes, 4);
	for (unsigned table = 0; table < SF_CLR_N_TABLES && !bytes.bad; table++) {
		if (rows[table] &&
		    !open_rows(&ret->tables[table], table, &geometry, rows[table], &bytes))
			return false;
	}
	return !bytes.bad && !(valid >> SF_CLR_N_TABLES);
}

/* #Pdb: the id of 20 bytes, the entry point, and the numbers of rows of the assembly's tables. */
static void open_pdb(struct sf_clr_metadata *ret, struct sf_bytes bytes, struct geometry *geometry)
{
	const uint8_t *id = sf_bytes_take(&bytes, 20);
	uint64_t referenced;

	ret->pdb_id = sf_bytes_of(id, id ? 20 : 0);
	sf_bytes_take(&bytes, 4);
	referenced = sf_bytes_number(&bytes, 8);
	for (unsigned table = 0; table < 64; table++) {
		if (referenced >> table & 1)
			geometry->rows[table] = sf_bytes_u32(&bytes);
	}
}

/* A stream's name, behind which its header is padded to four bytes. */
static const char *stream_name(struct sf_bytes *bytes)
{
	const uint8_t *start = bytes->at;
	const char *name = sf_bytes_string(bytes);

	if (name)
		sf_bytes_take(bytes, -(size_t)(bytes->at - start) & 3);
	return name;
}

bool sf_clr_metadata_open(struct sf_clr_metadata *ret, const void *bytes, size_t size)
{
	struct sf_bytes in = sf_bytes_of(bytes, size), tables = { 0 };
	struct geometry geometry = { 0 };
	uint32_t version_size;
	unsigned n;

	*ret = (struct sf_clr_metadata){ 0 };
	if (sf_bytes_u32(&in) != SIGNATURE)
		return false;
	sf_bytes_take(&in, 8);
	version_size = sf_bytes_u32(&in);
	sf_bytes_take(&in, version_size);
	sf_bytes_take(&in, 2);
	n = (unsigned)sf_bytes_number(&in, 2);
	for (unsigned i = 0; i < n && i < MAX_STREAMS && !in.bad; i++) {
		const uint32_t offset = sf_bytes_u32(&in), length = sf_bytes_u32(&in);
		const char *name = stream_name(&in);
		struct sf_bytes stream = sf_bytes_of(bytes, size);
		const uint8_t *start;

		sf_bytes_take(&stream, offset);
		start = sf_bytes_take(&stream, length);
		if (!name || !start)
			return false;
		stream = sf_bytes_of(start, length);
		if (!strcmp(name, "#Strings"))
			ret->strings = stream;
		else if (!strcmp(name, "#Blob"))
			ret->blobs = stream;
		else if (!strcmp(name, "#GUID"))
			ret->guids = stream;
		else if (!strcmp(name, "#Pdb"))
			open_pdb(ret, stream, &geometry);
		else if (!strcmp(name, "#~") || !strcmp(name, "#-"))
			tables = stream;
	}
	return !in.bad && tables.at && open_tables(ret, tables, &geometry);
}
