"""How far committed records can be read."""

import contextlib
from collections.abc import Callable
from typing import Final

from testbed.errors import DeadlineError
from testbed.kafka.admin import KafkaAdmin
from testbed.waiting import wait_until

TRANSACTIONS: Final = 45.0
"""Seconds in which transactions of producers end that are alive."""


def stable_ends(
    admin: KafkaAdmin, name: str, topic: str, *, tell: Callable[[str], None]
) -> dict[int, int]:
    """Return how far committed records of each partition can be read.

    An unclean election may leave a transaction that no one ends (KIP-664): no reader of committed
    records gets past it.

    Args:
        admin: of the cluster.
        name: of the cluster.
        topic: name.
        tell: gets a line per partition with such a transaction.
    """
    stable: dict[int, int] = {}

    def are_closed() -> bool:
        stable.update(admin.stable_ends(topic))
        return not held()

    def held() -> dict[int, int]:
        ends = admin.offsets(topic)
        return {p: end for p, (_, end) in ends.items() if stable.get(p, -1) < end}

    with contextlib.suppress(DeadlineError):
        wait_until(are_closed, TRANSACTIONS, "transactions to end", interval=1)
        return stable
    for partition, end in held().items():
        tell(
            f"a transaction of {name}/{topic}/{partition} hangs at {stable[partition]}; the log"
            f" ends at {end}"
        )
    return stable
