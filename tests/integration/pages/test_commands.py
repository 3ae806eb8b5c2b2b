"""The commands of the runbooks and of the pages about operations, run on a cluster."""

from pathlib import Path

import pytest

from support.page_commands import Command, Outcome, commands, operations_pages, run
from support.page_table import failure, filled, reason
from support.page_world import PageWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

PAGES = [page for page in operations_pages() if any(not reason(c) for c in commands(page))]


@pytest.fixture(scope="package")
def seen(world: PageWorld) -> dict[str, Outcome]:
    """What commands did that several pages have; they are run once in a world."""
    assert world.source.status["readers"]
    return {}


def play(page: str, world: PageWorld, folder: Path, seen: dict[str, Outcome]) -> list[str]:
    """Run those commands of a page that can be run; return what is wrong."""
    found = [command for command in commands(page) if not reason(command)]
    texts = {c: filled(c, metrics_port=world.metrics_port) for c in found}
    due = [c for c in found if texts[c] not in seen or sets_variable(c)]
    outcomes = run([texts[c] for c in due], folder=folder, environment=world.shell(folder))
    seen.update(zip((texts[c] for c in due), outcomes, strict=True))
    return [text for c in found if (text := failure(c, seen[texts[c]]))]


def sets_variable(command: Command) -> bool:
    return "=" in command.text.split()[0]


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_work(
    page: str, world: PageWorld, tmp_path: Path, seen: dict[str, Outcome]
) -> None:
    failures = play(page, world, tmp_path, seen)

    assert not failures, "\n".join(failures)
