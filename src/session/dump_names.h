/* SPDX-License-Identifier: Apache-2.0 */
/* Names for the traces of a dump. For dump.c only. */
#ifndef SF_SESSION_DUMP_NAMES_H
#define SF_SESSION_DUMP_NAMES_H

#include "session/dump.h"

/* Fills frames from trace in every thread. Each address is looked up once. */
bool sf_dump_name(struct sf_dump *dump, struct sf_error *err);

#endif
