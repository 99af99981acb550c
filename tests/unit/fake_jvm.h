/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Java virtual machine in a megabyte of memory, made by hand: tables as libjvm exports them, a code cache,
 * an interpreter, methods, a thread. Where its fields are was recorded from real ones (fake_layout.h); no JVM is needed.
 */
#ifndef FAKE_JVM_H
#define FAKE_JVM_H

#include "fake_layout.h"
#include "frozen/unwind/walk.h"
#include "runtime/hotspot/attach.h"

#define FAKE_BASE 0x100000u
#define FAKE_SIZE 0x100000u
#define FAKE_CODE (FAKE_BASE + 0x80000u)     /* the code heap; segments of 128 bytes */
#define FAKE_CODE_SIZE 0x40000u
#define FAKE_STACK (FAKE_BASE + 0xc0000u)
#define FAKE_STACK_SIZE 0x10000u

struct fake_jvm {
	uint8_t bytes[FAKE_SIZE];
	uint64_t used;               /* addresses below are given out */
	uint64_t next_code, segmap;
	uint64_t interpreter;        /* a return address in it */
	uint64_t entry, entry_frame; /* its entry of methods, and "push rbp" there */
	uint64_t call_stub_return;
	uint64_t thread_run;         /* the Method java.lang.Thread.run(), without fields of its own */
	uint64_t thread;             /* a JavaThread with tid 77, named "a thread with a long name" */
	unsigned version;            /* of the JDK whose layout it has, 0: 17; set before fake_jvm_make */
	struct fake_layout layout;
	const char *left_out;        /* field that the tables do not have, or NULL; set before fake_jvm_make */
	struct sf_hotspot_exports exports;
	struct sf_hotspot hotspot;
	struct sf_reader memory;
	_Alignas(8) uint8_t map_bytes[sizeof(struct sf_code_map) + 4 * sizeof(struct sf_region)];
	struct sf_still still;
	struct sf_trace trace;
	struct sf_frame frames[64];
};

/* Builds all of it, and hotspot by sf_hotspot_attach, whose answer is given back. */
bool fake_jvm_make(struct fake_jvm *jvm, char note_ret[SF_HOTSPOT_NOTE], struct sf_error *err);

/* A libjvm with nothing but the symbols of its tables, in a file without a name; the caller closes it. */
int fake_library(const struct fake_jvm *jvm);

uint64_t fake_alloc(struct fake_jvm *jvm, size_t size);
void fake_put(struct fake_jvm *jvm, uint64_t address, uint64_t value, unsigned width);
void fake_bytes(struct fake_jvm *jvm, uint64_t address, const void *bytes, size_t size);
uint64_t fake_string(struct fake_jvm *jvm, const char *text);

/*
 * A Method with `code_size` bytecodes and a line for each of its first bytecodes: 100, 101, 102,
 * ...
 */
uint64_t fake_method(struct fake_jvm *jvm, const char *class_name, const char *name,
		     const char *signature, const char *source, unsigned code_size);
uint64_t fake_bytecode(struct fake_jvm *jvm, uint64_t method, unsigned bci);

/* What cmocka calls around a test: *state is a machine as fake_jvm_make makes it. */
int fake_jvm_set_up(void **state);
int fake_jvm_tear_down(void **state);

/* A piece of code of `size` bytes, filled with int3; returns where the code starts. */
struct fake_code {
	const char *name;
	unsigned size;
	int frame_size, frame_complete;
	uint64_t method;
	unsigned entry, compile_id, level;
	unsigned loop_entry; /* where the interpreter goes on in it; 0: nowhere */
	/* debug information: at `pc` the inlined method, called by `method` at bytecode 3 */
	unsigned pc, inlined_bci;
	uint64_t inlined;
	unsigned n_before, n_after; /* records of nothing, at each address next to that one */
	unsigned n_between;  /* so many of all records are of no safepoint, and have no oop map */
};
uint64_t fake_code(struct fake_jvm *jvm, const struct fake_code *code);

/* A method's code that can be deoptimized: where its handler is in it, and from sp, what a frame keeps of its return address. */
void fake_mark(struct fake_jvm *jvm, uint64_t code, unsigned handler, unsigned kept);

#endif
