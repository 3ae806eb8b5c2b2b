"""Which splits are silent.

Nothing came of them for too long, although it could have (FLINK-32496).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from balanced_source.api import SplitId


@dataclass(slots=True)
class SplitIdleness:
    """Adds up the silence of each split.

    Time is what the caller says; it stands still for a split that is held.

    Attributes:
        timeout: seconds of silence after which a split is idle.
    """

    timeout: float
    _silence: dict[SplitId, float] = field(default_factory=dict)
    _activity: Mapping[SplitId, int] = field(default_factory=dict)
    _looked: float | None = None

    def look(
        self, now: float, activity: Mapping[SplitId, int], *, held: Collection[SplitId] = ()
    ) -> tuple[SplitId, ...]:
        """Splits that are idle by now.

        One that is seen for the first time, or was active since, begins again.

        Args:
            now: seconds, not less than at the last look.
            activity: split → how often it has said something; splits that are not in there are
                forgotten.
            held: splits that could not say anything since the last look: paused, or no one took
                their records.
        """
        elapsed = 0.0 if self._looked is None else now - self._looked
        before, self._silence = self._silence, {}
        for split_id, count in activity.items():
            is_silent = split_id in before and self._activity[split_id] == count
            # Time in which a split could not say anything is not silence.
            passed = 0.0 if split_id in held else elapsed
            self._silence[split_id] = before[split_id] + passed if is_silent else 0.0
        self._activity, self._looked = dict(activity), now
        return tuple(sorted(s for s, silence in self._silence.items() if silence >= self.timeout))
