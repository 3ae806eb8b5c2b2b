"""``python -m support.native_forgetting BOOTSTRAP TOPIC SIZE``.

Reads one record of a topic with so many bytes by the native reader, which fetches others ahead,
and forgets the topic. Prints how many bytes of the heap were in use before and after that.
"""

import ctypes
import sys

from balanced_source.connectors.kafka import KafkaCluster
from balanced_source.host import SplitRange
from balanced_source_adapters.heap import share_one_heap
from balanced_source_adapters.kafka.config import NoSecrets
from balanced_source_spark.kafka import native
from balanced_source_spark.kafka.settings import RangeReaderSettings, consumer_config
from testbed.waiting import wait_until

_NAMES = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"


class _Figures(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in _NAMES.split()]


def in_use() -> int:
    """Bytes that C code has allocated and not freed, in the heap that all threads share."""
    ask = ctypes.CDLL(None).mallinfo2
    ask.restype = _Figures
    figures = ask()
    return int(figures.uordblks + figures.hblkhd)


def main(bootstrap: str, topic: str, size: int) -> None:
    """See the module."""
    share_one_heap()
    cluster = KafkaCluster(name="c", bootstrap_servers=bootstrap)
    config = consumer_config(cluster, NoSecrets(), client_id="forgetting")
    settings = RangeReaderSettings(cluster="c", config=config)
    empty = in_use()
    list(native.read_ranges([SplitRange(split_id=("c", topic, 0), start=0, end=1)], settings))
    wait_until(lambda: in_use() - empty > size, 30, "the records that are fetched ahead")
    held = in_use() - empty
    for reader in native._pool.idle():
        reader.forget_idle(0.0)
    print(held, in_use() - empty)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
