/* SPDX-License-Identifier: Apache-2.0 */
/* The one object with the state of the signal handler. */
#include "frozen/signal/state.h"

struct sf_handler_state sf_handler;
