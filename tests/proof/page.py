"""``python -m proof.page``.

Writes the generated parts of docs/protocol.md, between their markers.
"""

import re
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any, Final

from balanced_source.lifecycles import LIFECYCLES, Lifecycle
from proof.closures import LARGE, LIVES, SMALL
from proof.mutants import MUTANTS
from proof.show import budget_of, size_of
from proof.unreached import REASONS
from proof.values import Setting

PAGE: Final = Path(__file__).parents[2] / "docs" / "protocol.md"


def diagram(life: Lifecycle[Any, Any]) -> str:
    """A life cycle in Mermaid's language, and its events in words."""
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {life.first.value}"]
    lines += [f"    {row.phase} --> {row.target}: {row.event}" for row in life.rows()]
    return "\n".join([*lines, "```", "", *_phases(type(life.first))])


def closures(settings: Iterable[Setting]) -> str:
    """What is explored."""
    rows = [
        f"| {s.name} | {size_of(s)} | {s.records} | {budget_of(s.budget)} |"
        f" {'; '.join(_more(s)) or '–'} |"
        for s in settings
    ]
    head = [
        "| closure | readers × splits × hosts | records | disturbances | besides |",
        "|---|---|---|---|---|",
    ]
    return "\n".join([*head, *rows])


def mutants() -> str:
    """What is broken on purpose."""
    rows = [
        f"| {m.name} | {m.rule} | {', '.join(m.repeats) or '–'} | `{m.where.rsplit(':')[-1]}` |"
        for m in MUTANTS
    ]
    return "\n".join(
        ["| seeded bug | rule that it breaks | repeats | in |", "|---|---|---|---|", *rows]
    )


def unreached() -> str:
    """What the exploration does not execute, and why."""
    rows = [
        f"| `{where.removeprefix('balanced_source')}` | {reason} |"
        for where, reason in REASONS.items()
    ]
    return "\n".join(["| code | why it is not executed |", "|---|---|", *rows])


def parts() -> dict[str, str]:
    """All generated parts by the names of their markers."""
    named = zip(("split", "reader", "host", "source"), LIFECYCLES, strict=True)
    return {
        **{f"life of a {name}": diagram(life) for name, life in named},
        "large closures": closures(LARGE),
        "small closures": closures(SMALL),
        "random lives": closures(LIVES),
        "seeded bugs": mutants(),
        "code that is not executed": unreached(),
    }


def written(page: str) -> str:
    """The page with its generated parts again.

    Raises:
        ValueError: a marker is missing.
    """
    for name, text in parts().items():
        pattern = re.compile(
            rf"(<!-- generated: {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL
        )
        if not pattern.search(page):
            raise ValueError(f"docs/protocol.md has no marker for {name!r}")
        page = pattern.sub(lambda found, text=text: f"{found[1]}{text}\n{found[2]}", page)  # type: ignore[misc]
    return page


def _phases(phases: type[Enum]) -> Iterator[str]:
    """The meaning of each phase, from the docstring of its class."""
    for name, meaning in re.findall(
        r"^ {4}([A-Z_]+): (.+?)(?=\n {4}[A-Z_]+: |\n\s*\Z|\Z)",
        phases.__doc__ or "",
        re.DOTALL | re.MULTILINE,
    ):
        yield f"- **{phases[name].value}**: {' '.join(meaning.split())}"


def _more(setting: Setting) -> Iterator[str]:
    if not setting.is_periodic:
        yield "discovery once"
    if setting.begins_latest:
        yield "starts at the latest offsets"
    if setting.are_drivers_early:
        yield "drivers may start before the operator"
    if setting.retention:
        yield "positions of removed splits are kept"
    if setting.strategy != "RoundRobin":
        yield f"strategy {setting.strategy}"
    if setting.is_bounded:
        yield "ends where the splits ended at first"
    if setting.has_executors:
        yield "a larger parallelism waits for executors"
    if setting.may_lose:
        yield "`onDataLoss: Continue`"
    if setting.may_repeat:
        yield "`guarantee: AtLeastOnce`"
    if len(setting.variants) > 1:
        yield "clusters: " + " or ".join(map(_clusters, setting.variants))


def _clusters(variant: tuple[str, ...]) -> str:
    return " and ".join(
        f"{name[1:]} (not read now)" if name.startswith("-") else name for name in variant
    )


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
