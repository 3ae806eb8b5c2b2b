"""Documents as ConfigMaps.

The driver may read its assignment and write its report, and nothing else.
"""

import os
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

import httpx2
from lightkube import ApiError, Client, KubeConfig
from lightkube.config import client_adapter
from lightkube.config.client_adapter import ConnectionParams
from lightkube.core.exceptions import ConfigError
from lightkube.resources.core_v1 import ConfigMap, Pod

from balanced_source.api import Problem, ProblemKey
from balanced_source.documents import increments
from balanced_source.documents import report as report_document
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.parts import Content, PartRef, is_part, join, part_names, parts_of
from balanced_source.documents.report import HostReport
from balanced_source.documents.storage import FIRST_HOST, Blob, Names, pack, unpack
from balanced_source.errors import FencedError, StateError
from balanced_source.names import checked_label, checked_object
from balanced_source_adapters.lazy_log import get_logger
from balanced_source_spark.channels.channel import AssignmentListener
from balanced_source_spark.channels.errors import ChannelError
from balanced_source_spark.channels.fencing import fenced_message, is_fenced_by
from balanced_source_spark.channels.watch import ConfigMapWatch, Follower
from balanced_source_spark.instance import Instance

REQUEST_TIMEOUT: Final = 10.0
"""Seconds for one request to the API server."""

_NOT_FOUND: Final = 404
_CONFLICT: Final = 409

# ValueError: lightkube parses the body of an error as JSON, and a proxy's 503 is none.
_FAULTS: Final = (ApiError, ConfigError, httpx2.HTTPError, OSError, ValueError)

log = get_logger(__name__)


def in_cluster_config() -> KubeConfig:
    """Who the driver is: KUBECONFIG if set, else the pod's service account.

    Raises:
        ChannelError: neither is there.
    """
    try:
        if path := os.environ.get("KUBECONFIG"):
            return KubeConfig.from_file(path)
        if token := os.environ.get("KUBERNETES_AUTH_SERVICEACCOUNT_TOKEN"):
            return KubeConfig.from_service_account(str(Path(token).parent))
        return KubeConfig.from_service_account()
    except (ConfigError, OSError, KeyError) as error:
        raise ChannelError(f"no access to the API server is configured: {error}") from error


class KubernetesChannel:
    """See `AssignmentChannel`."""

    has_operator = True
    is_durable = True

    def __init__(
        self, client: Client, *, namespace: str, source: str, uid: str, host: str = FIRST_HOST
    ) -> None:
        """Makes a channel for a host of the BalancedSource `source` with that uid.

        Raises:
            InvalidSpecError: namespace or name would lead to other URLs than those of the source's
                documents.
        """
        self._client = client
        self._namespace = checked_label(namespace, field="option namespace")
        self._names = Names.of(
            checked_object(source, field="option source"),
            checked_label(host, field="option host"),
            uid=uid,
        )
        self._uid = uid
        self._stop = threading.Event()
        self._last_report: HostReport | None = None
        self._base: increments.Base | None = None
        self._base_refs: tuple[PartRef, ...] = ()
        self._revision: str | None = None

    def start(self, listener: AssignmentListener) -> None:
        # msgspec learns a type when it is first decoded, and crashes if two threads make it do so
        # at once.
        for kind in (ConfigMap, Pod):
            kind.from_dict({})
        http = client_adapter.Client(
            self._client.config,
            ConnectionParams(timeout=httpx2.Timeout(REQUEST_TIMEOUT), trust_env=False),
        )
        watch = ConfigMapWatch(http, namespace=self._namespace, name=self._names.assignment)
        follower = Follower(watch, partial(self._tell, listener), self._stop)
        threading.Thread(target=follower.run, name="bsrc-watch", daemon=True).start()

    def claim(self, host: str) -> int:
        seen = [0]
        if (report := self._report_in(self._get(self._names.readers))) is not None:
            seen.append(report.incarnation)
        if (assignment := self._assignment_in(self._get(self._names.assignment))) is not None:
            seen.append(assignment.incarnations.get(host, 0))
        # A new claim must look again at who wrote last.
        self._last_report = None
        return max(seen) + 1

    def former(self, host: str) -> HostReport | None:
        return self._report_in(self._get(self._names.readers))

    def is_gone(self, instance: Instance) -> bool:
        """Ask for the pod, if the driver's service account may.

        Spark itself needs that right for its executors.
        """
        if not instance.pod:
            return False
        try:
            found = self._client.get(Pod, instance.pod, namespace=self._namespace)
        except ApiError as error:
            # Any other refusal, such as a missing right, says nothing about the pod.
            return error.status.code == _NOT_FOUND
        except _FAULTS:
            return False
        is_other = (
            found.metadata is not None and bool(instance.uid) and found.metadata.uid != instance.uid
        )
        return is_other or (
            found.status is not None and found.status.phase in ("Succeeded", "Failed")
        )

    def write(self, report: HostReport) -> None:
        document = report_document.encode(report, source=self._uid)
        # The first write of an incarnation: someone may have claimed the host since it was chosen.
        if self._last_report is None:
            self._check_not_fenced(report)
        try:
            self._replace(document)
        except ApiError as error:
            if error.status.code != _CONFLICT:
                raise ChannelError(f"cannot write {self._names.readers}: {error}") from error
            self._check_not_fenced(report)
            # Once: the operator writes to this object too, when it restores its labels.
            self._replace_again(document)
        except _FAULTS as error:
            raise ChannelError(f"cannot write {self._names.readers}: {error}") from error
        self._last_report = report

    def refusal(self) -> str | None:
        return None

    def problems(self) -> Mapping[ProblemKey, Problem]:
        return {}

    def close(self) -> None:
        self._stop.set()

    def _check_not_fenced(self, report: HostReport) -> None:
        """Look who wrote last; anything but a newer incarnation, or a twin, is overwritten."""
        stored = self._report_in(self._get(self._names.readers))
        if stored is not None and is_fenced_by(report, stored):
            raise FencedError(fenced_message(report, stored))

    def _get(self, name: str) -> ConfigMap:
        try:
            found = self._client.get(ConfigMap, name, namespace=self._namespace)
        except _FAULTS as error:
            raise ChannelError(f"cannot read ConfigMap {name}: {error}") from error
        if name == self._names.readers:
            self._revision = found.metadata.resourceVersion if found.metadata else None
        return found

    def _replace(self, document: str) -> None:
        blob = pack(document)
        body = {
            "metadata": {"name": self._names.readers, "namespace": self._namespace},
            # None removes the key: the patch would keep a former report in the other form.
            "data": dict(blob.data) or None,
            "binaryData": dict(blob.binary) or None,
        }
        changed = self._client.patch(
            ConfigMap,
            self._names.readers,
            # With the revision: without it the patch would overwrite what another driver wrote.
            {**body, "metadata": {"resourceVersion": self._revision}},
            namespace=self._namespace,
        )
        self._revision = changed.metadata.resourceVersion if changed.metadata else None

    def _replace_again(self, document: str) -> None:
        try:
            self._replace(document)
        except _FAULTS as error:
            raise ChannelError(f"cannot write {self._names.readers}: {error}") from error

    def _tell(self, listener: AssignmentListener, found: ConfigMap) -> None:
        if (assignment := self._assignment_in(found)) is not None:
            listener(assignment)

    def _assignment_in(self, found: ConfigMap) -> Assignment | None:
        try:
            return self._decoded(_blob(found))
        except StateError as error:
            log.warning("assignment refused", error=str(error))
            return None

    def _decoded(self, head: Blob) -> Assignment:
        """The assignment; the base that it builds upon is read once for all increments.

        Raises:
            StateError: it cannot be used.
            ChannelError: head and parts do not belong together, because another base is being
                written: try again.
        """
        refs = parts_of(head)
        if not refs:
            return increments.decode(Content(unpack(head)), source=self._uid)
        if self._base is None or refs != self._base_refs:
            names = part_names(self._names.assignment)
            blobs = [_blob(self._get(names[ref.number])) for ref in refs]
            # Parts are written before the head that names them: head and parts may be of two bases.
            if not all(is_part(blob, ref) for blob, ref in zip(blobs, refs, strict=True)):
                raise ChannelError("the parts of the assignment are being replaced")
            self._base = increments.Base.read(join(refs, blobs), source=self._uid)
            self._base_refs = refs
        return increments.apply(unpack(head), self._base, source=self._uid)

    def _report_in(self, found: ConfigMap) -> HostReport | None:
        try:
            return report_document.decode(unpack(_blob(found)), source=self._uid)
        except StateError:
            return None  # empty as the operator made it, or edited: ours to write


def _blob(found: ConfigMap) -> Blob:
    return Blob(data=found.data or {}, binary=found.binaryData or {})
