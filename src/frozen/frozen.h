/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of frozen code, as far as the compiler can enforce them. Every .c file in src/frozen
 * includes this header after its system headers.
 *
 * Frozen code may run while a thread of the target is held, or inside the target's signal
 * handler. That thread may own any lock of its program, malloc's and the loader's included.
 * So these rules hold for code in this folder:
 *
 * - It allocates nothing and takes no lock. Buffers are made beforehand and do not grow.
 *
 * - From outside it calls memcpy, memset and raw system calls only. There are two exceptions: the
 *   clock and CPU functions of the vDSO (raw.h), and a runtime's own stack function, through a
 *   pointer (own_walk in signal/state.h).
 *
 * - It reads the target's memory through a reader (reader.h), and every read may fail. In its own
 *   process it may load directly from memory that a runtime never unmaps (`loads` in runtime.h).
 *
 * - It searches immutable tables (table.h, code_map.h), or in caches whose entries are
 *   revalidated.
 *
 * - It is bounded in time: every loop has a limit that the target cannot change.
 *
 * - It fails with a value of a small enum (ends.h), never with a message.
 *
 * The folder builds into a library of its own; tests/frozen compares the symbols that it
 * needs from outside with an allow-list, and the names below do not compile here.
 */
#ifndef SF_FROZEN_FROZEN_H
#define SF_FROZEN_FROZEN_H

#pragma GCC poison malloc calloc realloc free strdup asprintf
#pragma GCC poison printf fprintf snprintf sprintf vsnprintf puts
#pragma GCC poison pthread_mutex_lock pthread_mutex_unlock pthread_once pthread_setspecific
#pragma GCC poison dl_iterate_phdr dlsym dlopen localtime gmtime fopen opendir

#endif
