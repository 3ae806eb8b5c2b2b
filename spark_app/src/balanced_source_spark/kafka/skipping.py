"""``onDataLoss: Continue`` in a task: ranges without what does not exist any more.

What a micro-batch reads is in the offset log and cannot change, so a range whose beginning was deleted in between
would fail at every replay. Hence tasks look at what there is before they read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import OnDataLoss
from balanced_source.host import SplitRange
from balanced_source_adapters.mounted_secrets import MountedSecrets

if TYPE_CHECKING:
    from balanced_source_adapters.kafka_admin import KafkaAdmin


def policy_of(settings: Mapping[str, Any]) -> OnDataLoss:
    """Returns what the user wants where records are gone; FAIL unless the settings say otherwise."""
    return OnDataLoss(settings.get("kafka", {}).get("onDataLoss", OnDataLoss.FAIL.value))


def existing(ranges: Sequence[SplitRange], begins: Mapping[SplitId, int]) -> list[SplitRange]:
    """The ranges without what lies before the first offset, or is in partitions that do not exist any more."""
    kept = [replace(r, start=max(int(r.start or 0), begins[r.split_id])) for r in ranges if r.split_id in begins]
    return [r for r in kept if int(r.start or 0) < int(r.end or 0)]


@cache
def task_admin(secrets_dir: Path | None, client_id: str) -> "KafkaAdmin":
    """For the tasks of a worker process; workers are reused. Few sources need one, so it is loaded here."""
    from balanced_source_adapters.kafka_admin import KafkaAdmin

    return KafkaAdmin(MountedSecrets(secrets_dir), client_id=client_id)
