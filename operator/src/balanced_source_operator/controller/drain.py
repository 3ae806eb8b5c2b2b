"""Decides which lost host's application a drain attempt replaces, and when the attempt must go.

A drain attempt is an application like the former ones of its host, with the same checkpoint, sink,
query name and settings. It replays the micro-batch that the lost host has begun and reports where
the splits are. It gets no splits, so it needs one executor, and failures of former applications do
not hold it up.
"""

from collections.abc import Sequence

from balanced_source.coordinator import HostPhase, HostRole, HostState
from balanced_source.reasons import Reason
from balanced_source_operator.controller.application import driver_pods
from balanced_source_operator.controller.application_facts import ApplicationState, annotation
from balanced_source_operator.controller.decisions import Decision
from balanced_source_operator.controller.rollback import has_registered
from balanced_source_operator.kube.port import Manifest
from balanced_source_operator.resources.kinds import (
    DRAIN_ANNOTATION,
    DRAIN_SETTINGS_ANNOTATION,
    FORMER_SETTINGS,
)

DRAIN_READERS = 1
"""Readers for which a drain attempt has executors."""


def is_drain(application: Manifest) -> bool:
    """Return whether an application is a drain attempt."""
    return annotation(application, DRAIN_ANNOTATION) == "true"


def has_former_settings(application: Manifest) -> bool:
    """Return whether a drain attempt has the settings of the lost application."""
    return annotation(application, DRAIN_SETTINGS_ANNOTATION) == FORMER_SETTINGS


def drains(host: HostState | None) -> bool:
    """Return whether the next application of a host is a drain attempt."""
    return host is not None and host.role is HostRole.DRAINING


def replaced(
    host: HostState | None, applications: Sequence[Manifest], pods: Sequence[Manifest]
) -> Decision | None:
    """Return the decision to stop applications that are of the wrong kind; None if there are none.

    An application of a lost host whose driver starts right now is left alone: it settles what was
    delivered as well.
    """
    if host is None:
        return None
    current = [a for a in applications if not a["metadata"].get("deletionTimestamp")]
    if drains(host):
        wrong = [a for a in current if not is_drain(a) and _is_over(host, a, pods)]
        message = "Its host is lost: {} is stopped, then a drain attempt settles what was delivered"
    else:
        wrong = [a for a in current if is_drain(a)]
        message = "The drain attempt {} is over: it is stopped, then its host starts again"
    if not wrong:
        return None
    name = str(wrong[0]["metadata"]["name"])
    return Decision(
        state=ApplicationState.STOPPING,
        name=name,
        delete=tuple(wrong),
        reason=Reason.REPLACING_APPLICATION,
        message=message.format(name),
    )


def _is_over(host: HostState, application: Manifest, pods: Sequence[Manifest]) -> bool:
    """Whether an application is the lost one, or has no driver.

    One whose host reports again is not.
    """
    # One that was not heard since the state was lost is still expected.
    if host.phase not in (HostPhase.LOST, HostPhase.EXPECTED):
        return False
    lives = bool(driver_pods(pods, str(application["metadata"]["name"])))
    return not lives or has_registered(application, host.incarnation)
