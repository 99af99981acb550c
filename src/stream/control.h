/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages between stillframe and an agent over a channel (os/channel.h). The agent of a launched
 * program connects to stillframe. stillframe connects to an agent that listens. These messages follow:
 *
 *   stillframe -> agent   START options     the text of STILLFRAME=, see agent/options.h
 *   agent -> stillframe   READY + outbox    a memfd: frozen/output/outbox.h; sampling has begun
 *                         REFUSED text      why not, for people; the channel is closed
 *   stillframe -> agent   STOP
 *   agent -> stillframe   DONE text         all records are in the outbox, END last; the reason if it was not requested, or ""
 *
 * The end of the channel is a STOP, too. Messages from the other end are hostile: sizes are checked here.
 */
#ifndef SF_STREAM_CONTROL_H
#define SF_STREAM_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define SF_CONTROL_MAGIC 0x43544653u /* "SFTC" */
#define SF_CONTROL_TEXT 2048

enum sf_control_kind {
	SF_CONTROL_START = 1,
	SF_CONTROL_READY,
	SF_CONTROL_REFUSED,
	SF_CONTROL_STOP,
	SF_CONTROL_DONE,
};

struct sf_control {
	uint32_t magic;
	uint16_t version;       /* SF_STREAM_VERSION */
	uint16_t kind;          /* enum sf_control_kind */
	uint32_t size;          /* of text, without its zero */
	int32_t  pid;           /* the sender's */
	char     text[SF_CONTROL_TEXT];  /* zero-terminated once received */
};

bool sf_control_send(int channel, enum sf_control_kind kind, const char *text, int fd,
		     struct sf_error *err);

/* 1: a message, checked; 0: the other end has closed; -1: an error. fd_ret as in os/channel.h. */
int sf_control_receive(int channel, struct sf_control *ret, int *fd_ret, int timeout_ms,
		       struct sf_error *err);

#endif
