# SPDX-License-Identifier: Apache-2.0
"""Runs inside gdb: prints every thread's frames of the attached process as one line of JSON.

Innermost first; inlined frames are frames of their own with the pc of the function they are in. Frames
that gdb makes up from call-site records (tail calls that left no trace on the stack) are marked.
"""
import json

import gdb

for setting in ("backtrace past-main on", "backtrace past-entry on", "backtrace limit unlimited"):
    gdb.execute("set " + setting)

TYPES = {gdb.INLINE_FRAME: "inline", gdb.TAILCALL_FRAME: "tail-call", gdb.SIGTRAMP_FRAME: "signal"}


def frames_of(thread):
    thread.switch()
    frames, frame, why = [], gdb.newest_frame(), "root"
    while frame is not None:
        frames.append({"pc": frame.pc(), "function": frame.name(),
                       "type": TYPES.get(frame.type(), "normal")})
        last = frame
        try:
            frame = frame.older()
        except gdb.error as error:
            why, frame = str(error), None
    if last.unwind_stop_reason() != gdb.FRAME_UNWIND_NO_REASON:
        why = gdb.frame_stop_reason_string(last.unwind_stop_reason())
    return {"tid": thread.ptid[1], "end": why, "frames": frames}


print("STACKS " + json.dumps([frames_of(thread) for thread in gdb.selected_inferior().threads()]))
