/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The word of src/frozen/signal/slot.h, as a model for spin: samplers that ask, take, walk and release; threads
 * that answer, claim, fill in, stand, give up and leave. model/run checks it, and that each mutation
 * below breaks it; docs/model.md says what is in it and what is not.
 *
 * Sizes: SLOTS, THREADS, SAMPLERS, GENERATIONS (they wrap). MAY_DIE: a sampler may end anywhere but between the
 * first walk of a round and the last wake. UNASKED: threads come by themselves only. A read of a word
 * followed by a compare-and-swap from the value read is one step here: only whether it succeeds matters.
 * Names with a `g_` are the judge's, not the protocol's.
 *
 * To add a mutation: an #ifdef here and a line in the list in model/run.
 */
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef THREADS
#define THREADS 2
#endif
#ifndef SAMPLERS
#define SAMPLERS 1
#endif
#ifndef GENERATIONS
#define GENERATIONS 3
#endif

#define FREE 0
#define REQUESTED 1
#define ENTERING 2
#define HELD 3
#define WALKING 4

/* The words. A pair is only ever read or written within one step. */
byte state[SLOTS], generation[SLOTS];

/* Signals sent and not yet delivered, a bit for each slot and generation: in any order, at any time, or never. */
byte pending[THREADS];

/* The slot on whose word a thread sleeps in the kernel, plus one. */
byte sleeps[THREADS];

bool dead[THREADS];
byte g_target[SLOTS];      /* the thread that the request is for */
byte g_filled_by[SLOTS];
byte g_writers[SLOTS];     /* threads that have the fields in their hands */
byte g_stands[THREADS];    /* the slot in which a thread waits, plus one: it does not run */
byte g_held[THREADS];      /* the generation of that */
byte g_asked[SAMPLERS * SLOTS]; /* the generation that a sampler may still cancel, plus one */

#define NEXT(s) ((generation[s] + 1) % GENERATIONS)
#define BIT(s, n) ((s) * GENERATIONS + (n))
#define IS(s, what, n) (state[s] == (what) && generation[s] == (n))

/*
 * That the generations wrap does no harm as long as nobody remembers a slot for all of them. Here nobody
 * does (a signal that is as late as that is one that never came); with WRAP somebody may.
 */
#ifdef WRAP
#define STALE_HERE(t, s, n) false
#define ASKED_HERE(k, s, n) false
#define DROP(t, s) skip
#else
#define STALE_HERE(t, s, n) (g_stands[t] == (s) + 1 && g_held[t] == (n))
#define ASKED_HERE(k, s, n) (g_asked[(k) * SLOTS + (s)] == (n) + 1)
#define DROP(t, s) pending[t] = pending[t] & ~(1 << BIT(s, NEXT(s)))
#endif

#if THREADS > 2
#define STALE_THREAD(s, n) (STALE_HERE(0, s, n) || STALE_HERE(1, s, n) || STALE_HERE(2, s, n))
#define DROP_STALE(s) DROP(0, s); DROP(1, s); DROP(2, s)
#else
#define STALE_THREAD(s, n) (STALE_HERE(0, s, n) || STALE_HERE(1, s, n))
#define DROP_STALE(s) DROP(0, s); DROP(1, s)
#endif
#if SAMPLERS > 1
#define STALE_SAMPLER(s, n) (ASKED_HERE(0, s, n) || ASKED_HERE(1, s, n))
#else
#define STALE_SAMPLER(s, n) ASKED_HERE(0, s, n)
#endif
#define CAN_START(s) (!STALE_THREAD(s, NEXT(s)) && !STALE_SAMPLER(s, NEXT(s)))

/* The next generation of a slot begins. */
inline begin(s, what)
{
	DROP_STALE(s);
	generation[s] = NEXT(s);
	state[s] = what;
}

inline wake(s)
{
#ifdef WAKE_NOBODY
	skip
#else
#ifdef WAKE_ONE
	/* As the kernel may: not the one that has slept the longest, but a more important one. */
	atomic {
		if
		:: sleeps[0] == s + 1 -> sleeps[0] = 0
		:: sleeps[1] == s + 1 -> sleeps[1] = 0
		:: else
		fi
	}
#else
	d_step {
		w = 0;
		do
		:: w < THREADS ->
			if
			:: sleeps[w] == s + 1 -> sleeps[w] = 0
			:: else
			fi;
			w++
		:: else -> break
		od;
		w = 0
	}
#endif
#endif
}

proctype thread(byte me)
{
	byte s, mine, which;

program:
	atomic { s = 0; mine = 0; which = 0 };
end_program:
	if
	:: goto program                      /* runs on; its signals wait, for ever if it is deaf */
	:: atomic { /* a delivery, and the answer: to come late is to answer late */
			pending[me];
			do
			:: pending[me] >> which & 1 -> break
			:: pending[me] >> (which + 1) -> which++
			od;
			pending[me] = pending[me] & ~(1 << which);
			s = which / GENERATIONS;
			mine = which % GENERATIONS;
			which = 0;
#ifdef NO_ENTERING
			goto fill;
#endif
			if
#ifdef DROP_GENERATION
			:: state[s] == REQUESTED -> mine = generation[s];
#else
			:: IS(s, REQUESTED, mine) ->
#endif
				state[s] = ENTERING;
				assert(g_target[s] == me);
				g_target[s] = 0
#ifdef REUSE_WITHOUT_CHECK
			:: else -> generation[s] = mine; state[s] = ENTERING
#else
			:: else -> goto program
#endif
			fi
	   };
	   goto fill
	:: s = 0; goto claim                 /* its own clock rang */
	:: s = 1; goto claim
	:: atomic { dead[me] = true; pending[me] = 0; goto end }
	fi;

claim:
	if
	:: s >= SLOTS -> goto program
	:: else
	fi;
#ifdef CLAIM_WITHOUT_CAS
	if
	:: state[s] == FREE && CAN_START(s)
	:: else -> goto program
	fi;
	atomic { begin(s, ENTERING); mine = generation[s] };
#else
	atomic {
		if
		:: state[s] == FREE && CAN_START(s) ->
			begin(s, ENTERING);
			mine = generation[s]
		:: else -> goto program
		fi
	};
#endif

fill:
	atomic { g_writers[s]++; assert(g_writers[s] == 1) };
	if
	:: skip
#ifndef NO_ENTERING
	:: /* It has walked itself, or has nothing to say. */
		d_step { g_writers[s]--; assert(IS(s, ENTERING, mine)); state[s] = FREE };
		goto program
#endif
	fi;
	atomic {
		g_writers[s]--;
#ifdef NO_ENTERING
		if
		:: IS(s, REQUESTED, mine) || IS(s, ENTERING, mine)
		:: else -> goto program
		fi;
#else
		assert(IS(s, ENTERING, mine));
#endif
		state[s] = HELD;
		g_filled_by[s] = me;
		g_stands[me] = s + 1;
		g_held[me] = mine
	};

wait: /* wait_for_sampler: asleep in the kernel if the word is as it was seen; not for ever */
	atomic {
		if
		:: IS(s, HELD, mine) -> sleeps[me] = s + 1
		:: else -> goto wait_for_walk
		fi
	};
	if
	:: sleeps[me] == 0 -> goto wait
#ifndef NO_GIVE_UP
	:: sleeps[me] != 0 -> sleeps[me] = 0
#endif
	fi;
	atomic {
		if
#ifdef LEAVE_WITHOUT_CAS
		:: true -> generation[s] = mine; state[s] = FREE; goto leave
#else
		:: IS(s, HELD, mine) -> state[s] = FREE; g_filled_by[s] = 0; goto leave
		:: else
#endif
		fi
	};

wait_for_walk: /* the walk is bounded, so this wait needs no time-out */
	atomic {
		if
		:: IS(s, WALKING, mine) -> sleeps[me] = s + 1
		:: else -> goto leave
		fi
	};
	sleeps[me] == 0;
	goto wait_for_walk;

leave:
	atomic { g_stands[me] = 0; g_held[me] = 0 };
	goto program;
end:
	skip
}

/* What a walk relies on, when it begins and when it ends: who filled the slot in stands in it, and nobody writes. */
inline walk(s)
{
	assert(g_writers[s] == 0 && g_stands[g_filled_by[s]] == s + 1);
	assert(g_writers[s] == 0 && g_stands[g_filled_by[s]] == s + 1)
}

/* Who stands may leave, if it does not sleep; else it is owed a wake. */
inline let_go(s)
{
	d_step {
		state[s] = FREE;
		g_filled_by[s] = 0;
#ifdef OWES_ONE
		owed = 1 << s
#else
		owed = owed | (1 << s)
#endif
	}
}

/* All who were let go, when all who stand are walked. */
inline pay()
{
	s = 0;
	do
	:: s < SLOTS ->
		if
		:: owed >> s & 1 -> wake(s)
		:: else
		fi;
		s++
	:: else -> break
	od;
	owed = 0
}

inline request(s, t)
{
	atomic {
		if
		:: state[s] == FREE && CAN_START(s) ->
			begin(s, REQUESTED);
			asked[s] = generation[s] + 1;
			g_asked[me * SLOTS + s] = asked[s];
			g_target[s] = t
		:: else
		fi
	};
	if
	:: asked[s] ->
		d_step {
			if
			:: !dead[t] -> pending[t] = pending[t] | (1 << BIT(s, asked[s] - 1))
			:: else
			fi
		}
	:: else
	fi
}

inline cancel(s)
{
	atomic {
		if
#ifdef CANCEL_WITHOUT_CAS
		:: true ->
#else
		:: IS(s, REQUESTED, asked[s] - 1) ->
#endif
			state[s] = FREE;
			g_target[s] = 0
		:: else
		fi;
		asked[s] = 0;
		g_asked[me * SLOTS + s] = 0
	}
}

/* HELD -> WALKING, whoever asked for it. */
inline serve(s)
{
#ifdef TAKE_WITHOUT_CAS
	taken = (state[s] == HELD);
	if
	:: taken -> state[s] = WALKING
	:: else
	fi;
#else
	atomic {
		taken = (state[s] == HELD);
		if
		:: taken -> state[s] = WALKING
		:: else
		fi
	};
#endif
	if
	:: taken ->
		taken = false;
#ifdef DIES_WALKING
		if
		:: skip
		:: goto end
		fi;
#endif
#ifdef RELEASE_BEFORE_WALK
		let_go(s);
		walk(s)
#else
		walk(s);
		let_go(s)
#endif
	:: else
	fi
}

proctype sampler(byte me)
{
	byte asked[SLOTS]; /* the generation asked for, plus one */
	byte s, w, owed;
	bool taken;

round:
	s = 0;
	do
	:: s < SLOTS ->
		if
		:: skip
#ifndef UNASKED
		:: true -> request(s, 0)
		:: true -> request(s, 1)
#endif
#if THREADS > 2
		:: true -> request(s, 2)
#endif
#ifdef MAY_DIE
		:: goto end
#endif
		fi;
		s++
	:: else -> break
	od;
	s = 0;
	do
	:: s < SLOTS ->
		serve(s);
		if
		:: asked[s] -> cancel(s) /* as late as the sampler is slow */
		:: else
		fi;
		s++
	:: else -> break
	od;
	pay();
#ifdef MAY_DIE
	if
	:: skip
	:: goto end
	fi;
#endif
	goto round;
end:
	skip
}

init {
	byte i = 0;

	atomic {
		do
		:: i < THREADS -> run thread(i); i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < SAMPLERS -> run sampler(i); i++
		:: else -> break
		od
	}
}

/* A thread that stands leaves (even if the sampler is dead): they are all alike. */
ltl leaves { always eventually (g_stands[0] == 0) }

/* What is asked for is taken, or cancelled, and what is taken is given back. */
ltl freed { always eventually (state[0] == FREE) }
