"""Which commands of the pages `tests/integration/pages` finds, and how it runs them."""

import re
from pathlib import Path

import pytest

from support import page_table
from support.page_commands import Command, commands, operations_pages, run
from support.page_table import failure, filled, reason

ALL = [command for page in operations_pages() for command in commands(page)]


def command(text: str) -> Command:
    return Command("page.md", 1, text)


def test_commands_in_blocks_and_in_sentences_are_found() -> None:
    texts = [each.text for each in commands("runbooks/BalancedSourceLagGrowing.md")]

    assert texts[0].startswith("NAMESPACE=jobs NAME=orders")
    assert any(text.startswith("DRIVER=$(kubectl get pods") and "tail" in text for text in texts)
    assert texts[-1] == 'kubectl scale bsrc/"$NAME" -n "$NAMESPACE" --replicas=8'


def test_every_runbook_has_commands_that_are_run() -> None:
    pages = {page for page in operations_pages() if page.startswith("runbooks/Balanced")}

    assert len(pages) >= 13
    assert pages == {c.page for c in ALL if c.page in pages and not reason(c)}


def test_no_placeholder_is_left() -> None:
    texts = [filled(each, metrics_port=1) for each in ALL if not reason(each)]

    assert [text for text in texts if "…" in text or "<former" in text or "REGISTRY" in text] == []


@pytest.mark.parametrize(
    "table", [page_table.NOT_RUN, page_table.MAY_FAIL, page_table.MAY_PRINT_NOTHING]
)
def test_every_exception_has_a_reason_and_is_needed(table: dict[str, str]) -> None:
    assert all(table.values())
    assert [key for key in table if not any(re.search(key, each.text) for each in ALL)] == []


def test_commands_share_variables_and_each_tells_its_exit_code(tmp_path: Path) -> None:
    texts = ["A=$(echo one)", 'echo "$A two"', "echo x >&2; false", "cat /nowhere | tail -n 1"]

    outcomes = run(texts, folder=tmp_path, environment={"PATH": "/usr/bin:/bin"})

    assert [(each.code != 0, each.out) for each in outcomes] == [
        (False, "one\n"),
        (False, "one two\n"),
        (True, ""),
        (True, ""),
    ]
    assert "exit code 1" in failure(command("kubectl get x"), outcomes[2])
    assert failure(command("kubectl get x"), outcomes[1]) == ""
    assert "printed nothing" in failure(command("kubectl get x"), outcomes[1]._replace(out=""))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("balanced-source top NAME --watch", "balanced-source top orders"),
        ('kubectl get bsrc "$NAME"', 'kubectl get bsrc "$NAME"'),
        ("kubectl delete x y  # why", "kubectl delete x y  --dry-run=server"),
        (
            'kubectl get --raw "/a/${DRIVER#pod/}:8090/proxy/metrics" | grep ^b',
            "curl --silent --fail http://127.0.0.1:1/metrics | grep ^b",
        ),
    ],
)
def test_placeholders_stand_for_the_objects_of_the_world(text: str, expected: str) -> None:
    assert filled(command(text), metrics_port=1) == expected
