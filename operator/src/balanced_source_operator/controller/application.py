"""Decides what happens to the SparkApplication, from what is seen.

Pods are the truth, its state is a hint.

Known trouble of the Spark operator that shaped it: a change of its spec restarts the job, a write
while it is being submitted makes a healthy job fail (so it is created and deleted, never written
to); it can stay in a passing state forever (so there is a deadline); it can say FAILED while its
driver lives (so pods are checked first).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from balanced_source.api import Problem
from balanced_source.backoff import backoff
from balanced_source.reasons import Reason
from balanced_source_operator.controller.application_facts import (
    FAILED_ATTEMPT,
    RETRIED,
    ApplicationState,
    annotation,
    failures_of,
    is_made_from,
    name_of,
    number_of,
    seconds_since,
    state_of,
    word_of,
)
from balanced_source_operator.controller.decisions import Deadlines, Decision, Sightings, Wanted
from balanced_source_operator.controller.diagnosis import (
    cause,
    diagnose,
    drivers_of,
    has_running_driver,
    is_driver,
    is_living,
)
from balanced_source_operator.controller.refusals import submission_refusal
from balanced_source_operator.controller.restarts import OTHER_SOURCES, Hold
from balanced_source_operator.kube.port import Manifest
from balanced_source_operator.resources.kinds import (
    HASH_ANNOTATION,
    NONCE_ANNOTATION,
    SECRETS_ANNOTATION,
    application_name,
)
from balanced_source_operator.resources.made_from import differences

MAX_PAUSE: Final = 600.0
"""Seconds between a failure and the next start, at most."""

_PASSING: Final = frozenset({ApplicationState.PENDING, ApplicationState.STOPPING})
UNREAD_PATIENCE: Final = 30.0
"""Seconds that the last report of an application which has ended may take to be seen."""


def decide(
    wanted: Wanted,
    applications: Sequence[Manifest],
    pods: Sequence[Manifest],
    *,
    seen: Sightings,
    deadlines: Deadlines,
    now: float,
) -> Decision:
    """What happens next. Repeating a decision on what it led to changes nothing more."""
    current = [a for a in applications if not a["metadata"].get("deletionTimestamp")]
    # Not adopted any more, and not replaced yet: its driver may still write.
    leaving = [a for a in applications if a["metadata"].get("deletionTimestamp")]
    fitting = [a for a in current if _fits(a, wanted)]
    outdated = [a for a in current if a not in fitting]
    keep = min(fitting, key=lambda a: number_of(a, wanted.base), default=None)
    surplus = [*outdated, *(a for a in fitting if a is not keep)]
    # Only one that runs is worth waiting for: what fails or only starts is replaced at once.
    runs = keep is None and len(outdated) == 1 and state_of(outdated[0]) is ApplicationState.RUNNING
    if runs and (hold := _hold(outdated[0], wanted)) is not None:
        return _waiting(outdated[0], pods, wanted, hold, now=now)
    if surplus:
        return Decision(
            state=ApplicationState.STOPPING,
            name=name_of(surplus[0]),
            delete=tuple(surplus),
            reason=Reason.REPLACING_APPLICATION,
            message=(
                f"{_why(surplus[0], wanted)}: {name_of(surplus[0])} is stopped, then started again"
            ),
            is_restart=runs and not _is_given_up(surplus[0], wanted),
        )
    if keep is not None:
        return _watch(
            keep, pods, wanted, in_state=seen.seconds(keep, now=now), deadlines=deadlines, now=now
        )
    return _start(wanted, applications, leaving, pods)


def _hold(application: Manifest, wanted: Wanted) -> Hold | None:
    """What the restart of a running application waits for."""
    # A nonce is the user's word, and settings that do not work are not worth waiting for.
    if wanted.hold is not None and not (
        _is_asked(application, wanted) or _is_given_up(application, wanted)
    ):
        return wanted.hold
    if wanted.turn is not None:
        return wanted.turn
    if wanted.is_crowded:
        return OTHER_SOURCES
    return wanted.hand_over


def _waiting(
    application: Manifest, pods: Sequence[Manifest], wanted: Wanted, hold: Hold, *, now: float
) -> Decision:
    """An application continues with its former settings until it may be restarted."""
    name, is_turn = name_of(application), hold in (wanted.turn, wanted.hand_over)
    message = f"{_why(application, wanted)}. {name} has not been restarted yet. {hold.words}"
    return Decision(
        state=ApplicationState.RUNNING,
        name=name,
        reason=hold.reason if is_turn else "",
        message=message if is_turn else "",
        problem=diagnose(application, pods, may_end=wanted.may_end, now=now),
        look_again=hold.look_again,
        pending=Problem(reason=hold.reason, message=message, scope=name),
    )


def driver_pods(pods: Sequence[Manifest], application: str | None = None) -> list[Manifest]:
    """Driver pods that may still write; of one application, or of all."""
    return [
        pod
        for pod in pods
        if is_driver(pod) and is_living(pod) and application in (None, application_name(pod))
    ]


def look(
    applications: Sequence[Manifest], pods: Sequence[Manifest], *, until: str, now: float
) -> Decision:
    """Return what the application does, and decide nothing.

    Args:
        applications: of the host.
        pods: of the host.
        until: what must happen before anything can be decided, in words.
        now: seconds since the epoch.
    """
    if not applications:
        message = f"no application runs, and none is started before {until}"
        return Decision(state=ApplicationState.NONE, message=message)
    application = applications[0]
    name, state = name_of(application), state_of(application)
    if state is not ApplicationState.FAILED:
        # Whether it is to end is not known.
        found = diagnose(application, pods, may_end=True, now=now)
        message = f"SparkApplication {name} is {word_of(application)}"
        return Decision(state=state, name=name, message=message, problem=found)
    if driver_pods(pods, name):
        return _wrong_state(name)
    message = (
        f"{_failure(application, cause(application, pods))}. It is not started again before"
        f" {until}. See the log of its driver pod"
    )
    problem = Problem(reason=Reason.APPLICATION_FAILED, message=message)
    return Decision(state=state, name=name, problem=problem, failures=failures_of(application))


def stop(applications: Sequence[Manifest], pods: Sequence[Manifest]) -> Decision:
    """Decide to stop all applications of a source.

    Needs nothing of its spec, which may be invalid.
    """
    current = [a for a in applications if not a["metadata"].get("deletionTimestamp")]
    leaving = [a for a in applications if a["metadata"].get("deletionTimestamp")]
    left = _left_of(current or leaving, driver_pods(pods))
    waits = f"waiting until {left} is gone. S" if left else "s"
    return Decision(
        state=ApplicationState.STOPPING if left else ApplicationState.PAUSED,
        delete=tuple(current),
        reason=Reason.SUSPENDED,
        message=f"suspended: {waits}et spec.suspend to false to continue where it stopped",
        waits_for=left,
    )


def _left_of(applications: Sequence[Manifest], drivers: Sequence[Manifest]) -> str:
    """Return what is left of former starts: an application or a driver pod; empty for nothing."""
    if applications:
        return f"SparkApplication {name_of(applications[0])}"
    return f"driver pod {name_of(drivers[0])}" if drivers else ""


def _start(
    wanted: Wanted,
    applications: Sequence[Manifest],
    leaving: list[Manifest],
    pods: Sequence[Manifest],
) -> Decision:
    if left := _left_of(leaving, driver_pods(pods)):
        message = (
            f"{left} must be gone before the application starts: two drivers would write twice"
        )
        return Decision(
            state=ApplicationState.STOPPING,
            reason=Reason.WAITING_FOR_OLD_APPLICATION,
            message=message,
            waits_for=left,
        )
    if not wanted.may_start:
        return Decision(
            state=ApplicationState.NONE,
            reason=Reason.DISCOVERING,
            message="the application starts when the first splits are assigned",
        )
    # Each name is used once, so a watch that is late cannot make two applications of one.
    number = 1 + max((number_of(a, wanted.base) for a in applications), default=0)
    name = f"{wanted.base}-{number}"
    return Decision(
        state=ApplicationState.PENDING,
        name=name,
        create=name,
        reason=Reason.STARTING_APPLICATION,
        message=f"SparkApplication {name} is being started",
    )


def _watch(
    application: Manifest,
    pods: Sequence[Manifest],
    wanted: Wanted,
    *,
    in_state: float,
    deadlines: Deadlines,
    now: float,
) -> Decision:
    name, state = name_of(application), state_of(application)
    lives = bool(driver_pods(pods, name))
    if state is ApplicationState.FAILED and lives:
        return _wrong_state(name)
    if state is ApplicationState.FAILED:
        return _failed(application, pods, wanted, deadlines=deadlines, now=now)
    found = diagnose(application, pods, may_end=wanted.may_end, now=now)
    if state in _PASSING:
        left = deadlines.stuck_after - in_state
        if left <= 0 and not lives:
            return _stuck(application, found=found, deadlines=deadlines)
        return _passing(application, pods, state, left=left, found=found, deadlines=deadlines)
    if state is ApplicationState.FINISHED and wanted.is_unread and found is None:
        left = UNREAD_PATIENCE - in_state
        if wanted.may_read_more:
            return _starts_again(application, left=left)
        return _ended_early(name, left=left)
    return Decision(state=state, name=name, problem=found)


def _wrong_state(name: str) -> Decision:
    """The Spark operator is wrong: deleting the application would end a driver that reads."""
    message = (
        f"SparkApplication {name} is FAILED, but its driver pod still runs: the operator leaves"
        " both alone. To start a new driver, delete the SparkApplication"
    )
    problem = Problem(reason=Reason.APPLICATION_STATE_WRONG, message=message)
    return Decision(
        state=ApplicationState.RUNNING,
        name=name,
        reason=problem.reason,
        message=message,
        problem=problem,
    )


def _starts_again(application: Manifest, *, left: float) -> Decision:
    """The program ended in order, before its host was given splits or before the state was lost.

    It may also have adopted and read them, with a report that is still to be seen.
    """
    name = name_of(application)
    if left > 0:
        return Decision(state=ApplicationState.FINISHED, name=name, look_again=left)
    return Decision(
        state=ApplicationState.STOPPING,
        name=name,
        delete=(application,),
        reason=Reason.REPLACING_APPLICATION,
        message=f"{name} has ended, and its host may have splits to read: it is started again",
    )


def _ended_early(name: str, *, left: float) -> Decision:
    """A program may mean to end early, so only the user knows whether it should run again.

    An application may also have ended while its state was lost, with a report that does not count.
    """
    message = (
        f"SparkApplication {name} has ended, but its bounded source was not read to its end as far"
        " as reports tell. If the program did not mean to end early, see the log of its driver,"
        f" then delete {name}: the operator creates a new one, which continues at the checkpoint"
    )
    problem = Problem(reason=Reason.APPLICATION_ENDED, message=message)
    return Decision(
        state=ApplicationState.FINISHED,
        name=name,
        problem=problem if left <= 0 else None,
        look_again=left if left > 0 else None,
    )


def _failure(application: Manifest, why: str) -> str:
    name, failures = name_of(application), failures_of(application)
    return f"SparkApplication {name} failed ({failures} in a row): {why}"


def _failure_found(application: Manifest, pods: Sequence[Manifest]) -> tuple[str, str, bool]:
    """Return what a failure was in words, its reason, and whether a driver pod is left of it.

    Apache's operator ends an application whose driver pod was refused, as it does one that failed.
    """
    why, has_driver = cause(application, pods), bool(drivers_of(application, pods))
    what, refusal = _failure(application, why), None if has_driver else submission_refusal(why)
    if refusal is None:
        return what, Reason.APPLICATION_FAILED, has_driver
    reason, advice = refusal
    return f"{what.rstrip('.')}. {advice}", reason, has_driver


def _failed(
    application: Manifest,
    pods: Sequence[Manifest],
    wanted: Wanted,
    *,
    deadlines: Deadlines,
    now: float,
) -> Decision:
    """Keep the failed application with its log for a while, longer each time, then restart it."""
    name, failures = name_of(application), failures_of(application)
    what, reason, has_driver = _failure_found(application, pods)
    if wanted.max_failures is not None and failures >= wanted.max_failures:
        first = "See the log of its driver pod, then delete" if has_driver else "Delete"
        message = (
            f"{what}. It is not started again, because spec.restart.maxFailures is"
            f" {wanted.max_failures}. {first} {name} or raise the limit"
        )
        problem = Problem(reason=Reason.RESTART_LIMIT_REACHED, message=message)
        return Decision(
            state=ApplicationState.FAILED, name=name, problem=problem, failures=failures
        )
    pause = backoff(failures, first=deadlines.retry_failed_after, longest=MAX_PAUSE)
    left = seconds_since(application, now) + pause
    kept = "It is kept with its driver's log" if has_driver else "It is kept"
    message = f"{what}. {kept} for {pause:.0f} s after the failure, then started again"
    return Decision(
        state=ApplicationState.FAILED,
        name=name,
        delete=(application,) if left <= 0 else (),
        reason=reason,
        message=message,
        problem=Problem(reason=reason, message=message),
        failures=failures,
        look_again=max(1.0, left),
    )


def _stuck(application: Manifest, *, found: Problem | None, deadlines: Deadlines) -> Decision:
    """Nothing has happened for long, and no driver would end: the application is made again."""
    name, word = name_of(application), word_of(application)
    again = f"it was {word} for {deadlines.stuck_after:.0f} s, and is deleted and created again"
    problem = Problem(
        reason=Reason.APPLICATION_STUCK,
        message=(
            f"SparkApplication {name} was {word} for {deadlines.stuck_after:.0f} s without a"
            " driver. It is deleted and created again; check that the Spark operator runs"
        ),
    )
    if found is not None and word in RETRIED:
        # The Spark operator pauses longer after each attempt, and an application may live for
        # months.
        problem = replace(found, message=f"{found.message}; {again}")
    return Decision(
        state=ApplicationState.FAILED,
        name=name,
        delete=(application,),
        reason=problem.reason,
        message=problem.message,
        problem=problem,
        failures=failures_of(application) if word in RETRIED else 0,
        is_stuck=True,
    )


def _passing(
    application: Manifest,
    pods: Sequence[Manifest],
    state: ApplicationState,
    *,
    left: float,
    found: Problem | None,
    deadlines: Deadlines,
) -> Decision:
    name, word = name_of(application), word_of(application)
    message, reads = f"SparkApplication {name} is {word}", has_running_driver(application, pods)
    if left <= 0 and found is None and reads:
        words = (
            f"SparkApplication {name} has been {word} for {deadlines.stuck_after:.0f} s, but its"
            " driver pod runs: the operator leaves both alone. Check that the Spark operator runs"
        )
        found = Problem(reason=Reason.APPLICATION_STATE_WRONG, message=words)
    return Decision(
        state=state,
        name=name,
        reason=Reason.STARTING_APPLICATION
        if state is ApplicationState.PENDING
        else Reason.APPLICATION_STOPPING,
        message=message,
        problem=found,
        failures=failures_of(application) if word in FAILED_ATTEMPT else 0,
        # A living driver may be past the deadline: then a change of its pod is what comes next.
        look_again=max(1.0, left) if left > 0 else None,
    )


def _fits(application: Manifest, wanted: Wanted) -> bool:
    # A hash of our own: webhooks and defaults of the CRD change the spec that the API server
    # returns.
    is_same = is_made_from(annotation(application, HASH_ANNOTATION), wanted.spec_hash)
    return is_same and not _not_mounted(application, wanted) and not _is_asked(application, wanted)


def _is_asked(application: Manifest, wanted: Wanted) -> bool:
    """Whether the user asks for a restart by the nonce."""
    return wanted.nonce is not None and annotation(application, NONCE_ANNOTATION) != str(
        wanted.nonce
    )


def _is_given_up(application: Manifest, wanted: Wanted) -> bool:
    return wanted.given_up != "" and is_made_from(
        annotation(application, HASH_ANNOTATION), wanted.given_up
    )


def _not_mounted(application: Manifest, wanted: Wanted) -> list[str]:
    mounted = annotation(application, SECRETS_ANNOTATION).split(",")
    # One that is mounted and not needed does no harm, so a cluster that leaves restarts nothing.
    return sorted(set(wanted.secrets).difference(mounted))


def _why(application: Manifest, wanted: Wanted) -> str:
    if missing := _not_mounted(application, wanted):
        return f"Secret {missing[0]} has to be mounted for a cluster"
    if is_made_from(annotation(application, HASH_ANNOTATION), wanted.spec_hash):
        return "spec.application.restart.nonce changed"
    changes = differences(application, wanted.settings)
    return (
        f"settings of the application changed ({changes})"
        if changes
        else "settings of the application changed"
    )
