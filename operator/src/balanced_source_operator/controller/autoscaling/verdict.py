"""What the autoscaler decides, and the sentence that explains it."""

from dataclasses import dataclass

from balanced_source.reasons import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A decision.

    Attributes:
        readers: how many there should be.
        reason: word for the condition.
        message: why, in one sentence with the numbers of the time when it was decided.
        is_able: whether the autoscaler can do what the load asks for.
        utilization: share of its capacity that the busiest reader uses, 0 to 1 and more; None while
            unknown.
        capacity: records per second that one reader can process; None while unknown.
        arrival: records per second that arrive; None while unknown.
        decided_at: seconds, when the sentence was made.
    """

    readers: int
    reason: Reason
    message: str
    is_able: bool = True
    utilization: float | None = None
    capacity: float | None = None
    arrival: float | None = None
    decided_at: float = 0.0
