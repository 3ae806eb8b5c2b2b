"""Lines of a range of bytes: those that begin in it.

So each line belongs to exactly one of any ranges of a file.
"""

import struct
from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

CHUNK: Final = 2 * 1024 * 1024
"""Bytes that are parsed at once: what fits into the caches of a processor."""

MAX_LINE: Final = 512 * 1024 * 1024
"""Bytes of the longest line."""

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
"""Some programs begin files with it."""

LOOK: Final = 64 * 1024
"""Bytes in which the end of a line is looked for."""


class LineTooLongError(Exception):
    """A line is longer than `MAX_LINE`."""


def chunks(
    file: pa.NativeFile, start: int, end: int, size: int, *, chunk: int = CHUNK
) -> Iterator[bytes]:
    """Return the lines that begin in a range, in batches; only the last may lack its line end.

    Args:
        file: open for reading.
        start: first byte of the range.
        end: first byte behind it.
        size: of the file.
        chunk: see `CHUNK`.

    Raises:
        LineTooLongError: see the class.
    """
    at = first_line(file, start, size)
    stop = first_line(file, end, size)
    wanted = chunk
    while at < stop:
        data = file.read_at(min(wanted, stop - at), at)
        if not data:
            return  # the file was cut; its state is checked by the caller
        cut = len(data) if at + len(data) >= stop else data.rfind(b"\n") + 1
        if cut == 0:
            if len(data) < wanted and not file.read_at(1, at + len(data)):
                return  # cut as well, within a line
            wanted = _longer(wanted)
            continue
        wanted = chunk
        yield data[:cut]
        at += cut


def streamed(file: pa.NativeFile, *, chunk: int = CHUNK) -> Iterator[bytes]:
    """Return all lines of a stream, as `chunks` does.

    Raises:
        LineTooLongError: see the class.
    """
    rest = b""
    while data := file.read(chunk):
        data = rest + data
        cut = data.rfind(b"\n") + 1
        rest = data[cut:]
        if len(rest) > MAX_LINE:
            raise LineTooLongError(f"a line is longer than {MAX_LINE} bytes")
        if cut:
            yield data[:cut]
    if rest:
        yield rest


def first_line(file: pa.NativeFile, offset: int, size: int) -> int:
    """Return where the first line begins at or after an offset."""
    if offset <= 0:
        return 0
    if offset >= size:
        return size
    # From the byte before: an offset right behind a line end begins a line.
    at = offset - 1
    while at < size:
        data = file.read_at(min(LOOK, size - at), at)
        if not data:
            break
        if (found := data.find(b"\n")) >= 0:
            return at + int(found) + 1
        at += len(data)
    return size


def behind_header(lines: bytes) -> tuple[bytes, bool]:
    """Return what is behind the first line that is not blank, and whether that is still to come."""
    at = 0
    while at < len(lines):
        end = lines.find(b"\n", at) + 1 or len(lines)
        if lines[at:end].strip():
            return lines[end:], False
        at = end
    return b"", True


def header_of(lines: bytes) -> bytes:
    """Return the first line that is not blank; empty if it is long or not there as a whole."""
    lines = lines[:LOOK]
    found = next((line for line in lines.split(b"\n") if line.strip()), b"")
    return found if lines.find(b"\n", lines.find(found)) >= 0 else b""


def texts(lines: bytes) -> pa.Array:
    """Return the lines as an Arrow column of text, without their ends."""
    # The offsets leave out the last line end: a slice would copy all lines.
    offsets = pa.py_buffer(struct.pack("<ii", 0, len(lines) - lines.endswith(b"\n")))
    whole = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(lines)])
    found = pc.split_pattern(whole, pattern="\n").flatten()
    if b"\r" not in lines:
        return found
    return pc.replace_substring_regex(found, pattern="\r$", replacement="")


def _longer(wanted: int) -> int:
    if wanted >= MAX_LINE:
        raise LineTooLongError(f"a line is longer than {MAX_LINE} bytes")
    return min(2 * wanted, MAX_LINE)
