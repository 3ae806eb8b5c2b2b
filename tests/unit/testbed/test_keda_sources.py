"""What is cut out of KEDA's sources, and what is reported as not understood."""

from pathlib import Path

import pytest

from testbed.errors import BuildError
from testbed.keda_sources import FILES, TRIGGERS, shared_constant, trim, with_few_triggers

KEPT = "".join(f'\tcase "{name}":\n\t\treturn scalers.Keep(config)\n' for name in TRIGGERS)
DROPPED = '\tcase "redis", "redis-streams":\n\t\treturn scalers.Drop(config)\n'
DEFAULT = "\tdefault:\n\t\treturn nil\n\t}\n\t// TRIGGERS-END\n}\n"
CONSTANT = 'const (\n\tvalue = 1\n\texternalMetricType             = "External"\n)\n'


def builder(cases: str) -> str:
    return f"func build() {{\n\t// TRIGGERS-START\n\tswitch triggerType {{\n{cases}{DEFAULT}"


def test_cases_of_other_triggers_are_dropped() -> None:
    assert with_few_triggers(builder(DROPPED + KEPT + DROPPED)) == builder(KEPT)


@pytest.mark.parametrize(
    ("cases", "complaint"),
    [
        (KEPT.replace('"kafka"', '"kafka-2"'), "no case for kafka"),
        (KEPT.replace('"kafka"', '"kafka", "redis"'), "one case for kafka, redis"),
        (f"\tx := 1\n{KEPT}", "'x := 1' before its first case"),
        (f"{KEPT}\tcase strings.ToLower(name):\n", "a case of an unknown form"),
    ],
)
def test_what_is_not_understood_is_named(cases: str, complaint: str) -> None:
    with pytest.raises(BuildError, match=complaint):
        with_few_triggers(builder(cases))


def test_a_builder_without_the_list_is_refused() -> None:
    with pytest.raises(BuildError, match="no switch between TRIGGERS-START"):
        with_few_triggers("package scaling\n")


def test_the_constant_of_a_dropped_file_is_kept() -> None:
    made = shared_constant(["package scalers\n", CONSTANT])
    assert made == 'package scalers\n\nconst externalMetricType = "External"\n'


@pytest.mark.parametrize("dropped", [[], [CONSTANT, CONSTANT]])
def test_a_constant_that_is_not_defined_once_is_reported(dropped: list[str]) -> None:
    with pytest.raises(BuildError, match=f"{len(dropped)} of the dropped files"):
        shared_constant(dropped)


def module(folder: Path) -> Path:
    scalers = folder / "pkg" / "scalers"
    (scalers / "kafka").mkdir(parents=True)
    (scalers / "kafka" / "oauth.go").write_text("package kafka\n")
    for name in FILES:
        (scalers / name).write_text("package scalers\n")
    (scalers / "azure_queue_scaler.go").write_text(CONSTANT)
    (folder / "pkg" / "scaling").mkdir()
    (folder / "pkg" / "scaling" / "scalers_builder.go").write_text(builder(DROPPED + KEPT))
    return folder


def test_a_copy_has_only_the_kept_scalers(tmp_path: Path) -> None:
    original, copy = module(tmp_path / "module"), tmp_path / "copy"

    trim(original, copy)

    left = {file.name for file in (copy / "pkg" / "scalers").glob("*.go")}
    assert left == {*FILES, "balanced_source_shared.go"}
    assert (copy / "pkg" / "scalers" / "kafka" / "oauth.go").exists()
    assert (copy / "pkg" / "scaling" / "scalers_builder.go").read_text() == builder(KEPT)
    assert (original / "pkg" / "scalers" / "azure_queue_scaler.go").exists()


def test_a_scaler_that_has_moved_is_named(tmp_path: Path) -> None:
    original = module(tmp_path / "module")
    (original / "pkg" / "scalers" / "kafka_scaler.go").unlink()

    with pytest.raises(BuildError, match=r"has no kafka_scaler.go"):
        trim(original, tmp_path / "copy")
