"""Credentials that expire while a query runs."""

import pytest

from balanced_source_adapters.kinesis.client import ExpiredCredentialsError
from balanced_source_adapters.kinesis.reader import PATIENCE
from support.shards import STREAM
from unit.kinesis.test_reader import Scene


def expired(_: str) -> None:
    raise ExpiredCredentialsError("the session token has expired", scope=STREAM)


def read_on(scene: Scene) -> None:
    for _ in range(1000):
        scene.fetch()
        scene.task()


@pytest.mark.scenario("P11")
def test_credentials_that_are_renewed_in_time_do_not_end_the_query() -> None:
    """The files of a Secret follow it after a minute or two."""
    scene = Scene()
    scene.put(3)
    scene.fetch()
    scene.put(2)
    scene.stream.before = expired
    begun = scene.now
    while scene.now < begun + PATIENCE - 20:
        scene.fetch()
        scene.task()

    scene.stream.before = lambda _: None
    scene.fetch(3)
    assert scene.found == list(range(5))

    scene.now += PATIENCE
    scene.stream.before = expired
    scene.fetch()
    assert scene.found == list(range(5)), "patience begins anew"


def test_credentials_that_stay_expired_end_the_query() -> None:
    scene = Scene()
    scene.stream.before = expired
    begun = scene.now

    with pytest.raises(ExpiredCredentialsError, match="has expired"):
        read_on(scene)

    assert PATIENCE <= scene.now - begun < PATIENCE + 20
