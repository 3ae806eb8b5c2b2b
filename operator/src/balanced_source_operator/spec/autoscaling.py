"""``spec.autoscaling``: the number of readers follows the load."""

from typing import Annotated

from pydantic import ConfigDict, Field

from balanced_source_operator.contract.base import Duration, Model, rule, with_rules


class Autoscaling(Model):
    """The operator sets parallelism by what the readers report.

    Do not let another autoscaler set it, too.
    """

    model_config = ConfigDict(
        json_schema_extra=with_rules(
            rule("self.minReaders <= self.maxReaders", "minReaders must be at most maxReaders"),
            rule("duration(self.maxLag) >= duration('1s')", "maxLag must be at least 1s"),
        )
    )

    min_readers: Annotated[int, Field(ge=1, le=1000)] = 1
    """Fewest readers."""

    max_readers: Annotated[int, Field(ge=1, le=1000)]
    """Most readers. More readers than splits have nothing to read, unless they share splits."""

    target_utilization: Annotated[int, Field(ge=10, le=95)] = 80
    """Percentage of its capacity that the busiest reader uses.

    The rest is for growth while new readers start.
    """

    max_lag: Duration = "60s"
    """Lag, in time, above which readers are added to catch up."""

    scale_down_delay: Duration = "5m"
    """How long fewer readers must suffice before the number is reduced. It is increased at once."""
