"""Checks one source: its spec, what it refers to, what operator and Spark operator say about it."""

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from balanced_source.api import Source
from balanced_source.errors import BalancedSourceError
from balanced_source_adapters.connectors import installed
from balanced_source_operator.controller.translate import texts_of, to_source
from balanced_source_operator.controller.urgent import is_suspended
from balanced_source_operator.doctor.finding import (
    ClusterApi,
    Diagnosis,
    Fault,
    error,
    remedy_of,
    unknown,
)
from balanced_source_operator.kube.port import KubernetesError, Manifest, UnknownKindError
from balanced_source_operator.resources.kinds import (
    NAME_LABEL,
    SECRET,
    SERVICE_ACCOUNT,
    ResourceKind,
)
from balanced_source_operator.resources.providers import SPARK_OPERATORS, SparkOperator
from balanced_source_operator.runtime.metadata import read_texts
from balanced_source_operator.spec import Application, BalancedSourceSpec, parse_spec
from balanced_source_operator.spec.application import Provider

CLAIM: Final = ResourceKind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")

PATIENCE: Final = 30.0
"""Seconds that a Spark operator may take to notice an application."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patient:
    """A source that is examined.

    Attributes:
        namespace: where it is.
        name: of the BalancedSource.
        body: the BalancedSource.
    """

    namespace: str
    name: str
    body: Manifest

    @property
    def label(self) -> str:
        """How checks call it."""
        return f"source {self.namespace}/{self.name}"

    @property
    def is_read(self) -> bool:
        """Whether its conditions say that it is read, and that nothing is wrong."""
        conditions = (self.body.get("status") or {}).get("conditions") or ()
        found = {str(one.get("type")): one.get("status") for one in conditions}
        return found.get("Ready") == "True" and found.get("Degraded") == "False"

    @property
    def is_suspended(self) -> bool:
        """Whether its user has stopped it."""
        return is_suspended(self.body.get("spec"))

    @property
    def spark_operator(self) -> SparkOperator:
        """The one that the spec asks for, also if the rest of the spec cannot be used."""
        application = self.body.get("spec", {}).get("application") or {}
        is_apache = application.get("provider") == Provider.APACHE
        return SPARK_OPERATORS[Provider.APACHE if is_apache else Provider.KUBEFLOW]


async def understood(
    api: ClusterApi, patient: Patient
) -> tuple[BalancedSourceSpec, Source[Any, Any]] | Diagnosis:
    """Return spec and source, or why the operator cannot use them."""
    check = f"{patient.label}: spec"
    try:
        spec = parse_spec(patient.body.get("spec"))
        texts = await read_texts(api, patient.namespace, texts_of(spec))
        for reference, text in texts.items():
            if text is None:
                message = (
                    f"ConfigMap {reference.name} with key {reference.key} does not exist in"
                    f" {patient.namespace}"
                )
                return error(
                    check, Fault.CONFIG_MAP_MISSING, message, "Create it, or correct clustersFrom."
                )
        return spec, to_source(spec, texts)
    except KubernetesError as refusal:
        return unknown(check, str(refusal))
    except BalancedSourceError as problem:
        return error(
            check,
            Fault.SPEC_INVALID,
            str(problem),
            "Correct the field; check with: balanced-source validate",
        )


def check_operator(patient: Patient) -> Diagnosis:
    """Check that an operator has looked at the newest generation of the source."""
    check = f"{patient.label}: operator"
    generation = patient.body["metadata"].get("generation", 0)
    seen = (patient.body.get("status") or {}).get("observedGeneration", 0)
    if seen >= generation:
        return Diagnosis(check=check)
    state = f"it last saw generation {seen}" if seen else "there is no status at all"
    return error(
        check,
        Fault.OPERATOR_SILENT,
        f"no operator has handled generation {generation} of {patient.name}: {state}",
        f"Check that the operator runs and serves namespace {patient.namespace} (watchNamespaces or"
        " watchNamespaceSelector). If the source was changed seconds ago, run this again.",
    )


def check_conditions(patient: Patient) -> Iterator[Diagnosis]:
    """Yield the problems that the operator has found, with the remedy of their reason."""
    for condition in (patient.body.get("status") or {}).get("conditions", ()):
        if condition.get("type") not in ("Degraded", "DataLoss"):
            continue
        reason, message = str(condition.get("reason")), str(condition.get("message"))
        check = f"{patient.label}: {condition['type']}"
        if condition.get("status") == "True":
            yield error(check, reason, message, remedy_of(reason))
        elif condition.get("status") == "Unknown":
            yield unknown(check, message)


async def check_application(api: ClusterApi, patient: Patient) -> AsyncIterator[Diagnosis]:
    """Yield an error for each SparkApplication that no Spark operator has taken up."""
    check, operator = f"{patient.label}: Spark operator", patient.spark_operator
    try:
        found = await api.list(
            operator.kind, patient.namespace, selector=f"{NAME_LABEL}={patient.name}"
        )
    except UnknownKindError:
        message = f"the kind {operator.kind.plural}.{operator.kind.group} does not exist"
        remedy = f"Install {operator.name}, or change spec.application.provider."
        yield error(check, Fault.SPARK_OPERATOR_MISSING, message, remedy)
        return
    except KubernetesError as refusal:
        yield unknown(check, str(refusal))
        return
    for application in map(operator.view, found):
        if not ((application.get("status") or {}).get("applicationState") or {}).get("state"):
            message = (
                f"no Spark operator has taken up SparkApplication {application['metadata']['name']}"
            )
            if age(application, otherwise=PATIENCE) < PATIENCE:
                yield unknown(check, f"{message} yet: check again in a minute")
                continue
            yield error(
                check,
                Fault.SPARK_OPERATOR_SILENT,
                message,
                f"Check that {operator.name} runs and watches namespace {patient.namespace} "
                "(its chart has a setting for that).",
            )


def age(created: Manifest, *, otherwise: float) -> float:
    """Return the seconds since an object was created, by the clock of this machine.

    Args:
        created: the object.
        otherwise: what to return if it does not say when.
    """
    stamp = str(created["metadata"].get("creationTimestamp", ""))
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(stamp)).total_seconds()
    except (ValueError, TypeError):
        return otherwise


async def check_references(
    api: ClusterApi, patient: Patient, spec: BalancedSourceSpec, source: Source[Any, Any]
) -> AsyncIterator[Diagnosis]:
    """Yield an error for each object that the source needs and that does not exist."""
    application = spec.application
    secrets = {*installed().of(source).needed_secrets(source), *_secrets_of(application)}
    needed = [
        (
            SERVICE_ACCOUNT,
            application.service_account,
            Fault.SERVICE_ACCOUNT_MISSING,
            (
                "Create it with the rights that Spark's drivers need (spark.jobNamespaces of the"
                " Helm chart)."
            ),
        ),
        *(
            (
                SECRET,
                name,
                Fault.SECRET_MISSING,
                "Create the Secret; the operator retries by itself.",
            )
            for name in sorted(secrets)
        ),
        *(
            (
                CLAIM,
                name,
                Fault.VOLUME_CLAIM_MISSING,
                "Create the PersistentVolumeClaim, or correct the pod template.",
            )
            for name in sorted(_claims_of(application))
        ),
    ]
    for kind, name, fault, remedy in needed:
        check = f"{patient.label}: {kind.kind} {name}"
        try:
            found = await api.get(kind, patient.namespace, name)
        except KubernetesError as refusal:
            yield unknown(check, str(refusal))
            continue
        message = f"{kind.kind} {name} does not exist in namespace {patient.namespace}"
        if found is None:
            yield error(check, fault, message, remedy, subject=name)
        elif kind is CLAIM:
            yield _of_claim(patient, check, name, found)
        else:
            yield Diagnosis(check=check)


def _of_claim(patient: Patient, check: str, name: str, claim: Manifest) -> Diagnosis:
    """Return whether a PersistentVolumeClaim has its volume, as far as that is known."""
    phase = (claim.get("status") or {}).get("phase")
    see = f"kubectl describe pvc -n {patient.namespace} {name}"
    if phase == "Lost":
        message = f"the volume of PersistentVolumeClaim {name} is gone"
        remedy = f"See: {see}. Restore the volume, or create the claim again."
        return error(check, Fault.VOLUME_CLAIM_LOST, message, remedy, subject=name)
    if phase == "Pending" and not patient.is_read:
        return unknown(
            check,
            f"PersistentVolumeClaim {name} is Pending: it has no volume. That is normal until a pod"
            " uses it, if its storage class waits for the first one (WaitForFirstConsumer);"
            f" otherwise see: {see}",
        )
    return Diagnosis(check=check)


def _secrets_of(application: Application) -> Iterator[str]:
    yield from application.image_pull_secrets
    yield from (each.secret_ref.name for each in application.spark_conf_from)
    if application.pipeline is not None:
        yield from (each.secret_ref.name for each in application.pipeline.sink.options_from)


def _claims_of(application: Application) -> set[str]:
    templates = (application.driver.template, application.executor.template)
    return {name for template in templates for name in _claims_in(template or {})}


def _claims_in(template: Mapping[str, Any]) -> Iterator[str]:
    for volume in (template.get("spec") or {}).get("volumes") or ():
        match volume:
            case {"persistentVolumeClaim": {"claimName": str(name)}}:
                yield name
            case _:
                pass
