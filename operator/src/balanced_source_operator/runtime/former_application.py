"""Remembers the application of a host, so that a drain attempt has the settings of the lost one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from balanced_source.coordinator import HostState
from balanced_source_operator.controller.application_facts import annotation
from balanced_source_operator.controller.decisions import Wanted
from balanced_source_operator.controller.drain import has_former_settings, is_drain
from balanced_source_operator.controller.rollback import has_registered
from balanced_source_operator.kube.port import Manifest
from balanced_source_operator.resources.kinds import (
    DRAIN_ANNOTATION,
    DRAIN_SETTINGS_ANNOTATION,
    FORMER_SETTINGS,
    HASH_ANNOTATION,
    SECRETS_ANNOTATION,
    SETTINGS_ANNOTATION,
)
from balanced_source_operator.resources.providers import SPARK_OPERATORS, SparkOperator, kind_of

_MADE_FROM: Final = (HASH_ANNOTATION, SETTINGS_ANNOTATION, SECRETS_ANNOTATION)


class FormerApplication:
    """Of one host: the last application whose driver has registered.

    An operator that has started after the application was gone does not know it. Then a drain
    attempt has the settings in effect.
    """

    def __init__(self) -> None:
        self._manifest: Manifest | None = None

    def note(self, applications: Sequence[Manifest], host: HostState | None) -> None:
        """Look at the applications of the host."""
        for application in applications:
            # One that has never registered may have settings that do not work.
            if is_drain(application) or host is None:
                continue
            if has_registered(application, host.incarnation):
                self._manifest = application

    def forget(self, deleted: Sequence[Manifest]) -> None:
        """A drain attempt with the former settings has failed: the next one has those in effect."""
        if any(map(has_former_settings, deleted)):
            self._manifest = None

    def drain_attempt(
        self, metadata: Mapping[str, Any]
    ) -> tuple[SparkOperator, dict[str, Any]] | None:
        """Return a drain attempt with the settings of the lost application; None if not known.

        Args:
            metadata: of an application that is made now.
        """
        if self._manifest is None:
            return None
        former, kind = self._manifest, kind_of(self._manifest)
        operator = next(o for o in SPARK_OPERATORS.values() if o.kind == kind)
        made_from = {n: text for n in _MADE_FROM if (text := annotation(former, n))}
        annotations = {**metadata["annotations"], **made_from}
        annotations |= {DRAIN_ANNOTATION: "true", DRAIN_SETTINGS_ANNOTATION: FORMER_SETTINGS}
        return operator, {
            "apiVersion": former["apiVersion"],
            "kind": former["kind"],
            "metadata": {**metadata, "annotations": annotations},
            "spec": operator.drained(former["spec"]),
        }


def with_former_settings(wanted: Wanted, applications: Sequence[Manifest]) -> Wanted:
    """Return what is wanted while a drain attempt with former settings is there: just this one."""
    found = next(filter(has_former_settings, applications), None)
    if found is None:
        return wanted
    return replace(
        wanted, spec_hash=annotation(found, HASH_ANNOTATION), secrets=(), nonce=None, given_up=""
    )
