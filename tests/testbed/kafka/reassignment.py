"""Asks a broker to move replicas in Kafka's own protocol.

Kafka's tool is a JVM, which costs seconds of a core.
"""

import socket
import struct
from collections.abc import Mapping, Sequence
from typing import Final

from testbed.errors import TestbedError

_API: Final = 45
"""AlterPartitionReassignments, version 0 (KIP-455); a broker forwards it to the controller."""
_TIMEOUT: Final = 30.0


def ask(address: tuple[str, int], topic: str, replicas: Mapping[int, Sequence[int]]) -> None:
    """Ask for new replicas of partitions; returns before they are there.

    Args:
        address: of any broker.
        topic: name.
        replicas: partition → brokers, the preferred leader first.

    Raises:
        TestbedError: the broker refuses, or does not answer.
    """
    try:
        with socket.create_connection(address, timeout=_TIMEOUT) as connection:
            body = _request(topic, replicas)
            connection.sendall(struct.pack(">i", len(body)) + body)
            answer = _exactly(connection, struct.unpack(">i", _exactly(connection, 4))[0])
    except OSError as error:
        raise TestbedError(f"the broker at {address} does not answer: {error}") from error
    # correlation id, tagged fields, throttle time, error code, message, topics
    code = struct.unpack_from(">h", answer, 9)[0]
    if code:
        raise TestbedError(
            f"the broker at {address} refuses to move partitions of {topic}: error {code}"
        )


def _request(topic: str, replicas: Mapping[int, Sequence[int]]) -> bytes:
    head = struct.pack(">hhih", _API, 0, 1, -1) + b"\0"
    partitions = b"".join(
        struct.pack(">i", number)
        + _size(len(to))
        + b"".join(struct.pack(">i", node) for node in to)
        + b"\0"
        for number, to in sorted(replicas.items())
    )
    name = topic.encode()
    topics = _size(1) + _size(len(name)) + name + _size(len(replicas)) + partitions + b"\0"
    return head + struct.pack(">i", round(_TIMEOUT * 1000)) + topics + b"\0"


def _size(count: int) -> bytes:
    """A compact length: one more, as an unsigned varint."""
    value, found = count + 1, b""
    while value > 0x7F:
        found += bytes((value & 0x7F | 0x80,))
        value >>= 7
    return found + bytes((value,))


def _exactly(connection: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        part = connection.recv(count - len(found))
        if not part:
            raise ConnectionResetError("closed")
        found += part
    return found
