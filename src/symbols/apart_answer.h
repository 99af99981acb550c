/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child's answer (apart.h): locations, whose texts are numbered from 1 in the order of their first
 * use. The child reads hostile data, so its answer is hostile too: sizes and numbers are checked. For
 * src/symbols only.
 */
#ifndef SF_SYMBOLS_APART_ANSWER_H
#define SF_SYMBOLS_APART_ANSWER_H

#include "base/intern.h"
#include "base/vec.h"
#include "symbols/symbols.h"

/* In the child: writes to a pipe. */
struct sf_answer_writer {
	int fd;
	struct sf_intern *texts;      /* addresses of the texts that were written */
	const size_t *numbers;        /* of the questions, by the index of an answer */
	size_t n;
	uint8_t buffer[64 << 10];
};

bool sf_answer_writer_init(struct sf_answer_writer *writer, int fd, const size_t *numbers);
void sf_answer_write(size_t index, const struct sf_location *locations, size_t n, void *writer);
void sf_answer_write_end(struct sf_answer_writer *writer);

/* In the parent. Zeroed memory but for the first fields is a new one. */
struct sf_answer_reader {
	sf_location_fn *fn;
	void *arg;
	bool *answered;               /* by the number of the question: set where there is an answer */
	size_t n_questions;
	size_t text_left;             /* bytes of texts that are taken */
	bool complete;                /* the last word has come */
	SF_VEC(char *) texts;
	SF_VEC(uint8_t) bytes;        /* what is not a whole message yet */
};

/* Takes what has come from the pipe; false when it makes no sense, or is too much. */
bool sf_answer_read(struct sf_answer_reader *reader, const void *bytes, size_t size);
void sf_answer_reader_deinit(struct sf_answer_reader *reader);

#endif
