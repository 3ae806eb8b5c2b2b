"""Which channel the options ask for; only that one is loaded, with its client."""

from balanced_source.api import Caller
from balanced_source_spark.channels.channel import AssignmentChannel
from balanced_source_spark.options import Options

LOCAL_UID = "local"
"""What local mode writes as uid into its documents."""


def open_channel(options: Options) -> AssignmentChannel:
    """A channel that is not started yet."""
    if options.assignment_dir is not None:
        from balanced_source_spark.channels.folder import FolderChannel

        return FolderChannel(options.assignment_dir, source=options.uid or LOCAL_UID)
    if options.source is not None:
        return _kubernetes(options.source, options)
    return _embedded(options)


def _kubernetes(source: str, options: Options) -> AssignmentChannel:
    import httpx2
    from lightkube import Client

    from balanced_source_spark.channels.kubernetes import (
        REQUEST_TIMEOUT,
        KubernetesChannel,
        in_cluster_config,
    )

    client = Client(
        config=in_cluster_config(), timeout=httpx2.Timeout(REQUEST_TIMEOUT), trust_env=False
    )
    return KubernetesChannel(
        client, namespace=options.namespace, source=source, uid=options.uid, host=options.host
    )


def _embedded(options: Options) -> AssignmentChannel:
    from balanced_source_adapters.connectors import installed
    from balanced_source_adapters.coordinator_loop import with_alarms
    from balanced_source_adapters.folder import FolderStore, state_path
    from balanced_source_adapters.mistakes import explained
    from balanced_source_spark.channels.embedded import EmbeddedChannel

    assert options.embedded is not None  # noqa: S101 - parse_options sees to it
    source, secrets = options.embedded, options.secrets
    connector = installed().of(source)
    with explained(options.connector, "executor"):
        execute = connector.executor(
            secrets, caller=Caller.OWNER, client_id="balanced-source-embedded"
        )
    state = FolderStore(state_path(options.state_dir)) if options.state_dir is not None else None
    return EmbeddedChannel(
        source, with_alarms(execute), parallelism=options.parallelism, state=state
    )
