"""Relays that forward, stand still and reset."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from chaos.network import Mode, Network

pytestmark = pytest.mark.integration


@pytest.fixture
def server() -> Iterator[int]:
    """Sends back what it gets."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=echo, args=(connection,), daemon=True).start()

        def echo(connection: socket.socket) -> None:
            with connection, contextlib.suppress(OSError):
                while data := connection.recv(1000):
                    connection.sendall(data)

        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]


@pytest.fixture
def network() -> Iterator[Network]:
    made = Network()
    yield made
    made.close()


def test_a_relay_forwards_both_ways(server: int, network: Network) -> None:
    with socket.create_connection(("127.0.0.1", network.relay(server)), timeout=10) as client:
        client.sendall(b"hello")

        assert client.recv(100) == b"hello"


def test_a_black_hole_keeps_the_connection_and_forwards_later(
    server: int, network: Network
) -> None:
    port = network.relay(server)
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        network.set_mode(port, Mode.HOLE)
        client.sendall(b"hello")
        client.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.recv(100)
        network.set_mode(port, Mode.PASS)
        client.settimeout(10)

        assert client.recv(100) == b"hello"


def test_a_reset_ends_open_and_new_connections(server: int, network: Network) -> None:
    port = network.relay(server)
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        client.sendall(b"hello")
        assert client.recv(100) == b"hello"
        network.set_mode(port, Mode.RESET)

        with pytest.raises(ConnectionResetError):
            client.recv(100)
    with (
        pytest.raises(ConnectionResetError),
        socket.create_connection(("127.0.0.1", port), timeout=10) as client,
    ):
        client.recv(100)


def test_a_lost_packet_arrives_late_and_in_order(server: int, network: Network) -> None:
    port = network.relay(server)
    network.set_mode(port, Mode.LOSSY)
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        for number in range(20):
            client.sendall(bytes((number,)))
        received = b""
        while len(received) < 20:
            received += client.recv(100)

    assert received == bytes(range(20))
