# SPDX-License-Identifier: Apache-2.0
"""What a .NET runtime says of its profilers: its event ProfilerMessage, of a session of EventPipe by the diagnostics socket. The protocol: dotnet/diagnostics,
ipc-protocol.md; the event and its keyword: CoreCLR, vm/ClrEtwAll.man."""
import glob
import os
import socket
import struct
import threading

PROFILER_KEYWORD, INFORMATIONAL = 0x20000000000, 4
COLLECT = (2, 2)               # a set of commands, and CollectTracing in it
NETTRACE, MEGABYTES = 1, 16
OK = (0xff, 0)


def text(value):
    return struct.pack("<I", len(value) + 1) + (value + "\0").encode("utf-16-le")


class RuntimeLog:
    """Collects while it is open: `with RuntimeLog(folder, pid) as log`. The folder is the program's TMPDIR."""

    def __init__(self, folder, pid):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(glob.glob(os.path.join(str(folder), "dotnet-diagnostic-%d-*-socket" % pid))[0])
        self.bytes = b""

    def __enter__(self):
        provider = struct.pack("<QI", PROFILER_KEYWORD, INFORMATIONAL) + text("Microsoft-Windows-DotNETRuntime") + text("")
        payload = struct.pack("<III", MEGABYTES, NETTRACE, 1) + provider
        self.socket.sendall(b"DOTNET_IPC_V1\0" + struct.pack("<HBBH", 20 + len(payload), *COLLECT, 0) + payload)
        reply = self.socket.recv(28, socket.MSG_WAITALL)
        assert tuple(reply[16:18]) == OK, reply
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        return self

    def read(self):
        while got := self.socket.recv(65536):
            self.bytes += got

    def count(self, words):
        """How many messages have these words in them."""
        return self.bytes.count(words.encode("utf-16-le"))

    def __exit__(self, *unused):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.reader.join()
        self.socket.close()
