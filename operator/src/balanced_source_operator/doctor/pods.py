"""Checks whether a source has a driver and executors, and which quotas are used up."""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Final

from balanced_source.reasons import Reason
from balanced_source_operator.controller.diagnosis import is_driver, is_living
from balanced_source_operator.doctor.finding import ClusterApi, Diagnosis, Fault, error, unknown
from balanced_source_operator.doctor.sources import Patient, age
from balanced_source_operator.kube.port import KubernetesError, Manifest
from balanced_source_operator.resources.kinds import NAME_LABEL, POD, ResourceKind

QUOTA: Final = ResourceKind("", "v1", "resourcequotas", "ResourceQuota")

PATIENCE: Final = 60.0
"""Seconds after its start in which a driver may have no executor yet."""


async def check_pods(api: ClusterApi, patient: Patient) -> AsyncIterator[Diagnosis]:
    """Yield an error if a source that is called read has no driver, or another one no executors."""
    ready = _ready_reason(patient)
    is_reading = ready == Reason.READING
    if ready and not is_reading:
        return  # it is finished
    check = f"{patient.label}: {'driver' if is_reading else 'executors'}"
    try:
        pods = await api.list(POD, patient.namespace, selector=f"{NAME_LABEL}={patient.name}")
    except KubernetesError as refusal:
        yield unknown(check, str(refusal))
        return
    living = [pod for pod in pods if is_living(pod)]
    found = (
        _without_driver(patient, check, living)
        if is_reading
        else await _without_executors(api, patient, check, living)
    )
    if found is not None:
        yield found


def _without_driver(patient: Patient, check: str, living: Sequence[Manifest]) -> Diagnosis | None:
    """Say that nothing reads although conditions say so: they stay while no operator runs."""
    if any(map(is_driver, living)):
        return None
    message = (
        f"the conditions of {patient.name} say that it is read, but no driver pod of it lives, so"
        " nothing is read, and no operator has noticed it"
    )
    remedy = (
        "Check that the operator runs: it starts another driver, which continues at the"
        " checkpoint. If the driver ended seconds ago, run this again."
    )
    return error(check, Fault.DRIVER_MISSING, message, remedy)


async def _without_executors(
    api: ClusterApi, patient: Patient, check: str, living: Sequence[Manifest]
) -> Diagnosis | None:
    """Say that a driver has no executor pod.

    Only the driver is told why an executor pod was refused, and Spark ends it after a while with
    exit code 11: no object says so.
    """
    drivers = [pod for pod in living if is_driver(pod) and age(pod, otherwise=PATIENCE) >= PATIENCE]
    if not drivers or len(living) > sum(map(is_driver, living)):
        return None
    name = drivers[0]["metadata"]["name"]
    message = f"driver pod {name} runs without an executor pod, so nothing is read"
    remedy = (
        f"See why executors were refused: kubectl logs -n {patient.namespace} {name} | grep -i"
        " executor. The page on sizing says how many pods a source needs."
    )
    quotas = "; ".join(await _used_up(api, patient.namespace))
    return error(
        check,
        Reason.EXECUTORS_MISSING,
        message + (f". {quotas}" if quotas else ""),
        f"Raise the quota, or free what it counts. {remedy}" if quotas else remedy,
    )


async def _used_up(api: ClusterApi, namespace: str) -> list[str]:
    """Return what is used up of the quotas of a namespace; nothing if they may not be listed."""
    try:
        found = await api.list(QUOTA, namespace, selector="")
    except KubernetesError as refusal:
        return [f"Its ResourceQuotas cannot be listed: {refusal}"]
    return list(_exhausted(found))


def _exhausted(quotas: Sequence[Manifest]) -> Iterator[str]:
    for quota in quotas:
        status = quota.get("status") or {}
        hard, used = status.get("hard") or {}, status.get("used") or {}
        full = [
            f"{resource} ({used[resource]} of {limit})"
            for resource, limit in sorted(hard.items())
            if used.get(resource) == limit
        ]
        if full:
            yield f"ResourceQuota {quota['metadata']['name']} is used up: {', '.join(full)}"


def _ready_reason(patient: Patient) -> str:
    """Return the reason for which the source is Ready; empty if it is not."""
    conditions = (patient.body.get("status") or {}).get("conditions", ())
    ready = (c for c in conditions if c.get("type") == "Ready" and c.get("status") == "True")
    return next((str(condition.get("reason")) for condition in ready), "")
