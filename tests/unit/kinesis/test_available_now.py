"""A query that ends by itself, started again after shards were split and read to their end."""

import time
from typing import Any

import pytest

from balanced_source.api import AsyncCall
from balanced_source.connectors.kinesis import KinesisSource
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import TransientDiscoveryError
from balanced_source_spark.channels.embedded import EmbeddedChannel
from balanced_source_spark.expected_splits import ExpectedSplits
from balanced_source_spark.host_runtime import HostRuntime
from support.shards import STREAM, StreamInMemory


class Service:
    """A stream whose first shard was split; may fail to answer for a while."""

    def __init__(self) -> None:
        self.stream = StreamInMemory()
        self.stream.split("shardId-000000000000")
        self.failures = 0

    def execute(self, call: AsyncCall) -> Any:
        if self.failures:
            self.failures -= 1
            raise TransientDiscoveryError("no answer", scope=STREAM)
        return self.stream.execute(call)


@pytest.mark.parametrize("failures", [0, 2], ids=["answers", "fails-twice"])
@pytest.mark.parametrize("known", [1, 2])
def test_shards_that_were_read_and_left_the_checkpoint_are_not_waited_for(
    known: int, failures: int
) -> None:
    """The service lists them for as long as it retains their records. New ones are waited for."""
    service = Service()
    children = [(STREAM, name) for name in service.stream.open()]
    read = children[:known]
    checkpoint = StreamOffset(
        epoch=5,
        parallelism=1,
        readers=(0,),
        owners=dict.fromkeys(read, 0),
        positions=dict.fromkeys(read, 0),
        attributes={shard: {"identity": service.stream.created} for shard in read},
    )
    runtime = HostRuntime(
        EmbeddedChannel(KinesisSource(streams=(STREAM,)), service.execute, parallelism=1)
    )
    try:
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
    finally:
        runtime.close()
