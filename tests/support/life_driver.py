"""The driver of a random life."""

import random
from dataclasses import dataclass, field, replace
from typing import Any

from balanced_source.api import IDENTITY, STOP, SplitId
from balanced_source.documents import stream_offset
from balanced_source.host import Phase, plan
from support.ledger import Ledger
from support.world import Driver


@dataclass
class LifeDriver(Driver):
    """A driver that reads as far as chance wants, only its offset's topic, and only to the stop."""

    ledger: Ledger = field(default_factory=lambda: Ledger(starts_latest=False, forgets=False))
    rng: random.Random = field(default_factory=random.Random)
    checkpoint: int = 0
    is_running: bool = False

    def trigger(self, *, die: str | None = None, reads_all: bool = False) -> None:
        """One micro-batch, if there is anything to do."""
        start = self._latest()
        self.host, base = self.host.base()
        if base is None:
            return
        ends = {
            s: self._reached(s, int(p or 0), base.attributes.get(s, {}), reads_all)
            for s, p in base.positions.items()
        }
        end = replace(base, positions=ends)
        if end.epoch == start.epoch and end.positions == start.positions:
            return
        self.offsets.append(stream_offset.to_json(end))
        for split_id, offset in end.starts.items():
            topic_id, stop = end.attributes[split_id][IDENTITY], end.attributes[split_id].get(STOP)
            self.ledger.begun(topic_id, split_id, int(offset or 0))
            self.ledger.parts[topic_id, split_id].stop = stop
        if die != "logged":
            self._run(self.committed, commit=die != "delivered")

    def _reached(self, split_id: SplitId, position: int, attributes: Any, reads_all: bool) -> int:
        topic = (str(split_id[0]), str(split_id[1]))
        if (
            self.broker.topic_ids.get(topic) != attributes.get(IDENTITY)
            or topic[0] in self.broker.down
        ):
            return position
        end = self.broker.ends.get(split_id, position)
        if (stop := attributes.get(STOP)) is not None:
            end = min(end, stop)
        return max(position, end if reads_all else self.rng.randint(min(position, end), end))

    def _run(self, number: int, *, commit: bool = True) -> None:
        start = (
            stream_offset.from_json(self.offsets[number - 1])
            if number
            else stream_offset.StreamOffset()
        )
        end = stream_offset.from_json(self.offsets[number])
        if self.host.phase is not Phase.STARTING:
            self.host = self.host.on_planned(end)
        for reader in plan(start, end):
            for piece in reader.ranges:
                topic_id = end.attributes[piece.split_id][IDENTITY]
                for offset in range(int(piece.start or 0), int(piece.end or 0)):
                    self.ledger.delivered(
                        topic_id, piece.split_id, offset, (self.name, self.checkpoint, number)
                    )
        if commit:
            self.committed = number + 1

    def wipe(self) -> None:
        """The Spark checkpoint is deleted."""
        self.offsets, self.committed, self.checkpoint = [], 0, self.checkpoint + 1

    def roll_back(self) -> None:
        """Checkpoint and sink go back, as far as the same splits were held."""
        last = self._last_offset()
        same = [
            number
            for number, text in enumerate(self.offsets)
            if (offset := stream_offset.from_json(text)).epoch == last.epoch and not offset.starts
        ]
        keep = self.rng.choice(same) + 1 if same else len(self.offsets)
        self.ledger.undone(self.name, self.checkpoint, first=keep)
        self.offsets, self.committed = self.offsets[:keep], min(self.committed, keep)
