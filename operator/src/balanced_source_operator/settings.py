"""Settings of the operator process, read once from the environment by the entry point."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from balanced_source.documents.environment import DOCUMENTATION
from balanced_source.errors import InvalidSpecError
from balanced_source.names import separated, shown

PREFIX = "BALANCED_SOURCE_"
MAX_RESTARTS = 5

_WORD: Final = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_DOMAIN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL: Final = rf"({_DOMAIN}(\.{_DOMAIN})*/)?{_WORD}"
_ONE_OF: Final = rf" +(in|notin) *\( *{_WORD}( *, *{_WORD})* *\)"
_TERM: Final = rf"(! *{_LABEL}|{_LABEL}( *(=|==|!=) *({_WORD})?|{_ONE_OF})?)"
SELECTOR: Final = rf"^ *({_TERM} *(, *{_TERM} *)*)?$"
"""A label selector as Kubernetes writes it, or nothing. The schema of the chart's values has the
same pattern."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a user intends is in the custom resource; this is about the process."""

    namespaces: tuple[str, ...] = ()
    """Namespaces to serve; empty serves all."""

    namespace_selector: str = ""
    """Label selector of the namespaces to serve, such as `balancedsource.io/shard=a`. The operator
    follows changes of their labels. It cannot be combined with a list of namespaces. Empty: none.
    """

    resync: float = 60.0
    """Seconds after which a source is checked even without an event, in case one was lost. Where
    a query reads what is assigned, and there is no problem and nothing to do, five times as long.
    """

    save_interval: float = 30.0
    """Seconds between stores of the enumerator state when only positions have moved."""

    stuck_after: float = 300.0
    """Seconds that a SparkApplication may stay in a transitional state before it is deleted and
    recreated."""

    retry_failed_after: float = 30.0
    """Seconds after which a failed SparkApplication is recreated."""

    gate_deadline: float = 300.0
    """Seconds that a recovery may wait for readers before a condition names the missing ones."""

    max_restarts: int = MAX_RESTARTS
    """Number of sources that may restart at the same time because their settings or those of the
    chart changed. The others wait, with the condition RestartPending. First starts and restarts
    after failures are not counted."""

    spark_conf: Mapping[str, str] = field(default_factory=dict)
    """Spark configuration for every application. A BalancedSource overrides it."""

    metrics_port: int = 8080
    """Port of /metrics; 0 serves none."""

    driver_metrics_port: int = 8090
    """Port on which the drivers of new applications serve Prometheus metrics; 0 serves none."""

    probe_port: int = 8081
    """Port of /healthz and /readyz; 0 serves none."""

    page_port: int = 0
    """Port of the status page; 0 serves none."""

    page_host: str = "127.0.0.1"
    """Address that the status page listens on.

    Only `kubectl port-forward` reaches the default; a Service needs 0.0.0.0.
    """

    page_token_file: str = ""
    """File with the token that opens the status page.

    Without it, the API server checks each viewer's token (TokenReview) and whether the user may get
    BalancedSources (SubjectAccessReview).
    """

    documentation_url: str = ""
    """Address of your copy of the documentation site. Messages of the operator and of new drivers
    link to its pages. Empty: the address that the package names."""

    lease_namespace: str = ""
    """Namespace of the Lease by which replicas elect a leader; empty runs without election."""

    instance: str = ""
    """Name of this installation in the status of its sources.

    Two installations that serve the same source notice each other by it. Empty: none.
    """

    identity: str = "balanced-source-operator"
    """Name of this replica, for the Lease and for events."""


def settings_from(environment: Mapping[str, str]) -> Settings:
    """Read the settings.

    Raises:
        InvalidSpecError: names the variable.
    """

    def number(name: str, default: float) -> float:
        value = environment.get(PREFIX + name, "")
        try:
            return float(value) if value else default
        except ValueError as error:
            raise InvalidSpecError(f"a number, not {value!r}", field=PREFIX + name) from error

    default = Settings()
    namespaces = separated(environment.get(PREFIX + "NAMESPACES", ""))
    return Settings(
        namespaces=namespaces,
        namespace_selector=_selector(
            environment.get(PREFIX + "NAMESPACE_SELECTOR", ""), namespaces
        ),
        resync=number("RESYNC_SECONDS", default.resync),
        save_interval=number("SAVE_INTERVAL_SECONDS", default.save_interval),
        stuck_after=number("STUCK_AFTER_SECONDS", default.stuck_after),
        retry_failed_after=number("RETRY_FAILED_AFTER_SECONDS", default.retry_failed_after),
        gate_deadline=number("GATE_DEADLINE_SECONDS", default.gate_deadline),
        max_restarts=_max_restarts(environment.get(PREFIX + "MAX_RESTARTS", "")),
        spark_conf=_spark_conf(environment.get(PREFIX + "SPARK_CONF", "{}")),
        metrics_port=int(number("METRICS_PORT", default.metrics_port)),
        driver_metrics_port=int(number("DRIVER_METRICS_PORT", default.driver_metrics_port)),
        probe_port=int(number("PROBE_PORT", default.probe_port)),
        page_port=int(number("PAGE_PORT", default.page_port)),
        page_host=environment.get(PREFIX + "PAGE_HOST", "") or default.page_host,
        page_token_file=environment.get(PREFIX + "PAGE_TOKEN_FILE", default.page_token_file),
        documentation_url=environment.get(DOCUMENTATION, default.documentation_url),
        lease_namespace=environment.get(PREFIX + "LEASE_NAMESPACE", default.lease_namespace),
        instance=environment.get(PREFIX + "INSTANCE", default.instance),
        identity=environment.get(PREFIX + "IDENTITY", default.identity),
    )


def _selector(text: str, namespaces: tuple[str, ...]) -> str:
    name = PREFIX + "NAMESPACE_SELECTOR"
    if not re.fullmatch(SELECTOR[1:-1], text):
        message = (
            f"{shown(text)} is not a label selector: write it as for `kubectl get -l`, such as"
            " balancedsource.io/shard=a, or balancedsource.io/shard in (a,b)"
        )
        raise InvalidSpecError(message, field=name)
    if text.strip() and namespaces:
        message = (
            f"{shown(text)} cannot be combined with {PREFIX}NAMESPACES={','.join(namespaces)}:"
            " select namespaces either by their labels or by their names"
        )
        raise InvalidSpecError(message, field=name)
    return text.strip()


def _max_restarts(text: str) -> int:
    if text and not (text.isascii() and text.isdigit() and int(text) > 0):
        raise InvalidSpecError(
            f"a whole number from 1 on, not {text!r}", field=PREFIX + "MAX_RESTARTS"
        )
    return int(text) if text else MAX_RESTARTS


def _spark_conf(text: str) -> Mapping[str, str]:
    try:
        return {str(key): str(value) for key, value in json.loads(text).items()}
    except (ValueError, AttributeError) as error:
        raise InvalidSpecError("a JSON object of strings", field=PREFIX + "SPARK_CONF") from error
