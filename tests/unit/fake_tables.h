/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables by which a Java virtual machine tells where its fields are, as libjvm exports them:
 * here of a made one, from its layout.
 */
#ifndef FAKE_TABLES_H
#define FAKE_TABLES_H

#include "fake_jvm.h"

/* Writes them, gives static fields their places, and sets jvm->exports; the layout is read. */
void fake_tables_make(struct fake_jvm *jvm);

#endif
