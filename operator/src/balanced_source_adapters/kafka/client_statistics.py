"""What librdkafka tells about its brokers, in the few numbers that people look at."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

INTERVAL_MS: Final = 10_000
"""Milliseconds between two statistics of a client."""

_MICROS: Final = 1e6
_MILLIS: Final = 1e3


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerStatistics:
    """Of one client.

    Attributes:
        connected: brokers with a connection that is up.
        rtt: seconds of the slowest broker's mean round trip; None while none is known.
        throttle: seconds that the most throttled broker held back its answers on average: a quota
            at work.
        requests: sent since the client began.
        timeouts: of those without an answer in time.
    """

    connected: int = 0
    rtt: float | None = None
    throttle: float = 0.0
    requests: int = 0
    timeouts: int = 0


def parse(text: str) -> BrokerStatistics:
    """Returns the numbers in the JSON of librdkafka's statistics callback.

    Zeros if it is of another form.
    """
    try:
        document: Mapping[str, Any] = json.loads(text)
        return _summed(list(document.get("brokers", {}).values()))
    except (ValueError, TypeError, AttributeError, ArithmeticError, RecursionError):
        return BrokerStatistics()


def _summed(brokers: list[Mapping[str, Any]]) -> BrokerStatistics:
    return BrokerStatistics(
        connected=sum(broker.get("state") == "UP" for broker in brokers),
        rtt=rtt / _MICROS if (rtt := _worst(brokers, "rtt")) else None,
        throttle=_worst(brokers, "throttle") / _MILLIS,
        requests=sum(broker.get("tx", 0) for broker in brokers),
        timeouts=sum(broker.get("req_timeouts", 0) for broker in brokers),
    )


def _worst(brokers: list[Mapping[str, Any]], window: str) -> float:
    return float(max((broker.get(window, {}).get("avg", 0) for broker in brokers), default=0))
