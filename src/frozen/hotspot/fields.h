/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of what the walker needs of a HotSpot virtual machine: fields, sizes of types, and constants, as the tables
 * have them that libjvm exports (HotSpot: runtime/vmStructs.cpp). src/runtime/hotspot/tables.c reads the tables by these
 * lists, and struct sf_hotspot (hotspot.h) has one element for each.
 */
#ifndef SF_FROZEN_HOTSPOT_FIELDS_H
#define SF_FROZEN_HOTSPOT_FIELDS_H

/*
 * X(NAME, types, fields, width): of several types or fields, the first that the tables have counts.
 * Width: bytes, negative for signed fields; the type in the table overrides it.
 * To add one: add a line. A field that the tables do not have gets width 0.
 */
#define SF_HOTSPOT_FIELDS(X)                                                                       \
	/* where code is */                                                                        \
	X(CODE_LOW, "CodeCache", "_low_bound", 8)                                                  \
	X(CODE_HIGH, "CodeCache", "_high_bound", 8)                                                \
	X(CODE_HEAPS, "CodeCache", "_heaps", 8)                                                    \
	X(CODE_HEAP, "CodeCache", "_heap", 8) /* JDK 8: there is one */                            \
	X(LIST_LEN, "GrowableArrayBase|GenericGrowableArray", "_len", -4)                          \
	X(LIST_DATA, "GrowableArray<int>", "_data", 8)                                             \
	X(HEAP_MEMORY, "CodeHeap", "_memory", 8)                                                   \
	X(HEAP_SEGMAP, "CodeHeap", "_segmap", 8)                                                   \
	X(HEAP_LOG2, "CodeHeap", "_log2_segment_size", -4)                                         \
	X(SPACE_LOW, "VirtualSpace", "_low_boundary", 8)                                           \
	X(SPACE_HIGH, "VirtualSpace", "_high_boundary", 8)                                         \
	X(SPACE_COMMITTED, "VirtualSpace", "_high", 8)                                             \
	X(BLOCK_USED, "HeapBlock::Header", "_used", 1)                                             \
	X(CALL_STUB, "StubRoutines", "_call_stub_return_address", 8)                               \
	X(INTERPRETER, "AbstractInterpreter", "_code", 8)                                          \
	X(QUEUE_BUFFER, "StubQueue", "_stub_buffer", 8)                                            \
	X(QUEUE_LIMIT, "StubQueue", "_buffer_limit", -4)                                           \
	X(QUEUE_END, "StubQueue", "_queue_end", -4)                                                \
	X(CODELET_TEXT, "InterpreterCodelet", "_description", 8)                                   \
	X(CODELET_SIZE, "InterpreterCodelet", "_size", -4)                                         \
	/* pieces of code: pointers up to JDK 22, offsets from 23 on (and in 8) */                 \
	X(BLOB_NAME, "CodeBlob", "_name", 8)                                                       \
	X(BLOB_SIZE, "CodeBlob", "_size", -4)                                                      \
	X(BLOB_CODE_BEGIN, "CodeBlob", "_code_begin", 8)                                           \
	X(BLOB_CODE_OFFSET, "CodeBlob", "_code_offset", -4)                                        \
	X(BLOB_CODE_END, "CodeBlob", "_code_end", 8)                                               \
	X(BLOB_DATA_OFFSET, "CodeBlob", "_data_offset", -4)                                        \
	X(BLOB_FRAME_SIZE, "CodeBlob", "_frame_size", -4)                                          \
	X(BLOB_FRAME_COMPLETE, "CodeBlob", "_frame_complete_offset", -4)                           \
	X(BLOB_MUTABLE, "CodeBlob", "_mutable_data", 8)                                            \
	X(BLOB_RELOCATION_SIZE, "CodeBlob", "_relocation_size", -4)                                \
	X(NM_METHOD, "nmethod|CompiledMethod", "_method", 8)                                       \
	X(NM_ENTRY, "nmethod", "_verified_entry_point", 8)                                         \
	X(NM_ENTRY_OFFSET, "nmethod", "_verified_entry_offset", 2)                                 \
	X(NM_LOOP_ENTRY, "nmethod", "_osr_entry_point", 8)                                         \
	X(NM_COMPILE_ID, "nmethod", "_compile_id", -4)                                             \
	X(NM_LEVEL, "nmethod", "_comp_level", 1)                                                   \
	X(NM_DEOPT, "CompiledMethod|nmethod", "_deopt_handler_begin", 8)                           \
	X(NM_DEOPT_MH, "CompiledMethod|nmethod", "_deopt_mh_handler_begin", 8)                     \
	X(NM_DEOPT_OFFSET, "nmethod",                                                              \
	  "_deopt_handler_offset|_deopt_handler_entry_offset|_deoptimize_offset", -4)              \
	X(NM_DEOPT_MH_OFFSET, "nmethod", "_deopt_mh_handler_offset|_deoptimize_mh_offset", -4)     \
	X(NM_ORIG_PC, "nmethod", "_orig_pc_offset", -4)                                            \
	/* what an address of compiled code belongs to */                                          \
	X(NM_METADATA, "nmethod", "_metadata_offset", -4)                                          \
	X(NM_IMMUTABLE, "nmethod", "_immutable_data", 8)                                           \
	X(NM_SCOPES_BEGIN, "CompiledMethod", "_scopes_data_begin", 8)                              \
	X(NM_SCOPES_DATA, "nmethod", "_scopes_data_offset", -4)                                    \
	X(NM_SCOPES_PCS, "nmethod", "_scopes_pcs_offset", -4)                                      \
	X(NM_DEPENDENCIES, "nmethod", "_dependencies_offset", -4)                                  \
	X(BLOB_OOP_MAPS, "CodeBlob", "_oop_maps", 8)                                               \
	X(OOP_MAPS_N, "ImmutableOopMapSet|OopMapSet", "_count|_om_count", -4)                      \
	X(PC_OFFSET, "PcDesc", "_pc_offset", -4)                                                   \
	X(PC_SCOPE, "PcDesc", "_scope_decode_offset", -4)                                          \
	/* methods, their names and lines */                                                       \
	X(METHOD_CONST, "Method", "_constMethod", 8)                                               \
	X(CONST_POOL, "ConstMethod", "_constants", 8)                                              \
	X(CONST_CODE_SIZE, "ConstMethod", "_code_size", 2)                                         \
	X(CONST_NAME, "ConstMethod", "_name_index", 2)                                             \
	X(CONST_SIGNATURE, "ConstMethod", "_signature_index", 2)                                   \
	X(CONST_FLAGS, "ConstMethod", "_flags._flags|_flags", 2)                                   \
	X(POOL_LENGTH, "ConstantPool", "_length", -4)                                              \
	X(POOL_HOLDER, "ConstantPool", "_pool_holder", 8)                                          \
	X(POOL_SOURCE, "ConstantPool", "_source_file_name_index", 2)                               \
	X(CLASS_SOURCE, "InstanceKlass", "_source_file_name_index", 2) /* up to JDK 14 */          \
	X(CLASS_NAME, "Klass", "_name", 8)                                                         \
	X(CLASS_SUPER, "Klass", "_super", 8)                                                       \
	X(CLASS_CONSTANTS, "InstanceKlass", "_constants", 8)                                       \
	X(CLASS_FIELDS, "InstanceKlass", "_fields", 8)                                             \
	X(CLASS_N_FIELDS, "InstanceKlass", "_java_fields_count", 2)                                \
	X(CLASS_FIELD_STREAM, "InstanceKlass", "_fieldinfo_stream", 8)                             \
	X(SYMBOL_LENGTH, "Symbol", "_length", 2)                                                   \
	X(SYMBOL_LENGTH_REFS, "Symbol", "_length_and_refcount", 4)                                 \
	X(SYMBOL_BODY, "Symbol", "_body", 1)                                                       \
	/* threads */                                                                              \
	X(THREADS, "ThreadsSMRSupport", "_java_thread_list", 8)                                    \
	X(THREADS_LENGTH, "ThreadsList", "_length", 4)                                             \
	X(THREADS_ITEMS, "ThreadsList", "_threads", 8)                                             \
	X(FIRST_THREAD, "Threads", "_thread_list", 8) /* up to JDK 9 */                            \
	X(NEXT_THREAD, "JavaThread", "_next", 8)                                                   \
	X(THREAD_OS, "JavaThread|Thread", "_osthread", 8)                                          \
	X(OS_ID, "OSThread", "_thread_id", -4)                                                     \
	X(THREAD_OBJECT, "JavaThread", "_threadObj", 8)                                            \
	X(THREAD_ANCHOR, "JavaThread", "_anchor", 8)                                               \
	X(ANCHOR_SP, "JavaFrameAnchor", "_last_Java_sp", 8)                                        \
	X(ANCHOR_PC, "JavaFrameAnchor", "_last_Java_pc", 8)                                        \
	X(ANCHOR_FP, "JavaFrameAnchor", "_last_Java_fp", 8)                                        \
	X(THREAD_VFRAMES, "JavaThread", "_vframe_array_head", 8)                                   \
	X(THREAD_LAST_VFRAMES, "JavaThread", "_vframe_array_last", 8)                              \
	X(VFRAMES_ORIGINAL, "vframeArray", "_original", 8)                                         \
	X(VFRAMES_CALLER, "vframeArray", "_caller", 8)                                             \
	X(VFRAMES_N, "vframeArray", "_frames", -4)                                                 \
	X(VFRAME_METHOD, "vframeArrayElement", "_method", 8)                                       \
	X(VFRAME_BCI, "vframeArrayElement", "_bci", -4)                                            \
	X(THREAD_CONTINUATION, "JavaThread", "_cont_entry", 8)                                     \
	X(CONTINUATION_RETURN, "ContinuationEntry", "_return_pc", 8)                               \
	/* objects, for the names of threads */                                                    \
	X(VERSION, "Abstract_VM_Version", "_vm_major_version", -4) /* in 8, HotSpot's own: 25 */   \
	X(OBJECT_CLASS, "oopDesc", "_metadata._klass", 8)                                          \
	X(OOP_BASE, "CompressedOops|Universe", "_base|_narrow_oop._base", 8)                       \
	X(OOP_SHIFT, "CompressedOops|Universe", "_shift|_narrow_oop._shift", -4)                   \
	X(CLASS_BASE, "CompressedKlassPointers|Universe", "_base|_narrow_klass._base", 8)          \
	X(CLASS_SHIFT, "CompressedKlassPointers|Universe", "_shift|_narrow_klass._shift", -4)      \
	X(FLAGS, "JVMFlag|Flag", "flags", 8)                                                       \
	X(N_FLAGS, "JVMFlag|Flag", "numFlags", 8)                                                  \
	X(FLAG_NAME, "JVMFlag|Flag", "_name", 8)                                                   \
	X(FLAG_ADDRESS, "JVMFlag|Flag", "_addr", 8)                                                \
	X(FLAG_ORIGIN, "JVMFlag|Flag", "_flags", 4) /* and other bits */                           \
	/* of the generational ZGC's references: how far they are shifted, which bits are stale */ \
	X(Z_GLOBALS, "ZGlobalsForVMStructs", "_instance_p", 8)                                     \
	X(Z_SHIFT, "ZGlobalsForVMStructs", "_ZPointerLoadShift", 8)                                \
	X(Z_BAD, "ZGlobalsForVMStructs", "_ZPointerLoadBadMask", 8)                                \
	/* to tell what it is, and to try out what was found */                                    \
	X(RELEASE, "Abstract_VM_Version", "_s_vm_release", 8)                                      \
	X(CLASS_METHODS, "InstanceKlass", "_methods", 8)                                           \
	X(THREAD_CLASS, "vmClasses|SystemDictionary",                                              \
	  "_klasses[static_cast<int>(vmClassID::Thread_klass_knum)]|"                              \
	  "_well_known_klasses[SystemDictionary::Thread_klass_knum]", 8)                           \
	/* who waits for whom */                                                                   \
	X(THREAD_PENDING, "JavaThread|Thread", "_current_pending_monitor", 8)                      \
	X(THREAD_OWNER_ID, "JavaThread", "_monitor_owner_id", 8) /* from JDK 24 on */              \
	X(THREAD_LOCKS, "JavaThread", "_lock_stack", 8) /* from 21 on */                           \
	X(THREAD_STACK, "JavaThread|Thread", "_stack_base", 8)                                     \
	X(THREAD_STACK_SIZE, "JavaThread|Thread", "_stack_size", 8)                                \
	X(MONITOR_OWNER, "ObjectMonitor", "_owner", 8)                                             \
	X(MONITOR_OBJECT, "ObjectMonitor", "_object", 8)                                           \
	X(MONITOR_LOCKER, "ObjectMonitor", "_stack_locker", 8) /* from 24 on */                    \
	X(LOCKS_TOP, "LockStack", "_top", 4)                                                       \
	X(LOCKS_BASE, "LockStack", "_base[0]", 8)                                                  \
	X(MIRROR_CLASS, "java_lang_Class", "_klass_offset", -4)

/* X(NAME, types): its size in bytes, 0 when it is missing. */
#define SF_HOTSPOT_SIZES(X)                                                                        \
	X(BLOCK, "HeapBlock")                                                                      \
	X(CODELET, "InterpreterCodelet")                                                           \
	X(CONST_METHOD, "ConstMethod")                                                             \
	X(POOL, "ConstantPool")                                                                    \
	X(PC_DESC, "PcDesc")                                                                       \
	X(VFRAMES, "vframeArray")                                                                  \
	X(VFRAME, "vframeArrayElement")                                                            \
	X(CONTINUATION, "ContinuationEntry")                                                       \
	X(FLAG, "JVMFlag|Flag")

/* X(NAME, constants, default when none is there) */
#define SF_HOTSPOT_NUMBERS(X)                                                                      \
	X(HAS_LINES,                                                                               \
	  "ConstMethodFlags::_misc_has_linenumber_table|ConstMethod::_has_linenumber_table", 1)    \
	X(HEADER_CLASS_SHIFT, "markWord::klass_shift", 0)

enum sf_hotspot_field_name {
#define X(name, types, fields, width) SF_HS_##name,
	SF_HOTSPOT_FIELDS(X)
#undef X
	SF_HS_N_FIELDS
};

enum sf_hotspot_size_name {
#define X(name, type) SF_HS_SIZE_##name,
	SF_HOTSPOT_SIZES(X)
#undef X
	SF_HS_N_SIZES
};

enum sf_hotspot_number_name {
#define X(name, constants, otherwise) SF_HS_NUMBER_##name,
	SF_HOTSPOT_NUMBERS(X)
#undef X
	SF_HS_N_NUMBERS
};

#endif
