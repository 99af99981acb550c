# SPDX-License-Identifier: Apache-2.0
"""ELF files that cost their reader as much as they can: a few megabytes on the disk, or none."""
import lzma
import os
import struct
import sys
import zlib

CODE = 0x1000
CODE_SIZE = 1 << 20
SHF_ALLOC, SHF_EXECINSTR, SHF_COMPRESSED = 2, 4, 0x800
PROGBITS, STRTAB = 1, 3


class Section:
    """`size`: as the header has it, where that is not the number of bytes; `at`: where they lie in the file, else behind the others."""

    def __init__(self, name, data, flags=0, address=0, size=None):
        self.name, self.data, self.flags, self.address = name, data, flags, address
        self.size = len(data) if size is None else size


def write(path, sections, length=None):
    """A library with one code segment of CODE_SIZE bytes; `length`: of the file, with holes."""
    sections = [*sections, Section(".shstrtab", b"")]
    names = b"\0" + b"".join(each.name.encode() + b"\0" for each in sections)
    sections[-1].data, sections[-1].size = names, len(names)
    header_size, place = 64 + 56, CODE + CODE_SIZE
    headers = b"\0" * 64
    with open(path, "wb") as file:
        file.truncate(place)
        for each in sections:
            file.seek(place)
            file.write(each.data)
            kind = STRTAB if each.name == ".shstrtab" else PROGBITS
            headers += struct.pack("<IIQQQQIIQQ", names.index(b"\0" + each.name.encode() + b"\0") + 1, kind, each.flags,
                                   each.address, place, each.size, 0, 0, 8, 0)
            place += max(len(each.data), each.size) + 15 & ~15
        file.seek(place)
        file.write(headers)
        file.truncate(max(length or 0, place + len(headers)))
        file.seek(0)
        file.write(b"\x7fELF\2\1\1" + b"\0" * 9)
        file.write(struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, place, 0, 64, 56, 1, 64, len(sections) + 1, len(sections)))
        file.write(struct.pack("<IIQQQQQQ", 1, 5, CODE, CODE, CODE, CODE_SIZE, CODE_SIZE, 0x1000))
        assert file.tell() == header_size
    return path


# Version 1, "zR" with udata4: addresses as they are.
CIE_EH = struct.pack("<II", 20, 0) + b"\1zR\0" + bytes([1, 0x78, 16, 1, 3, 0x0c, 7, 8, 0x90, 1, 0, 0])
CIE_DEBUG = struct.pack("<II", 20, 0xffffffff) + b"\1\0" + bytes([1, 0x78, 16, 0x0c, 7, 8, 0x90, 1]) + b"\0" * 6


def many_small(count):
    """.eh_frame: functions of one byte, one beside the other, all over the code."""
    size = len(CIE_EH)
    return CIE_EH + b"".join(
        struct.pack("<IIIII", 16, size + 20 * i + 4, CODE + i, 1, 0) for i in range(count))


def many_wide(count):
    """.debug_frame: functions that each claim all of the code."""
    return CIE_DEBUG + struct.pack("<IIQQ", 20, 0, CODE, CODE_SIZE) * count


def rows(count):
    """.eh_frame: one function with a row for each three bytes of its program; a multiple of eight."""
    program = b"".join(bytes([0x41, 0x0e, 8 + 8 * i]) for i in range(8)) * (count // 8)
    return CIE_EH + struct.pack("<IIIII", 16 + len(program), len(CIE_EH) + 4, CODE, CODE_SIZE, 0) + program


def deflated(size):
    """So many zeros, whole megabytes, as zlib has them (RFC 1950), with the header of a compressed section. Behind a full flush a
    megabyte's data do not depend on those before: they are made once."""
    pack = zlib.compressobj(9, wbits=-15)
    piece = pack.compress(b"\0" * (1 << 20)) + pack.flush(zlib.Z_FULL_FLUSH)
    adler32 = struct.pack(">HH", size % 65521, 1)
    return struct.pack("<IIQQ", 1, 0, size, 1) + b"\x78\xda" + piece * (size >> 20) + b"\x03\0" + adler32


def xz(size):
    pack = lzma.LZMACompressor(preset=0)
    piece = b"\0" * (1 << 20)
    return b"".join(pack.compress(piece) for _ in range(size >> 20)) + pack.flush()


def family(folder):
    """One file for each way to cost much."""
    big = 1 << 30
    ways = {
        "quadratic": dict(sections=[Section(".eh_frame", many_small(400000), SHF_ALLOC), Section(".debug_frame", many_wide(400000))]),
        "rows": dict(sections=[Section(".eh_frame", rows(6 << 20), SHF_ALLOC)]),
        "sparse": dict(sections=[Section(".eh_frame", CIE_EH, SHF_ALLOC, size=big - 1)]),
        "sparse2": dict(sections=[Section(".debug_frame", CIE_DEBUG, size=big - 1)]),
        "deflated": dict(sections=[Section(".debug_frame", deflated(big), SHF_COMPRESSED)]),
        "xz": dict(sections=[Section(".gnu_debugdata", xz(255 << 20))]),
        "names": dict(sections=[Section(".text", b"\x90")], length=1 << 40),
    }
    for name, how in ways.items():
        write(os.path.join(folder, name), **how)


ENDLESS = """
	.section .debug_abbrev, "", @progbits
	.byte 1, 0x11, 1, 0x11, 0x01, 0x12, 0x07, 0, 0   # a unit: low_pc, high_pc
	.byte 2, 0x2e, 0, 0x55, 0x17, 0, 0               # a function: ranges
	.byte 0
	.section .debug_info, "", @progbits
	.long .Lend - .Lstart
.Lstart:
	.short 4
	.long 0
	.byte 8
	.byte 1
	.quad wait_here
	.quad 4096
	.rept 100000
	.byte 2
	.long 0
	.endr
	.byte 0
.Lend:
	.section .debug_ranges, "", @progbits
	.fill 2000000, 8, 1
	.quad 0, 0
	.section .note.GNU-stack, "", @progbits
"""


if __name__ == "__main__":   # in a process of its own: what is made here needs memory
    family(sys.argv[1])
