"""Which spec is in effect: the newest one if it is valid, else the last one that was."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from balanced_source.api import Problem, ProblemBoard, Source
from balanced_source.errors import ConnectorError, InvalidSpecError
from balanced_source.reasons import Reason
from balanced_source_operator.controller.last_valid import LIMIT, kept_fixed, kept_spec, kept_text
from balanced_source_operator.controller.translate import (
    assigner_warning,
    check_change,
    check_fixed,
    fixed_values,
    to_recalled_source,
    to_source,
)
from balanced_source_operator.controller.urgent import is_paused, is_suspended, with_urgent_fields
from balanced_source_operator.kube.port import KubernetesApi
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.runtime.environment import Desired, Valid
from balanced_source_operator.runtime.metadata import MetadataReader
from balanced_source_operator.runtime.templates import TemplateCheck
from balanced_source_operator.spec import parse_spec


class EffectiveSpec:
    """Of one source.

    Attributes:
        desired: the spec in effect, and what follows from it; None while none is known.
        generation: of the newest spec that was taken as a whole; None if none was.
    """

    def __init__(self, api: KubernetesApi, source: Identity, problems: ProblemBoard) -> None:
        self._problems = problems
        self._templates = TemplateCheck(api, source)
        self._metadata = MetadataReader(api, source.namespace)
        self._valid: Valid | None = None
        self._kept: tuple[Desired, str] | None = None
        self.desired: Desired | None = None
        self.generation: int | None = None

    async def turn(self, body: Mapping[str, Any], stored: Mapping[str, Any]) -> None:
        """Take over the spec if it is valid; else, or in a pause, the last one stays in effect.

        Args:
            body: the source as it was seen last.
            stored: its status.

        Raises:
            KubernetesError: the API server does not answer, or refused.
        """
        await self._take(body, stored)
        suspend = is_suspended(body.get("spec"))
        # It takes effect in a pause, too, and a recalled spec does not hold it.
        if self.desired is not None and self.desired.spec.suspend != suspend:
            spec = self.desired.spec.model_copy(update={"suspend": suspend})
            self.desired = replace(self.desired, spec=spec)

    def last_valid(self, stored: Mapping[str, Any]) -> str:
        """Return what the next operator needs of the spec in effect.

        What is stored while no spec is known.
        """
        if self.desired is None:
            return str(stored.get("lastValidSpec", ""))[:LIMIT]
        if self._kept is None or self._kept[0] is not self.desired:
            desired, fixed = self.desired, fixed_values(self.desired.source)
            self._kept = (desired, kept_text(desired.spec, fixed, desired.secrets))
        return self._kept[1]

    @property
    def pause(self) -> float | None:
        """Seconds until what the spec refers to is due to be read again; None if nothing is."""
        return self._metadata.pause(self.desired.spec if self.desired is not None else None)

    async def _take(self, body: Mapping[str, Any], stored: Mapping[str, Any]) -> None:
        if is_paused(body):
            self.desired = self.desired or await self._recalled(stored)
            return
        try:
            self._valid = await self._newest(body.get("spec"), stored)
        except (InvalidSpecError, ConnectorError) as error:
            self._valid = None
            self._note_refusal(error)
            self.desired = self.desired or await self._recalled(stored)
            self._take_urgent_fields(body.get("spec"))
            return
        self._note_refusal(None)
        self.desired = self._valid.desired
        self.generation = int(body["metadata"].get("generation", 0))

    async def _newest(self, raw: Any, stored: Mapping[str, Any]) -> Valid:
        """Return what the newest spec asks for.

        What was worked out before if nothing of it has changed since.

        Raises:
            InvalidSpecError: the spec is not valid.
            ConnectorError: its connector cannot be used.
        """
        known = self._valid if self._valid is not None and self._valid.raw == raw else None
        spec = known.desired.spec if known is not None else parse_spec(raw)
        texts = await self._metadata.read(spec)
        if known is not None and known.texts == texts:
            return known
        source = to_source(spec, texts)
        self._check_change(source, stored)
        desired = Desired(spec=spec, source=source)
        await self._templates.check(desired)
        self._problems.set("assigner", assigner_warning(source, spec.parallelism))
        return Valid(raw=raw, texts=texts, desired=desired)

    def _check_change(self, source: Source[Any, Any], stored: Mapping[str, Any]) -> None:
        """Compare with what is in effect, or with what the status remembers after a restart."""
        if self.desired is None or self.desired.is_recalled:
            check_fixed(kept_fixed(stored.get("lastValidSpec")), source)
        if self.desired is not None:
            check_change(self.desired.source, source)

    def _note_refusal(self, error: InvalidSpecError | ConnectorError | None) -> None:
        """Set the problem that keeps the newest spec from effect, and clear any former one."""
        is_invalid = isinstance(error, InvalidSpecError)
        self._raise(Reason.INVALID_SPEC, str(error) if is_invalid else None)
        is_broken = isinstance(error, ConnectorError)
        self._raise(Reason.CONNECTOR_BROKEN, str(error) if is_broken else None)

    def _raise(self, reason: Reason, message: str | None) -> None:
        """Set the problem with this reason, or clear it when `message` is None."""
        problem = None if message is None else Problem(reason=reason, message=message)
        self._problems.set(reason, problem)

    async def _recalled(self, stored: Mapping[str, Any]) -> Desired | None:
        """Return what was in effect before a restart; None if that is unknown or not valid now."""
        text = stored.get("lastValidSpec")
        spec = kept_spec(text)
        if spec is None:
            return None
        try:
            source = to_recalled_source(spec, await self._metadata.read(spec), kept_fixed(text))
            self._check_change(source, stored)
            return Desired(spec=spec, source=source, is_recalled=True)
        except (InvalidSpecError, ConnectorError):
            return None

    def _take_urgent_fields(self, raw: Any) -> None:
        """Let `parallelism` and `suspend` take effect although the rest of the spec is invalid."""
        if self.desired is not None:
            spec = with_urgent_fields(self.desired.spec, raw)
            self.desired = replace(self.desired, spec=spec)
