/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of frozen code, made mechanical. Every .c file in src/frozen includes this
 * header after its system headers.
 *
 * Frozen code may run while a thread of the target is held, or inside the target's signal
 * handler. That thread may own any lock of its program, malloc's and the loader's included.
 * So code in this folder
 *
 * - allocates nothing and takes no lock: buffers are made beforehand and do not grow;
 * - calls memcpy, memset and raw system calls, and nothing else from outside;
 * - reads the target's memory only through a reader (reader.h), which may always fail;
 * - looks things up only in immutable tables (table.h, code_map.h);
 * - is bounded in time: every loop has a limit that the target cannot move;
 * - fails with a value of a small enum (ends.h), never with a message.
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
