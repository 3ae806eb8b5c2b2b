"""What the parts of a source's task share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from balanced_source.api import Source
from balanced_source_adapters.connectors import installed
from balanced_source_operator.contract.half import Texts
from balanced_source_operator.controller.translate import reader_options
from balanced_source_operator.kube.port import KubernetesApi
from balanced_source_operator.metrics import Metrics
from balanced_source_operator.runtime.alignment import Alignments
from balanced_source_operator.runtime.audience import Audience, NoAudience
from balanced_source_operator.runtime.best_effort import BestEffort
from balanced_source_operator.runtime.call_pool import CallPool
from balanced_source_operator.runtime.restart_slots import RestartSlots
from balanced_source_operator.settings import Settings
from balanced_source_operator.spec import Application, BalancedSourceSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What all sources of the process share.

    A source's own parts get one whose `api` reports refusals.
    """

    api: KubernetesApi
    settings: Settings
    pool: CallPool
    metrics: Metrics
    alignments: Alignments = field(default_factory=Alignments)
    restarts: RestartSlots = field(default_factory=RestartSlots)
    audience: Audience = field(default_factory=NoAudience)
    best_effort: BestEffort = field(default_factory=BestEffort)


@dataclass(frozen=True, slots=True, kw_only=True)
class Desired:
    """A valid spec, and what follows from it.

    Attributes:
        spec: what the user wrote.
        source: what is read.
        conf: Spark configuration of the operator that is in effect; None for that of its settings.
        given_up: hash of settings that were given up for those in effect; empty if none were.
        broken_hosts: hosts that have not run for long.
        skipped_hosts: those of them that no restart of another host waits for.
        is_recalled: whether it is the last valid spec from before a restart: `spec.application` is
            a stand-in then.
    """

    spec: BalancedSourceSpec
    source: Source[Any, Any]
    is_recalled: bool = False
    conf: Mapping[str, str] | None = None
    given_up: str = ""
    broken_hosts: frozenset[str] = frozenset()
    skipped_hosts: frozenset[str] = frozenset()

    def conf_or(self, default: Mapping[str, str]) -> Mapping[str, str]:
        """Return the operator's Spark configuration in effect, given that of its settings."""
        return default if self.conf is None else self.conf

    @property
    def own_application(self) -> Application | None:
        """The application; None if there is only a stand-in for it."""
        return None if self.is_recalled else self.spec.application

    @property
    def reader_options(self) -> Mapping[str, str]:
        """What the packaged application must know of the source before it starts."""
        return reader_options(self.spec)

    @property
    def needed_secrets(self) -> tuple[str, ...]:
        """Without them a cluster cannot be read."""
        return installed().of(self.source).needed_secrets(self.source)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What a new application mounts.

        Clusters that are not read now may be read again one day.
        """
        return installed().of(self.source).secrets(self.source)


class Valid(NamedTuple):
    """A valid spec: as it was written, the texts that it refers to, and what both ask for."""

    raw: Any
    texts: Texts
    desired: Desired
