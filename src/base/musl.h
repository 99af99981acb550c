/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that are linked with the C library musl. */
#ifndef SF_BASE_MUSL_H
#define SF_BASE_MUSL_H

/* How the file name of musl's loader begins: ld-musl-MACHINE.so.1 (musl: Makefile, LDSO_PATHNAME). */
#define SF_MUSL_LOADER "ld-musl-"

#endif
