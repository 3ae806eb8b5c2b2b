"""``spec.application.hostLossPolicy``.

What happens to the splits of a host that is lost for long.
"""

import enum
from typing import Annotated, Final

from pydantic import AfterValidator, ConfigDict
from pydantic_core import PydanticCustomError

from balanced_source import durations
from balanced_source_operator.contract.base import Duration, Model, rule, with_rules

MIN_AFTER: Final = 60.0
MAX_AFTER: Final = 24 * 3600.0
"""Seconds.

A driver reports every 10 s, and stops planning when it could not report for half of this time.
"""

_AFTER: Final = "after must be between 1m and 24h"


def _is_long_enough(text: str) -> str:
    if not MIN_AFTER <= durations.seconds(text) <= MAX_AFTER:
        raise PydanticCustomError("loss_after", _AFTER)
    return text


class HostLoss(enum.StrEnum):
    """Who reads the splits of a lost host."""

    WAIT = "Wait"
    REASSIGN = "Reassign"


class Guarantee(enum.StrEnum):
    """How often a record of a reassigned split is delivered."""

    EXACTLY_ONCE = "ExactlyOnce"
    AT_LEAST_ONCE = "AtLeastOnce"


class HostLossPolicy(Model):
    """What happens to the splits of a host that has not reported for long.

    It has an effect with several hosts only.
    """

    model_config = ConfigDict(
        json_schema_extra=with_rules(
            rule(
                "duration(self.after) >= duration('1m') && duration(self.after) <= duration('24h')",
                _AFTER,
            )
        )
    )

    type: HostLoss = HostLoss.WAIT
    """Wait: its splits wait until its application runs again.

    Reassign: the other hosts read them after a drain attempt has settled what the lost host
    delivered. Drivers then stop reading when they could not report for half of `after`.
    """

    after: Annotated[Duration, AfterValidator(_is_long_enough)] = "2m"
    """Time without a report after which a host counts as lost, from 1m to 24h.

    Choose more than a restart of the application takes.
    """

    guarantee: Guarantee = Guarantee.EXACTLY_ONCE
    """For type Reassign.

    ExactlyOnce: the splits wait for the drain attempt. AtLeastOnce: the other hosts continue at
    once from the last reported positions; records that the lost host has read since are delivered
    twice.
    """

    @property
    def seconds(self) -> float:
        """Seconds without a report after which a host counts as lost."""
        return durations.seconds(self.after)

    @property
    def report_within(self) -> float | None:
        """Seconds after which a driver that could not report stops planning; None for never."""
        return self.seconds / 2 if self.type is HostLoss.REASSIGN else None
