"""Flink's configuration.

Its scripts work the memory of a task manager out; without them each part must be given.
"""

from collections.abc import Mapping
from pathlib import Path

from testbed.ports import LOOPBACK

LOGGING = """\
rootLogger.level = WARN
rootLogger.appenderRef.out.ref = out
appender.out.name = out
appender.out.type = CONSOLE
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %-5p %c - %m%n
"""

HEAP = 1024 + 128
"""Megabytes of a task manager: for tasks, and for Flink itself."""

_MEMORY = {
    "cpu.cores": "2.0",
    "memory.task.heap.size": "1024m",
    "memory.task.off-heap.size": "0",
    "memory.framework.heap.size": "128m",
    "memory.framework.off-heap.size": "128m",
    "memory.network.min": "64m",
    "memory.network.max": "64m",
    "memory.managed.size": "64m",
    "memory.jvm-metaspace.size": "256m",
    "memory.jvm-overhead.min": "192m",
    "memory.jvm-overhead.max": "192m",
}


def configuration(
    *, slots: int, rpc: int, rest: int, gateway: int, temporary: Path
) -> dict[str, str]:
    """All settings of a session cluster on loopback.

    Args:
        slots: of the task manager.
        rpc: port of the job manager.
        rest: port of the job manager's HTTP interface.
        gateway: port of the SQL gateway.
        temporary: folder for files that need not stay.
    """
    addresses = (
        *(
            "jobmanager.rpc.address",
            "jobmanager.bind-host",
            "taskmanager.host",
            "taskmanager.bind-host",
        ),
        *("rest.address", "rest.bind-address"),
        *("sql-gateway.endpoint.rest.address", "sql-gateway.endpoint.rest.bind-address"),
    )
    return {
        **dict.fromkeys(addresses, LOOPBACK),
        **{f"taskmanager.{key}": value for key, value in _MEMORY.items()},
        "taskmanager.numberOfTaskSlots": str(slots),
        "jobmanager.rpc.port": str(rpc),
        "rest.port": str(rest),
        "sql-gateway.endpoint.rest.port": str(gateway),
        # milliseconds; what the interface tells is otherwise up to 3 s old
        "web.refresh-interval": "50",
        "io.tmp.dirs": str(temporary),
    }


def as_text(settings: Mapping[str, str]) -> str:
    """The content of `config.yaml`."""
    return "".join(f"{key}: {value}\n" for key, value in settings.items())
