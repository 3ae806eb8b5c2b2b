"""Kafka as a connector; see `Connector`.

The client library is imported when the first call is executed.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, assert_never

from balanced_source.api import (
    AsyncCall,
    Caller,
    CallExecutor,
    Connector,
    Identity,
    NamedSecrets,
    SecretReader,
    Source,
)
from balanced_source.connectors.kafka import (
    ASKED_SERVER,
    DiscoverKafka,
    InitializeKafka,
    KafkaCluster,
    KafkaSource,
    check_not_lending,
)
from balanced_source.connectors.kafka.settings import KIND
from balanced_source.errors import ContractViolationError
from balanced_source_adapters.addresses import check_endpoint

OPERATOR_CLIENT: Final = "balanced-source-operator"
"""What brokers see of the operator: sources with the same credentials share its clients."""


class KafkaConnector(Connector):
    """Topics on one Kafka cluster or many."""

    kind: Final = KIND
    operator: Final = "balanced_source_operator.kafka.half:KafkaOperatorHalf"
    spark: Final = "balanced_source_spark.kafka.half:KafkaSparkHalf"

    def executor(self, secrets: SecretReader, *, caller: Caller, client_id: str) -> CallExecutor:
        from balanced_source_adapters.kafka.admin import KafkaAdmin, clients_of_the_process

        admin = KafkaAdmin(
            _checked(secrets, caller),
            client_id=OPERATOR_CLIENT if caller is Caller.OPERATOR else client_id,
            clients=clients_of_the_process(),
        )

        def execute(call: AsyncCall) -> Any:
            match call:
                case DiscoverKafka():
                    return admin.discover(call)
                case InitializeKafka():
                    return admin.initialize(call)
                case _:
                    raise ContractViolationError(
                        f"the Kafka connector cannot execute a {type(call).__name__}"
                    )

        return execute

    def identity_of(self, call: AsyncCall) -> Identity:
        """The Secrets of the cluster.

        `check_not_lending` sees to it that its properties name no file.
        """
        return NamedSecrets(
            call.cluster.secrets if isinstance(call, DiscoverKafka | InitializeKafka) else ()
        )

    def server_of(self, call: AsyncCall) -> str:
        """The bootstrap servers of the cluster."""
        return (
            call.cluster.bootstrap_servers
            if isinstance(call, DiscoverKafka | InitializeKafka)
            else ""
        )

    def secrets(self, source: Source[Any, Any]) -> tuple[str, ...]:
        """Clusters that are not read now may be read again one day."""
        kafka = _kafka(source)
        return _named((*kafka.clusters, *kafka.inactive))

    def needed_secrets(self, source: Source[Any, Any]) -> tuple[str, ...]:
        return _named(_kafka(source).clusters)


class OwnSecrets:
    """A `SecretReader` for the operator.

    No property may use a file, the address or the identity of the operator's pod.
    """

    def __init__(self, secrets: SecretReader) -> None:
        self._secrets = secrets

    def read(self, name: str) -> Mapping[str, str]:
        """Return the properties in a Secret.

        Raises:
            LookupError: there is no such Secret.
            InvalidSpecError: a property would use what only the operator's pod has.
        """
        found = self._secrets.read(name)
        check_not_lending(found, field=f"Secret {name}")
        check_endpoint(found.get(ASKED_SERVER), field=f"Secret {name}: {ASKED_SERVER}")
        return found


def _checked(secrets: SecretReader, caller: Caller) -> SecretReader:
    match caller:
        case Caller.OPERATOR:
            return OwnSecrets(secrets)
        case Caller.OWNER:
            return secrets
        case _:
            assert_never(caller)


def _kafka(source: Source[Any, Any]) -> KafkaSource:
    if not isinstance(source, KafkaSource):
        raise ContractViolationError(f"{type(source).__name__} is not a Kafka source")
    return source


def _named(clusters: Iterable[KafkaCluster]) -> tuple[str, ...]:
    return tuple(sorted({name for cluster in clusters for name in cluster.secrets}))
