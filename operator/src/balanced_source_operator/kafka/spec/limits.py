"""``limits``: how much one micro-batch reads."""

from typing import Annotated

from pydantic import ConfigDict, Field

from balanced_source_operator.contract.base import Duration, Model, rule, with_rules

_Count = Annotated[int, Field(ge=1, le=2**53)]


class Limits(Model):
    """Limits of a micro-batch. What they let in is shared fairly: a huge split never starves a small one."""

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
    """Offsets that a micro-batch reads at most, of all splits together. Every split with records gets at least one."""

    max_offsets_per_split: _Count | None = None
    """Offsets that a micro-batch reads of one split at most."""

    max_bytes_per_trigger: _Count | None = None
    """Bytes of keys, values and headers that a micro-batch reads at most; estimated from the records read before."""

    min_offsets_per_trigger: _Count | None = None
    """Offsets that must be there before a micro-batch begins."""

    max_trigger_delay: Duration = "15m"
    """Time after which a micro-batch begins although there are fewer than minOffsetsPerTrigger."""
