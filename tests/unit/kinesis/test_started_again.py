"""A query without an operator that is started again: its report comes after a first discovery."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from balanced_source.api import AsyncCall, SplitId
from balanced_source.connectors.kinesis import KinesisSource, OnShardLoss
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import FatalProblemError, TransientDiscoveryError
from balanced_source_adapters.kinesis.client import NotFoundError
from balanced_source_spark.channels.embedded import EmbeddedChannel
from balanced_source_spark.channels.errors import ChannelError
from balanced_source_spark.expected_splits import ExpectedSplits
from balanced_source_spark.host_runtime import HostRuntime
from support.shards import STREAM, StreamInMemory
from testbed.waiting import wait_until


class Service:
    """A stream whose first shard was split; may fail to answer for a while."""

    def __init__(self) -> None:
        self.stream = StreamInMemory()
        self.stream.split("shardId-000000000000")
        self.failures = 0
        self.is_deleted = False

    def execute(self, call: AsyncCall) -> Any:
        if self.is_deleted:
            raise NotFoundError("no such stream", scope=STREAM, is_hopeless=True)
        if self.failures:
            self.failures -= 1
            raise TransientDiscoveryError("no answer", scope=STREAM)
        return self.stream.execute(call)


def checkpoint_of(service: Service, shards: Sequence[SplitId]) -> StreamOffset:
    return StreamOffset(
        epoch=5,
        parallelism=1,
        readers=(0,),
        owners=dict.fromkeys(shards, 0),
        positions=dict.fromkeys(shards, 0),
        attributes={shard: {"identity": service.stream.created} for shard in shards},
    )


@contextmanager
def runtime_of(service: Service, **more: Any) -> Iterator[HostRuntime]:
    source = KinesisSource(streams=(STREAM,), **more)
    made = HostRuntime(EmbeddedChannel(source, service.execute, parallelism=1, confirm=0.1))
    try:
        yield made
    finally:
        made.close()


@pytest.mark.parametrize("failures", [0, 2], ids=["answers", "fails-twice"])
@pytest.mark.parametrize("known", [1, 2])
def test_shards_that_were_read_and_left_the_checkpoint_are_not_waited_for(
    known: int, failures: int
) -> None:
    """The service lists them for as long as it retains their records. New ones are waited for."""
    service = Service()
    children = [(STREAM, name) for name in service.stream.open()]
    checkpoint = checkpoint_of(service, children[:known])
    with runtime_of(service) as runtime:
        # As planning does: what there is, before Spark has said where the query continues.
        expected = ExpectedSplits(host="0", timeout=20.0)
        expected.expect(runtime.first_assignment(timeout=5.0))
        service.failures = failures
        runtime.committed(checkpoint)
        base = None
        while base is None:
            base = expected.base(runtime, checkpoint)
            time.sleep(0.01)
        assert base.positions.keys() == set(children)


@pytest.mark.parametrize("policy", list(OnShardLoss))
def test_a_stream_that_was_deleted_meanwhile_is_waited_for_with_consent(
    policy: OnShardLoss,
) -> None:
    service = Service()
    checkpoint = checkpoint_of(service, [(STREAM, name) for name in service.stream.open()])
    service.is_deleted = True
    with runtime_of(service, on_loss=policy) as runtime:
        wait_until(runtime._channel.problems, 5.0, "an answer without the stream")
        runtime.committed(checkpoint)
        ended: Exception | None = None
        until = time.monotonic() + (20.0 if policy is OnShardLoss.FAIL else 5.0)
        while ended is None and time.monotonic() < until:
            try:
                runtime.check_problems()
                runtime.wait_until_assigned(timeout=0.05)
            except (FatalProblemError, ChannelError) as error:
                ended = error

        if policy is OnShardLoss.FAIL:
            assert ended is not None
            return
        assert ended is None
        assert "no such stream" in str([p.message for p in runtime.problems])
        service.is_deleted = False
        service.stream.recreate(1)
        assert runtime.first_assignment(timeout=20.0).owners
