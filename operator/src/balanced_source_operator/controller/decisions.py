"""What is wanted of a SparkApplication, what was seen of it, and what was decided about it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from balanced_source.api import Problem
from balanced_source_operator.controller.application_facts import ApplicationState, sighting
from balanced_source_operator.controller.restarts import Hold
from balanced_source_operator.kube.port import Manifest
from balanced_source_operator.resources.made_from import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the controller wants of the application.

    Attributes:
        base: name of the source; applications are called ``<base>-<number>``.
        spec_hash: of the settings that it is made from; in several versions, with commas
            between.
        secrets: that readers need; one that is not mounted needs a new application, one too many
            does no harm.
        may_end: whether the application is expected to complete.
        is_unread: whether its source ends, and the splits of its host were not read to their end as
            far as reports tell.
        may_read_more: whether another start may read them: the host was given some of them and has
            not adopted them, or only its next driver can tell what it has read.
        max_failures: failures in a row after which it is not started again; None for no limit.
        may_start: whether an assignment is published, so that readers would find one.
        turn: which other hosts of the source a restart waits for, because hosts take turns; None if
            it is its turn.
        settings: that it is made from, for people.
        nonce: of `spec.application.restart`; an application that was made with another one is
            restarted. None asks for nothing.
        hold: what a change of the settings waits for, unless a nonce asks for the restart; None if
            it need not wait.
        given_up: hash of settings that do not work: an application that was made from them waits
            for no policy.
        is_crowded: whether as many sources restart as may restart at once.
        hand_over: which hand-over of its splits a restart waits for; None for none.
    """

    base: str
    spec_hash: str
    secrets: tuple[str, ...] = ()
    may_start: bool
    may_end: bool = False
    is_unread: bool = False
    may_read_more: bool = False
    max_failures: int | None = None
    turn: Hold | None = None
    settings: Settings = field(default_factory=dict)
    nonce: int | None = None
    hold: Hold | None = None
    is_crowded: bool = False
    hand_over: Hold | None = None
    given_up: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """Patience, in seconds; see `balanced_source_operator.settings.Settings`."""

    stuck_after: float
    retry_failed_after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sightings:
    """Since when each application has been in its state, as far as this operator has seen it.

    The application does not say: its newest time stamp may be of a submission days ago, when its
    driver crashes now.

    Attributes:
        first: uid and state → time of the first look at it, seconds.
    """

    first: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def looked(self, applications: Sequence[Manifest], *, now: float) -> "Sightings":
        """What is known after a further look; what is over is forgotten."""
        keys = [sighting(application) for application in applications]
        return Sightings(first={key: self.first.get(key, now) for key in keys})

    def seconds(self, application: Manifest, *, now: float) -> float:
        """How long it has been in its state."""
        return now - self.first.get(sighting(application), now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do, and what to say about it.

    Attributes:
        state: of the application.
        name: of the application; empty if there is none.
        create: name of the application to create now; empty for none.
        delete: applications to delete.
        reason: CamelCase word for a condition; empty if all is well.
        message: a sentence that goes with it.
        problem: what is wrong with the application; None if nothing is.
        relapse: what is to be said of an application that starts or runs after failures in a row;
            None for nothing. It does not make the application less fit for work.
        failures: failures in a row until now; a new application remembers them.
        look_again: seconds after which a deadline passes; None if none is near.
        pending: what a restart of a running application waits for; None if none is needed.
        is_restart: whether a running application is stopped because its settings changed.
        is_done: whether the application has ended, and its host has read all of its splits.
        is_over: whether it has ended as the trigger availableNow asks for.
        is_stuck: whether nothing has happened for long, so that the application is made again.
        waits_for: object of a former start that must be gone first; empty for none.
    """

    state: ApplicationState
    name: str = ""
    create: str = ""
    delete: tuple[Manifest, ...] = ()
    reason: str = ""
    message: str = ""
    problem: Problem | None = None
    relapse: Problem | None = None
    failures: int = 0
    look_again: float | None = None
    pending: Problem | None = None
    is_restart: bool = False
    is_done: bool = False
    is_over: bool = False
    is_stuck: bool = False
    waits_for: str = ""
