/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signal handler, and the sampler's turn, which walks the threads that wait in slots.
 *
 * A signal is ours if its siginfo names our timer (si_value has our cookie), our perf event (si_fd
 * is the thread's clock), or our sampler (cookie, slot, generation). All other signals go on to the
 * program's action (frozen/signal/chain.h). A thread that blocks our signal may take it long after its
 * clock was removed. So the cookie is chosen once in the life of a process.
 */
#ifndef SF_FROZEN_SIGNAL_HANDLER_H
#define SF_FROZEN_SIGNAL_HANDLER_H

#include <signal.h>

#include "frozen/signal/state.h"

/* The si_value of our signals: cookie, slot and generation. Signal-safe. */
uint64_t sf_handler_value(uint16_t cookie, uint32_t slot, uint32_t generation);

/*
 * Of a signal with an empty siginfo: the si_value of the last request that was sent to this thread. 0: there is none, or the
 * siginfo is not empty. The kernel sends a request's signal so (__send_signal_locked()) where the queue of signals is full, which
 * all processes of a user share (RLIMIT_SIGPENDING). Signal-safe.
 */
uint64_t sf_handler_lost_value(const siginfo_t *info, const struct sf_thread_entry *entry);

/*
 * The signal handler, for rt_sigaction with SA_SIGINFO and every signal blocked meanwhile. errno is
 * kept (nothing here sets it), the context too except for sf_context_mend. Signal-safe by nature.
 */
void sf_handler_enter(int signal, siginfo_t *info, void *ucontext);

/*
 * Walks the thread that is held in a slot, puts the sample into the outbox, and returns the end of
 * the walk. Where the map lacks code, the still is kept (kept_stills.h). Without room in the outbox
 * the sample becomes a loss. Without room for the loss, its weight goes to the thread's next sample.
 * The sampler calls this between sf_slot_take and sf_slot_release. For requested threads the CPU
 * weight is computed first (weight.h). Signal-safe.
 */
enum sf_end sf_handler_sample(struct sf_handler *handler, struct sf_workspace *workspace,
			      struct sf_slot *slot);

/*
 * The sampler's turn: walks the threads that are held in any slot, releases them, and returns their
 * number. Walked threads are woken in a batch: when no slot is HELD, or when SF_SERVED_AT_ONCE
 * threads have been walked and the pass over the slots is done. The limit is needed because threads
 * may arrive as fast as they are walked. A thread that arrives during the turn may be left to the
 * next one; it has posted the wake-up. Signal-safe.
 */
#define SF_SERVED_AT_ONCE 16
unsigned sf_handler_serve(struct sf_handler *handler, struct sf_workspace *workspace);

/*
 * Walks kept stills again, and puts their samples into the outbox: those that another map is there for, and those that
 * have waited long enough. Only the sampler calls this. Signal-safe.
 */
void sf_handler_walk_kept(struct sf_handler *handler, struct sf_workspace *workspace, uint64_t now_ns);
/* All of the thread with this serial, however their walks end; 0: all of all threads. Only the sampler. Signal-safe. */
void sf_handler_settle_kept(struct sf_handler *handler, struct sf_workspace *workspace, uint32_t serial);

/*
 * sf_workspace_walk of a thread with this entry (NULL: without one). Where the walk stops in native
 * code, it continues from the record that a runtime has of the thread. Signal-safe.
 */
enum sf_end sf_handler_walk(const struct sf_handler_code *code, struct sf_workspace *workspace,
			    struct sf_still *still, const struct sf_thread_entry *entry);

/* A walk met code that is not in the code map: the service thread is to renew the map. Signal-safe. */
void sf_handler_note_stale_map(struct sf_handler *handler);
/* The program has unloaded code: the service thread reads the maps again as soon as it may. */
void sf_handler_note_gone_code(struct sf_handler *handler);
/* The still of the thread in this slot, with the code map, which the slot pins until slot->map is set to NULL. Signal-safe. */
void sf_handler_fill_still(const struct sf_handler *handler, struct sf_slot *slot, struct sf_still *ret);

/*
 * Packs the frames of workspace->trace but for the first `skip`, and queues the managed ones to be described. Where the
 * walk met unknown code, the service thread is woken. Signal-safe.
 */
void sf_handler_pack(struct sf_handler *handler, struct sf_workspace *workspace, uint32_t skip);

/*
 * Puts workspace->trace into the outbox as this sample; fills in its number of frames and its end.
 * False: there was no room, and the caller still has to account for its weight. Signal-safe.
 */
bool sf_handler_put(struct sf_handler *handler, struct sf_workspace *workspace,
		    struct sf_stream_sample *sample);

/*
 * Records a loss in place of this sample. Without room for the loss its weight goes to the thread's next sample, if the
 * thread has its entry still (NULL: it has ended). Signal-safe.
 */
void sf_handler_lose(struct sf_handler_output *output, struct sf_thread_entry *entry, const struct sf_stream_sample *sample,
		     enum sf_loss cause);

#endif
