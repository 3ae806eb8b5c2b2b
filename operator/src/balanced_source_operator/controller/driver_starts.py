"""Drivers that have started and were not heard yet: what their hosts reported is the past."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from balanced_source_operator.controller.application import driver_pods
from balanced_source_operator.controller.application_facts import name_of, timestamp
from balanced_source_operator.kube.port import Manifest


@dataclass(frozen=True, slots=True)
class DriverStart:
    """States when the newest driver of a host was started.

    Attributes:
        pod: its name.
        uid: of the pod.
        created_at: seconds since the epoch, by the API server's clock.
        seen_at: when this operator saw it first, by its own clock.
    """

    pod: str
    uid: str
    created_at: float
    seen_at: float


def driver_start(
    applications: Sequence[Manifest],
    pods: Sequence[Manifest],
    *,
    before: DriverStart | None,
    now: float,
) -> DriverStart | None:
    """Return the start of the newest living driver of a host; None if no driver lives.

    Args:
        applications: of the host.
        pods: of the source.
        before: what was returned at the last look.
        now: by the operator's clock.
    """
    found = [pod for each in applications for pod in driver_pods(pods, name_of(each))]
    if not found:
        return None
    newest = max(found, key=_created_at)
    uid = str(newest["metadata"].get("uid", ""))
    if before is not None and before.uid == uid:
        return before
    return DriverStart(name_of(newest), uid, _created_at(newest), seen_at=now)


def starts_of(
    applications: Mapping[str, Sequence[Manifest]],
    pods: Sequence[Manifest],
    *,
    before: Mapping[str, DriverStart],
    now: float,
) -> dict[str, DriverStart]:
    """Return the start of the newest driver of each host that has a living one."""
    looks = (
        (host, driver_start(several, pods, before=before.get(host), now=now))
        for host, several in applications.items()
    )
    return {host: start for host, start in looks if start is not None}


def _created_at(pod: Manifest) -> float:
    return timestamp(pod["metadata"].get("creationTimestamp"))
