import socket

import pytest

from testbed.errors import DeadlineError
from testbed.ports import LOOPBACK, PortPool, is_free
from testbed.waiting import wait_until


def test_waiting_returns_the_first_truthy_answer() -> None:
    answers = iter([0, None, "yes"])
    assert wait_until(lambda: next(answers), 5, "an answer", interval=0) == "yes"


def test_the_deadline_error_names_the_condition_and_the_last_answer() -> None:
    with pytest.raises(DeadlineError, match=r"the moon; last: \[\]"):
        wait_until(list, 0, "the moon")


def test_only_ignored_exceptions_count_as_not_yet() -> None:
    def fail() -> bool:
        raise KeyError("k")

    with pytest.raises(KeyError):
        wait_until(fail, 1, "nothing")
    with pytest.raises(DeadlineError, match="KeyError"):
        wait_until(fail, 0, "nothing", ignoring=(KeyError,))


def test_two_pools_never_hand_out_the_same_port() -> None:
    pools = [PortPool(), PortPool()]
    try:
        ports = [pool.take() for pool in pools for _ in range(300)]
        assert len(set(ports)) == len(ports)
    finally:
        for pool in pools:
            pool.close()


def test_a_port_in_use_is_not_free() -> None:
    with socket.create_server((LOOPBACK, 0)) as server:
        assert not is_free(server.getsockname()[1])
