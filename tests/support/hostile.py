"""Every string of a spec, replaced by values that break out of a URL, a path or a command line."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args, get_origin

from pydantic import BaseModel, RootModel

Path: TypeAlias = tuple[str | int, ...]
"""Keys and indices from the spec on. A last part ``#`` stands for the key of a map itself."""

KEY: Final = "#"

HOSTILE: Final = (
    "../../victim/secrets/kafka",
    "..",
    ".",
    "a/b",
    "/etc/passwd",
    "a?fieldSelector=b",
    "a#b",
    "a%2F..%2Fb",
    "a\\b",
    "a\x00b",
    "a\nb",
    "a\n",
    "a\r\nHost: b",
    "--conf",
    "-Dx",
    "$(id)",
    "`id`",
    "a;b",
    "a,b",
    "a b",
    " ",
    "",
    "é",
    "\u202ea",
    "a" * 5000,
)

FULL: Final[dict[str, Any]] = {
    "parallelism": 2,
    "autoscaling": {"maxReaders": 8, "maxLag": "60s", "scaleDownDelay": "5m"},
    "assignment": {"strategy": "RoundRobin", "rebalance": {"mode": "Drift", "minInterval": "10m"}},
    "source": {
        "kafka": {
            "clusters": [
                {
                    "name": "main",
                    "bootstrapServers": "broker:9092",
                    "properties": {"client.rack": "a"},
                    "propertiesFrom": [{"secretRef": {"name": "kafka"}}],
                    "startingOffsets": {"type": "Committed", "group": "g", "reset": "Latest"},
                    "stoppingOffsets": {"type": "Specific", "offsets": {"orders": {"0": 9}}},
                }
            ],
            "enumeratorMode": "Global",
            "removedClusterRetention": "168h",
            "subscription": {
                "topics": ["orders"],
                "topicPattern": "o.*",
                "excludePattern": "x.*",
                "partitions": [{"topic": "orders", "partitions": [0]}],
                "streams": ["orders"],
                "streamPattern": "o.*",
            },
            "startingOffsets": {
                "type": "Specific",
                "offsets": {"orders": {"0": 1}},
                "unlisted": "Committed",
                "group": "g",
                "topics": [
                    {"topic": "orders", "type": "Timestamp", "timestamps": {"orders": {"0": 1}}}
                ],
            },
            "stoppingOffsets": {
                "type": "Committed",
                "group": "g",
                "topics": [
                    {"topic": "orders", "type": "Timestamp", "timestamps": {"orders": {"0": 1}}}
                ],
            },
            "onDataLoss": "Fail",
            "commitGroup": "lag",
            "limits": {"maxTriggerDelay": "15m"},
            "discovery": {"interval": "5m"},
        }
    },
    "application": {
        "provider": "Kubeflow",
        "image": "balanced-source/spark:4.2.0",
        "imagePullPolicy": "Always",
        "imagePullSecrets": ["registry"],
        "sparkVersion": "4.2.0",
        "mainApplicationFile": "local:///opt/balanced-source/app.py",
        "arguments": ["--verbose"],
        "sparkConf": {"spark.ui.enabled": "false"},
        "sparkConfFrom": [{"secretRef": {"name": "storage"}}],
        "serviceAccount": "spark",
        "hostLossPolicy": {"type": "Reassign", "after": "5m", "guarantee": "AtLeastOnce"},
        "restart": {
            "policy": "Window",
            "window": {"days": ["Sat"], "start": "02:00", "duration": "2h"},
            "strategy": "Recreate",
            "rollbackAfter": "5m",
        },
        "pipeline": {
            "transform": "module:function",
            "sink": {
                "format": "parquet",
                "options": {"path": "/data"},
                "optionsFrom": [{"secretRef": {"name": "sink"}}],
                "partitionBy": ["topic"],
            },
            "trigger": {"processingTime": "500ms"},
            "checkpointLocation": "/data/checkpoint",
            "columns": ["value"],
            "executorPatience": "30s",
            "alignment": {"maxDrift": "1m", "idleTimeout": "30s", "group": "g"},
            "acceptCheckpointOf": "jobs/orders",
        },
        "driver": {"memory": "1g"},
        "executor": {"memory": "1g"},
    },
}
"""A spec in which every string is set."""

FROM_CONFIG_MAP: Final = {
    "clustersFrom": {"configMapRef": {"name": "streams", "key": "clusters.yaml"}}
}


FULL_FILES: Final[dict[str, Any]] = {
    **FULL,
    "source": {
        "files": {
            "paths": ["s3://bucket/orders/*.json"],
            "format": "Json",
            "schema": "id BIGINT, name STRING",
            "records": {
                "mode": "Permissive",
                "corruptColumn": "broken",
                "separator": ";",
                "quote": "'",
                "escape": "!",
                "nullValue": "none",
            },
            "s3": {
                "endpoint": "https://store.example.org:9000",
                "region": "eu-1",
                "secret": "store",
                "notificationQueue": "https://queues.example.org/1234/orders",
            },
            "discoveryInterval": "10s",
            "lateWindow": "1h",
            "onLoss": "Skip",
        }
    },
}

_FILES: Final = {"format": "Text", "lateWindow": "1h"}

FULL_GCS: Final[dict[str, Any]] = {
    **FULL,
    "source": {
        "files": {
            **_FILES,
            "paths": ["gs://bucket/orders/*.txt"],
            "gcs": {"endpoint": "https://store.example.org:9000", "secret": "store"},
        }
    },
}

FULL_AZURE: Final[dict[str, Any]] = {
    **FULL,
    "source": {
        "files": {
            **_FILES,
            "paths": ["az://container/orders/*.txt"],
            "azure": {
                "endpoint": "https://store.example.org:9000",
                "account": "lake",
                "secret": "store",
            },
        }
    },
}

FULL_KINESIS: Final[dict[str, Any]] = {
    **FULL,
    "application": {
        name: value for name, value in FULL["application"].items() if name != "pipeline"
    },
    "source": {
        "kinesis": {
            "streams": ["orders", "arn:aws:kinesis:eu-west-1:123456789012:stream/sales"],
            "region": "eu-west-1",
            "endpoint": "https://kinesis.example.org:4567",
            "secret": "streams",
            "startingPosition": {
                "type": "SequenceNumbers",
                "sequenceNumbers": {
                    "orders": {"shardId-000000000001": "49590338271490256608559692538361571095921"}
                },
            },
            "discoveryInterval": "10s",
            "removedStreamRetention": "168h",
            "onDataLoss": "Continue",
        }
    },
}

_HISTORY: Final = {
    **{k: v for k, v in FULL_FILES["source"]["files"].items() if k != "discoveryInterval"},
    "format": "Parquet",
}
_LIVE: Final = {
    "clusters": [
        {
            "name": "main",
            "bootstrapServers": "b:9092",
            "propertiesFrom": [{"secretRef": {"name": "brokers"}}],
        }
    ],
    "subscription": {"topics": ["orders"]},
}
_OFFSETS: Final = {
    "topic": "topic",
    "partition": "partition",
    "offset": "offset",
    "topicIds": {"orders": "e5KQvvYqT+e+EfwofZMpPA"},
}

FULL_HYBRID: Final[dict[str, Any]] = {
    **FULL,
    "source": {
        "hybrid": [{"files": _HISTORY}, {"kafka": _LIVE, "startAfter": {"offsets": _OFFSETS}}]
    },
}

FULL_HYBRID_BY_TIME: Final[dict[str, Any]] = {
    **FULL,
    "source": {"hybrid": [{"files": _HISTORY}, {"kafka": _LIVE, "startAfter": {"time": "at"}}]},
}


def strings(value: Any, at: Path = ()) -> Iterator[Path]:
    """Yields the path of every string in a manifest, and of every key that users choose."""
    if isinstance(value, str):
        yield at
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if is_free(at):
                yield (*at, key, KEY)
            yield from strings(inner, (*at, key))
    elif isinstance(value, Sequence):
        for index, inner in enumerate(value):
            yield from strings(inner, (*at, index))


_FREE: Final = ("properties", "offsets", "timestamps", "options", "sparkConf", "sequenceNumbers")
_FREE_TWICE: Final = ("offsets", "timestamps", "sequenceNumbers")


def is_free(path: Path) -> bool:
    """Whether users choose the keys of the map there."""
    if path[-2:] == ("startAfter", "offsets"):
        return False
    return bool(path) and (path[-1] in _FREE or (len(path) > 1 and path[-2] in _FREE_TWICE))


def replaced(manifest: Mapping[str, Any], path: Path, value: str) -> dict[str, Any]:
    """Returns a copy in which the string, or the key, at a path is another one."""
    result = copy.deepcopy(dict(manifest))
    is_key = path[-1] == KEY
    *above, last = path[:-1] if is_key else path
    place: Any = result
    for step in above:
        place = place[step]
    if is_key:
        place[value] = place.pop(last)
    else:
        place[last] = value
    return result


def model_strings(annotation: Any, at: str = "") -> Iterator[str]:
    """Yields the dotted path of every string that a pydantic model can hold.

    List indices and map keys left out.
    """
    if isinstance(annotation, type) and issubclass(annotation, RootModel):
        yield from model_strings(annotation.model_fields["root"].annotation, at)
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, info in annotation.model_fields.items():
            yield from model_strings(info.annotation, f"{at}.{info.alias or name}".lstrip("."))
    elif get_origin(annotation) is Annotated:
        yield from model_strings(get_args(annotation)[0], at)
    elif get_origin(annotation) is Literal or (
        isinstance(annotation, type) and issubclass(annotation, str)
    ):
        yield at
    else:
        for argument in get_args(annotation):
            yield from model_strings(argument, at)


def dotted(path: Path) -> str:
    """Returns the path as `model_strings` writes it."""
    names = [
        str(step)
        for index, step in enumerate(path)
        if step != KEY and not isinstance(step, int) and not is_free(path[:index])
    ]
    return ".".join(names)
