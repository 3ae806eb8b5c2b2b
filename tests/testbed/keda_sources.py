"""KEDA's sources with few of its scalers: half the packages, and none of the SDKs of clouds.

Controllers, the loop that scales, the metrics server and the kept scalers stay KEDA's own. What
this module does not recognise in a later release is an error that names it, never a guess.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from testbed.errors import BuildError

TRIGGERS: Final = (
    "cpu",
    "cron",
    "external",
    "external-push",
    "kafka",
    "memory",
    "metrics-api",
    "prometheus",
)
"""Types of triggers that are kept."""

FILES: Final = (
    "cpu_memory_scaler.go",
    "cron_scaler.go",
    "external_scaler.go",
    "kafka_scaler.go",
    "metrics_api_scaler.go",
    "prometheus_scaler.go",
    "scaler.go",
)
"""Files of `pkg/scalers` that are kept."""

_BUILDER: Final = Path("pkg", "scaling", "scalers_builder.go")
_SCALERS: Final = Path("pkg", "scalers")
_START: Final = "\t// TRIGGERS-START\n\tswitch triggerType {\n"
_END: Final = "\tdefault:\n"
_CASE: Final = re.compile(r'\tcase ("[a-z0-9-]+"(?:, "[a-z0-9-]+")*):\n')
_CONSTANT: Final = re.compile(
    r'^\s*(?:const\s+)?externalMetricType\s*=\s*("[A-Za-z]+")$', re.MULTILINE
)


def trim(module: Path, target: Path) -> None:
    """Copy KEDA's module into a folder, and leave out all scalers but `FILES`.

    Raises:
        BuildError: the sources are not built as expected; the message says where and how.
    """
    shutil.copytree(module, target, copy_function=shutil.copyfile)
    scalers = target / _SCALERS
    missing = [name for name in FILES if not (scalers / name).is_file()]
    if missing:
        raise BuildError(f"KEDA: {_SCALERS} has no {', '.join(missing)}. Correct FILES.")
    constant = shared_constant(
        [file.read_text() for file in sorted(scalers.glob("*.go")) if file.name not in FILES]
    )
    for file in scalers.glob("*.go"):
        if file.name not in FILES:
            file.unlink()
    (scalers / "balanced_source_shared.go").write_text(constant)
    builder = target / _BUILDER
    builder.write_text(with_few_triggers(builder.read_text()))


def shared_constant(dropped: list[str]) -> str:
    """Return a Go file with the constant that kept scalers take from a dropped one.

    Args:
        dropped: the content of all files of scalers that are left out.

    Raises:
        BuildError: none of them, or more than one, defines the constant.
    """
    values = [found for text in dropped for found in _CONSTANT.findall(text)]
    if len(values) != 1:
        raise BuildError(
            f"KEDA: {len(values)} of the dropped files in {_SCALERS} define externalMetricType,"
            " expected one. Find where kept scalers take it from."
        )
    return f"package scalers\n\nconst externalMetricType = {values[0]}\n"


def with_few_triggers(source: str) -> str:
    """Return `scalers_builder.go` without the cases of dropped scalers.

    Raises:
        BuildError: there is no list of cases, a line outside a case, or a case of `TRIGGERS` is
            missing or shared with a dropped trigger.
    """
    head, start, rest = source.partition(_START)
    cases, end, tail = rest.partition(_END)
    if not start or not end:
        raise BuildError(
            f"KEDA: {_BUILDER} has no switch between TRIGGERS-START and its default. Adapt trim()."
        )
    kept = {names: text for names, text in _cases(cases) if _is_kept(names)}
    missing = set(TRIGGERS) - {name for names in kept for name in names}
    if missing:
        raise BuildError(f"KEDA: {_BUILDER} has no case for {', '.join(sorted(missing))}.")
    return head + start + "".join(kept.values()) + end + tail


def _cases(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """The trigger names of each case, and its lines."""
    before, *parts = _CASE.split(text)
    if before.strip():
        raise BuildError(f"KEDA: {_BUILDER} has {before.strip()!r} before its first case.")
    for names, body in zip(parts[::2], parts[1::2], strict=True):
        if "case " in body:
            raise BuildError(f"KEDA: {_BUILDER} has a case of an unknown form: {body.strip()!r}")
        yield tuple(re.findall(r'"([^"]+)"', names)), f"\tcase {names}:\n{body}"


def _is_kept(names: tuple[str, ...]) -> bool:
    kept = [name in TRIGGERS for name in names]
    if any(kept) and not all(kept):
        raise BuildError(f"KEDA: {_BUILDER} has one case for {', '.join(names)}; split TRIGGERS.")
    return all(kept)
