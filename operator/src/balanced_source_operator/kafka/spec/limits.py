"""``limits``: how much one micro-batch reads."""

from typing import Annotated

from pydantic import ConfigDict, Field

from balanced_source_operator.contract.base import Duration, Model, rule, with_rules

_Count = Annotated[int, Field(ge=1, le=2**53)]


class Limits(Model):
    """Limits of a micro-batch.

    What they let in is shared fairly: a huge split never starves a small one.
    """

    model_config = ConfigDict(
        json_schema_extra=with_rules(
            rule(
                "!has(self.minOffsetsPerTrigger) || !has(self.maxOffsetsPerTrigger) "
                "|| self.minOffsetsPerTrigger <= self.maxOffsetsPerTrigger",
                "minOffsetsPerTrigger must not exceed maxOffsetsPerTrigger",
            )
        )
    )

    max_offsets_per_trigger: _Count | None = None
    """Maximum number of offsets that a micro-batch reads, over all splits. Every split with records
    gets at least one."""

    max_offsets_per_split: _Count | None = None
    """Maximum number of offsets that a micro-batch reads from one split."""

    max_bytes_per_trigger: _Count | None = None
    """Maximum number of bytes (keys, values and headers) that a micro-batch reads, estimated from
    earlier records."""

    min_offsets_per_trigger: _Count | None = None
    """Minimum number of available offsets before a micro-batch starts."""

    max_trigger_delay: Duration = "15m"
    """Time after which a micro-batch starts even if fewer than minOffsetsPerTrigger offsets are
    available."""
