"""Which channel the options ask for."""

from typing import Any

from balanced_source.api import AsyncCall
from balanced_source.connectors.discovery import Alarm
from balanced_source.connectors.kafka import DiscoverKafka, InitializeKafka
from balanced_source.errors import ContractViolationError
from balanced_source_adapters.kafka_admin import KafkaAdmin
from balanced_source_spark.channels.channel import AssignmentChannel
from balanced_source_spark.channels.embedded import EmbeddedChannel
from balanced_source_spark.channels.folder import FolderChannel
from balanced_source_spark.options import Options
from balanced_source_spark.secrets import MountedSecrets


def open_channel(options: Options) -> AssignmentChannel:
    """A channel that is not started yet."""
    if options.assignment_dir is not None:
        return FolderChannel(options.assignment_dir, source=options.uid or None)
    if options.source is not None:
        return _kubernetes(options.source, options)
    return _embedded(options)


def _kubernetes(source: str, options: Options) -> AssignmentChannel:
    import httpx2
    from lightkube import Client

    from balanced_source_spark.channels.kubernetes import REQUEST_TIMEOUT, KubernetesChannel, in_cluster_config

    client = Client(config=in_cluster_config(), timeout=httpx2.Timeout(REQUEST_TIMEOUT), trust_env=False)
    return KubernetesChannel(client, namespace=options.namespace, source=source, uid=options.uid)


def _embedded(options: Options) -> AssignmentChannel:
    assert options.embedded is not None  # noqa: S101 - parse_options sees to it
    admin = KafkaAdmin(MountedSecrets(options.secrets_dir), client_id="balanced-source-embedded")

    def execute(call: AsyncCall) -> Any:
        match call:
            case DiscoverKafka():
                return admin.discover(call)
            case InitializeKafka():
                return admin.initialize(call)
            case Alarm():
                return None
            case _:
                raise ContractViolationError(f"nobody executes {type(call).__name__}")

    return EmbeddedChannel(options.embedded, execute, parallelism=options.parallelism)
