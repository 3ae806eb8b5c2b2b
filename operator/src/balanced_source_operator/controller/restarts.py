"""When a running application may be stopped because its settings changed.

The policy of `spec.application.restart`.
"""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import NamedTuple, assert_never

from balanced_source import durations
from balanced_source.reasons import Reason
from balanced_source_operator.spec.restarts import (
    ApplicationRestart,
    RestartPolicy,
    Weekday,
    Window,
)

_DAYS = tuple(Weekday)


class Hold(NamedTuple):
    """Why a restart has to wait.

    Attributes:
        reason: for the condition RestartPending.
        words: a sentence that says when it restarts.
        look_again: seconds after which the restart may begin; None if that does not depend on time.
    """

    reason: Reason
    words: str
    look_again: float | None = None


OTHER_HOSTS = Hold(
    Reason.REPLACING_APPLICATION, "It restarts when the other hosts have taken over its splits"
)
"""It hands its splits over to hosts that read already."""

FIRST_MICRO_BATCH = Hold(
    Reason.REPLACING_APPLICATION,
    "It restarts when it has completed its first micro-batch and the other hosts have taken over"
    " its splits",
)
"""It was just given splits, which others have let go of: it can hand them over after that."""

SECOND_APPLICATION = Hold(
    Reason.REPLACING_APPLICATION,
    "It restarts when a second application with the new settings has taken over its splits",
)
"""It hands its splits over to an application that is started for that: restart.strategy is
BlueGreen."""

OTHER_SOURCES = Hold(
    Reason.WAITING_FOR_OTHER_SOURCES,
    "It restarts when fewer sources are restarting (settings.maxRestarts of the chart)",
    look_again=60.0,
)
"""The operator restarts only so many sources at once."""


def after_hosts(names: Sequence[str], *, broken: Collection[str]) -> Hold:
    """Return that a host restarts when other hosts run, because hosts take turns.

    Args:
        names: hosts that do not run, or that restart now.
        broken: hosts that have not run for so long that they need help.
    """
    named = f"host {names[0]} runs" if len(names) == 1 else f"hosts {', '.join(names)} run"
    words = f"It restarts when {named} again"
    if stuck := [name for name in names if name in broken]:
        words += (
            f". Host {stuck[0]} has not come back with its settings: see its SparkApplication and"
            " the pod of its driver. To restart the other hosts without it, correct the settings or"
            " change spec.application.restart.nonce"
        )
    return Hold(Reason.REPLACING_APPLICATION, words)


def hold_by_policy(restart: ApplicationRestart, *, now: float) -> Hold | None:
    """Return what a restart that no one has asked for by a nonce waits for; None if it may begin.

    Args:
        restart: of the spec.
        now: seconds since the epoch.
    """
    match restart.policy:
        case RestartPolicy.AUTOMATIC:
            return None
        case RestartPolicy.ON_NONCE:
            return Hold(
                Reason.WAITING_FOR_NONCE, "It restarts when spec.application.restart.nonce changes"
            )
        case RestartPolicy.WINDOW:
            return _outside(restart.window, now)
        case _:
            assert_never(restart.policy)


def _outside(window: Window | None, now: float) -> Hold | None:
    if window is None:  # the spec is not valid without one
        return None
    moment = datetime.fromtimestamp(now, UTC)
    begin = next_begin(window, moment)
    if begin <= moment:
        return None
    words = (
        f"It restarts in the window that begins at {begin:%Y-%m-%dT%H:%MZ}, or when "
        "spec.application.restart.nonce changes"
    )
    return Hold(Reason.WAITING_FOR_WINDOW, words, (begin - moment).total_seconds())


def next_begin(window: Window, moment: datetime) -> datetime:
    """Return when the window begins next; when it began if it is open at that moment."""
    length = timedelta(seconds=durations.seconds(window.duration))
    start = time.fromisoformat(window.start)
    # Yesterday's window may be open, and the only day of the week may have passed today.
    dates = [moment.date() + timedelta(days=day) for day in range(-1, 8)]
    begins = [datetime.combine(d, start, UTC) for d in dates if _is_on(window.days, d.weekday())]
    return next(begin for begin in begins if begin + length > moment)


def _is_on(days: Collection[Weekday] | None, weekday: int) -> bool:
    return days is None or _DAYS[weekday] in days
