"""A stream on the test bed's Kinesis server.

Numbered records of some partition keys, splits and merges.
"""

import itertools
import uuid
from collections import Counter
from collections.abc import Iterable
from typing import Any

import botocore.session
from botocore.config import Config

from testbed.kinesis import ENVIRONMENT
from testbed.waiting import wait_until

KEYS = tuple(f"key-{number}" for number in range(17))
_AT_ONCE = 500
_MIDDLE = 2


def kinesis_client(endpoint: str) -> Any:
    """A client of the server."""
    # without retries: a batch that is sent twice is there twice
    session = botocore.session.Session()
    session.set_credentials(ENVIRONMENT["AWS_ACCESS_KEY_ID"], ENVIRONMENT["AWS_SECRET_ACCESS_KEY"])
    return session.create_client(
        "kinesis",
        endpoint_url=endpoint,
        region_name=ENVIRONMENT["AWS_DEFAULT_REGION"],
        config=Config(read_timeout=240, retries={"total_max_attempts": 1}),
    )


class Stream:
    """A stream of its own.

    Args:
        client: of the server.
        shards: how many it has first.

    Attributes:
        name: of the stream.
        sent: records so far, which are numbered from 0; key `KEYS[number % 17]`.
    """

    def __init__(self, client: Any, shards: int = 1, name: str | None = None) -> None:
        self._client = client
        self.name = name or f"stream-{uuid.uuid4().hex[:8]}"
        self.sent = 0
        client.create_stream(StreamName=self.name, ShardCount=shards)
        self._settle()

    def put(self, count: int) -> None:
        """Send records, in their order."""
        numbers = iter(range(self.sent, self.sent + count))
        while batch := list(itertools.islice(numbers, _AT_ONCE)):
            records = [
                {"PartitionKey": KEYS[n % len(KEYS)], "Data": str(n).encode()} for n in batch
            ]
            assert (
                self._client.put_records(StreamName=self.name, Records=records)["FailedRecordCount"]
                == 0
            )
        self.sent += count

    def open_shards(self) -> list[str]:
        """Open shards, by their hash keys."""
        shards = self._client.list_shards(StreamName=self.name)["Shards"]
        found = [
            shard
            for shard in shards
            if not shard["SequenceNumberRange"].get("EndingSequenceNumber")
        ]
        return [
            s["ShardId"]
            for s in sorted(found, key=lambda s: int(s["HashKeyRange"]["StartingHashKey"]))
        ]

    def split(self, shard: str) -> None:
        """Split a shard in the middle."""
        (known,) = [
            s
            for s in self._client.list_shards(StreamName=self.name)["Shards"]
            if s["ShardId"] == shard
        ]
        begin, end = (
            int(known["HashKeyRange"][name]) for name in ("StartingHashKey", "EndingHashKey")
        )
        middle = str((begin + end) // _MIDDLE)
        self._client.split_shard(
            StreamName=self.name, ShardToSplit=shard, NewStartingHashKey=middle
        )
        self._settle()

    def merge(self, one: str, other: str) -> None:
        """Merge two neighbours."""
        self._client.merge_shards(
            StreamName=self.name, ShardToMerge=one, AdjacentShardToMerge=other
        )
        self._settle()

    def rescale(self, shards: int) -> None:
        """Change the number of shards at once."""
        self._client.update_shard_count(
            StreamName=self.name, TargetShardCount=shards, ScalingType="UNIFORM_SCALING"
        )
        self._settle()

    def delete(self) -> None:
        """Delete it."""
        self._client.delete_stream(StreamName=self.name)
        wait_until(
            lambda: self.name not in self._client.list_streams()["StreamNames"],
            60,
            "the stream to be gone",
        )

    def _settle(self) -> None:
        def is_active() -> bool:
            told = self._client.describe_stream_summary(StreamName=self.name)[
                "StreamDescriptionSummary"
            ]
            return bool(told["StreamStatus"] == "ACTIVE")

        wait_until(is_active, 60, "the stream to be active", interval=0.05)


def check(rows: Iterable[Any], sent: int) -> None:
    """Check that each record is there once, and those of a key in their order."""
    found = [(row["partitionKey"], int(bytes(row["data"]))) for row in rows]
    counts = Counter(number for _, number in found)
    assert sorted(counts) == list(range(sent)), "nothing is lost"
    assert max(counts.values(), default=1) == 1, "nothing is doubled"
    for key in KEYS:
        numbers = [number for known, number in found if known == key]
        assert numbers == sorted(numbers), f"records of {key} are out of order"
