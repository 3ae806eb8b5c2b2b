"""Local mode says what the operator's conditions say, and continues where the operator does."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from structlog.testing import capture_logs

from balanced_source.api import Problem
from balanced_source.documents import report as report_document
from balanced_source.documents.report import HostReport
from balanced_source_adapters.folder import report_path, write_atomically
from balanced_source_operator.local import HOST, UID, LocalOperator
from balanced_source_operator.validation.manifests import problems_in
from support.builders import source_body, spec_json
from testbed.waiting import wait_until


class Scene:
    """A file, a folder, and local mode on them."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "orders.yaml"
        self.folder = folder / "documents"
        self.folder.mkdir()
        self.write()
        self.operator = LocalOperator(self.file, self.folder)

    def write(self, **spec: Any) -> None:
        write_atomically(self.file, yaml.safe_dump({"spec": {**spec_json(), **spec}}))

    def write_streams(self, clusters: list[str]) -> None:
        """The file of `clustersFrom`: topic t on each cluster."""
        (self.file.parent / "streams").mkdir(exist_ok=True)
        content = {
            "clusters": [{"name": name, "bootstrapServers": "127.0.0.1:1"} for name in clusters],
            "streams": {"orders": {name: ["t"] for name in clusters}},
        }
        write_atomically(self.file.parent / "streams" / "clusters.yaml", yaml.safe_dump(content))

    def scopes(self) -> tuple[str, ...]:
        self.operator.look()
        found: tuple[str, ...] = self.operator.coordinator.source.scopes()  # type: ignore[attr-defined]
        return found

    def reasons(self) -> list[str]:
        self.operator.look()
        return [str(problem.reason) for problem in self.operator.problems]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.operator.close()


def test_an_invalid_spec_is_a_problem_and_parallelism_takes_effect(scene: Scene) -> None:
    scene.operator.start()
    scene.write(parallelism=7, source={"kafka": {}})

    wait_until(lambda: scene.reasons() == ["InvalidSpec"], 20, "the problem", interval=0.01)
    wait_until(
        lambda: scene.operator.coordinator.state.parallelism == 7, 20, "7 readers", interval=0.01
    )

    scene.write(parallelism=3)
    wait_until(lambda: scene.reasons() == [], 20, "no problem", interval=0.01)
    wait_until(
        lambda: scene.operator.coordinator.state.parallelism == 3, 20, "3 readers", interval=0.01
    )


def test_a_folder_of_clusters_is_followed_from_when_the_spec_names_it(scene: Scene) -> None:
    """Also if it comes later than the spec: a ConfigMap would be found by the next look, too."""
    scene.operator.start()
    streams = {
        "clustersFrom": {"configMapRef": {"name": "streams"}},
        "subscription": {"streams": ["orders"]},
    }
    scene.write(source={"kafka": streams})
    wait_until(lambda: scene.reasons() == ["InvalidSpec"], 20, "the problem", interval=0.01)

    scene.write_streams(["east"])
    wait_until(lambda: scene.scopes() == ("east",), 20, "cluster east", interval=0.01)
    scene.write_streams(["east", "west"])
    wait_until(lambda: scene.scopes() == ("east", "west"), 20, "cluster west", interval=0.01)


def without_parallelism(spec: dict[str, Any]) -> str:
    return yaml.safe_dump({"spec": {k: v for k, v in spec.items() if k != "parallelism"}})


UNUSABLE = {
    "broken YAML": "{",
    "an empty file": "",
    "another object": "kind: ConfigMap\ndata: {}\n",
    "a spec that is no map": "spec: 7\n",
    "a misspelt field": without_parallelism({**spec_json(), "paralelism": 9}),
    "another mistake, and no parallelism": without_parallelism({**spec_json(), "source": {}}),
    "an invalid number": yaml.safe_dump({"spec": {**spec_json(), "parallelism": 0}}),
}


@pytest.mark.parametrize("text", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_a_file_that_cannot_be_used_leaves_the_number_of_readers(scene: Scene, text: str) -> None:
    scene.write(parallelism=3)
    scene.operator.look()

    write_atomically(scene.file, text)

    assert scene.reasons() == ["InvalidSpec"]
    assert scene.operator.parallelism == 3
    (problem,) = scene.operator.problems
    assert problem.message.endswith("\nThe last valid spec stays in effect. Correct the file")


def test_a_mistake_in_an_edit_is_shown_as_validate_shows_it(tmp_path: Path) -> None:
    file = tmp_path / "orders.yaml"
    file.write_text(yaml.safe_dump(source_body(), sort_keys=False))
    operator = LocalOperator(file, tmp_path / "documents", explain=problems_in)
    operator.look()
    file.write_text(file.read_text().replace("  parallelism:", "  paralelism:"))
    operator.look()
    (problem,) = operator.problems
    operator.close()

    first, second = problem.message.splitlines()
    assert first.startswith(f"{file}:")
    assert first.endswith(": error: spec.paralelism: unknown field; did you mean parallelism?")
    assert second == "The last valid spec stays in effect. Correct the file"


def test_a_parallelism_that_takes_effect_beside_a_mistake_is_named(scene: Scene) -> None:
    scene.write(parallelism=7, source={"kafka": {}})
    scene.operator.look()
    (problem,) = scene.operator.problems

    assert problem.message.endswith(
        "\nThe last valid spec stays in effect, with the file's parallelism of 7. Correct the file"
    )


def test_a_file_that_is_away_for_a_moment_leaves_the_number_of_readers(scene: Scene) -> None:
    """Some editors save by moving the old file away first."""
    scene.write(parallelism=3)
    scene.operator.look()
    away = scene.file.rename(scene.file.with_suffix(".old"))

    assert scene.reasons() == ["InvalidSpec"]
    assert scene.operator.parallelism == 3
    (problem,) = scene.operator.problems
    assert problem.message.endswith("\nThe last valid spec stays in effect. Restore the file")
    away.rename(scene.file)
    assert scene.reasons() == []


def test_a_valid_spec_without_parallelism_has_one_reader(scene: Scene) -> None:
    scene.write(parallelism=3)
    scene.operator.look()

    write_atomically(scene.file, without_parallelism(spec_json()))

    assert scene.reasons() == []
    assert scene.operator.parallelism == 1


def test_problems_that_a_driver_reports_are_logged_once(scene: Scene) -> None:
    lost = Problem(
        reason="LogTruncated", message="offsets 7 to 9 of orders/0 are gone", scope="main"
    )
    with capture_logs() as lines:
        for sequence in (1, 2):
            report = HostReport(incarnation=1, sequence=sequence, problems=(lost,))
            write_atomically(
                report_path(scene.folder, HOST), report_document.encode(report, source=UID)
            )
            wait_until(
                lambda: scene.reasons() == ["LogTruncated"], 20, "the problem", interval=0.01
            )

    assert [line["event"] for line in lines if line.get("reason") == "LogTruncated"] == [
        lost.message
    ]
