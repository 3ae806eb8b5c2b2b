"""An `OffsetLookup` over made-up logs.

`tests/integration/kafka/test_lookup.py` holds it to what a broker answers.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import Anchor


@dataclass(frozen=True, kw_only=True)
class Log:
    """A partition.

    Attributes:
        first: offset of its first record.
        times: timestamps of its records, in milliseconds.
        held: records behind these, of an open transaction.
    """

    first: int = 0
    times: Sequence[int] = ()
    held: int = 0


@dataclass
class FakeLookup:
    """See the module; `questions` counts what was asked."""

    logs: Mapping[SplitId, Log]
    commits: Mapping[str, Mapping[SplitId, int]] = field(default_factory=dict)
    questions: list[str] = field(default_factory=list)

    def ends(self, split_ids: Collection[SplitId], anchor: Anchor) -> dict[SplitId, int]:
        self.questions.append(anchor.value)
        is_first = anchor is Anchor.EARLIEST
        known = {s: self.logs[s] for s in split_ids if s in self.logs}
        return {
            s: log.first if is_first else log.first + len(log.times) for s, log in known.items()
        }

    def high_watermarks(self, split_ids: Collection[SplitId]) -> dict[SplitId, int]:
        self.questions.append("high watermarks")
        return {
            s: end + self.logs[s].held for s, end in self.ends(split_ids, Anchor.LATEST).items()
        }

    def at_times(self, millis: Mapping[SplitId, int]) -> dict[SplitId, int]:
        self.questions.append("times")
        found = {}
        for split_id, moment in millis.items():
            log = self.logs.get(split_id, Log())
            later = [number for number, time in enumerate(log.times) if time >= moment]
            if later:
                found[split_id] = log.first + later[0]
        return found

    def committed(self, group: str, split_ids: Collection[SplitId]) -> dict[SplitId, int]:
        self.questions.append(group)
        commits = self.commits.get(group, {})
        return {s: commits[s] for s in split_ids if s in commits}
