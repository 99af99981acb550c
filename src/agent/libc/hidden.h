/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the shared library has in the place of libc's: for its own calls, and not for the program's. */
#ifndef SF_AGENT_LIBC_HIDDEN_H
#define SF_AGENT_LIBC_HIDDEN_H

#define SF_HIDDEN __attribute__((visibility("hidden")))

#endif
