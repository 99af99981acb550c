/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the sequence points and the documents of a portable PDB. */
#include "runtime/coreclr/pdb.h"

#define MAX_PARTS 128 /* of a path */

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

uint32_t sf_clr_pdb_kickoff(const struct sf_clr_metadata *pdb, uint32_t move_next)
{
	const uint32_t row = sf_clr_find(pdb, SF_CLR_STATE_MACHINE_METHOD,
					 SF_CLR_STATE_MACHINE_METHOD_MOVE_NEXT, move_next);

	return sf_clr_value(pdb, SF_CLR_STATE_MACHINE_METHOD, row,
			    SF_CLR_STATE_MACHINE_METHOD_KICKOFF);
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
