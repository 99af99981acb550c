/* SPDX-License-Identifier: Apache-2.0 */
/* Finds where the pieces of ILC's names end. */
#include "symbols/ilc_pieces.h"

#include <ctype.h>
#include <string.h>

bool sf_ilc_begins(struct sf_piece piece, size_t at, const char *text)
{
	const size_t n = strlen(text);

	return at <= piece.n && piece.n - at >= n && memcmp(piece.at + at, text, n) == 0;
}

bool sf_ilc_is(struct sf_piece piece, const char *text)
{
	return piece.n == strlen(text) && sf_ilc_begins(piece, 0, text);
}

size_t sf_ilc_digits(struct sf_piece piece, size_t at)
{
	size_t n = 0;

	while (at + n < piece.n && isdigit((unsigned char)piece.at[at + n]))
		n++;
	return n;
}

/* Whether a name may end at `at`. */
bool sf_ilc_is_end(struct sf_piece piece, size_t at)
{
	return at == piece.n || strchr("_<>,", piece.at[at]);
}

/* The position behind the '>' that belongs to the '<' at `at`, or the end. */
static size_t behind_arguments(struct sf_piece piece, size_t at)
{
	unsigned depth = 0;

	for (; at < piece.n; at++) {
		depth += piece.at[at] == '<';
		if (piece.at[at] == '>' && --depth == 0)
			return at + 1;
	}
	return piece.n;
}

/*
 * Names with two underscores in front, and those of types that the C# compiler makes. Behind each a name ends. To add
 * one: a line.
 */
static const struct made {
	const char *text, *written;
	bool has_numbers;            /* "0_0" behind the text */
} made[] = {
	{ "___c__DisplayClass", "", true },
	{ "___c__", "", true },
	{ "___c", "", false },
	{ "___Canon", ".__Canon", false },
	{ "___UniversalCanon", ".__UniversalCanon", false },
	{ "___ComObject", ".__ComObject", false },
	{ "___Finalizer", ".__Finalizer", false },
	{ "__PrivateImplementationDetails_", ".PrivateImplementationDetails", false },
	{ "__Module_", ".Module", false },
};

/* The length of such a name at `at`; 0: there is none. */
size_t sf_ilc_made_at(struct sf_piece piece, size_t at, const char **written_ret)
{
	for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
		size_t n = strlen(made[i].text), more = 0;

		if (!sf_ilc_begins(piece, at, made[i].text))
			continue;
		if (made[i].has_numbers) {
			more = sf_ilc_digits(piece, at + n);
			n += more;
			if (more && n < piece.n - at && piece.at[at + n] == '_' && sf_ilc_digits(piece, at + n + 1))
				n += 1 + sf_ilc_digits(piece, at + n + 1);
		}
		if (made[i].has_numbers != (more > 0) || !sf_ilc_is_end(piece, at + n))
			continue;
		*written_ret = made[i].written;
		return n;
	}
	return 0;
}

/* The length of a state machine's name at `at`, "__Name_d__1"; 0: there is none. */
size_t sf_ilc_machine_at(struct sf_piece piece, size_t at, struct sf_piece *name_ret)
{
	size_t end = at + 2, n;

	if (!sf_ilc_begins(piece, at, "__"))
		return 0;
	while (end < piece.n && !sf_ilc_begins(piece, end, "_d__") && !sf_ilc_begins(piece, end, "__") && isalnum((unsigned char)piece.at[end]))
		end++;
	while (end < piece.n && piece.at[end] == '_' && !sf_ilc_begins(piece, end, "_d__") && !sf_ilc_begins(piece, end, "__"))
		for (end++; end < piece.n && isalnum((unsigned char)piece.at[end]);)
			end++;
	n = sf_ilc_digits(piece, end + 4);
	if (!sf_ilc_begins(piece, end, "_d__") || !n || end == at + 2 || !sf_ilc_is_end(piece, end + 4 + n))
		return 0;
	*name_ret = sf_ilc_part(piece, at + 2, end);
	return end + 4 + n - at;
}

/* Where the next "__" is that is in no name and in no arguments, or the end. */
size_t sf_ilc_separator(struct sf_piece piece, size_t at)
{
	while (at < piece.n) {
		struct sf_piece name;
		const char *written;
		size_t n = 0;

		if (piece.at[at] == '<') {
			at = behind_arguments(piece, at);
			continue;
		}
		if (sf_ilc_begins(piece, at, "__") && at && !(n = sf_ilc_made_at(piece, at, &written)) && !(n = sf_ilc_machine_at(piece, at, &name)))
			return at;
		at += n ? n : 1;
	}
	return piece.n;
}

/* The pieces between separators. */
size_t sf_ilc_split(struct sf_piece piece, struct sf_piece ret[SF_ILC_MAX_ARGUMENTS])
{
	size_t n = 0, from = 0;

	while (from < piece.n && n < SF_ILC_MAX_ARGUMENTS) {
		const size_t rest = sf_ilc_separator(sf_ilc_part(piece, from, piece.n), 0) + from;

		ret[n] = sf_ilc_part(piece, from, n + 1 < SF_ILC_MAX_ARGUMENTS ? rest : piece.n);
		from = rest + 2;
		n++;
	}
	return n;
}
