"""Commands that the pages show, and a shell that runs them.

A command is a line of an indented block, or words in backticks, that begins with a program's name.
A program and its subcommand within a sentence are a name.
"""

import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from testbed.versions import CHECKOUT

PROGRAMS: Final = (
    "balanced-source",
    "docker",
    "helm",
    "kafka-transactions.sh",
    "kubectl",
    "make",
    "pip",
)
_FIRST: Final = re.compile(rf"(?:{'|'.join(map(re.escape, PROGRAMS))})(?: |$)|[A-Z_]+=")
_BLOCK: Final = re.compile(r"^ {4,}(?P<line>\S.*)$|^ *(?P<fence>```)")
_INLINE: Final = re.compile(r"`([^`]+)`")
_NAME: Final = 2
"""Words within a sentence that name a command, such as `balanced-source doctor`."""
_BULLET: Final = re.compile(r"^ *(?:[-*]|\d+\.) ")
_VARIABLE: Final = re.compile(r"(\w+)=\$\(")


class Command(NamedTuple):
    """A command of a page.

    Attributes:
        page: path below `docs`.
        line: where it begins.
        text: as it is written, on one line if backslashes continue it.
    """

    page: str
    line: int
    text: str


class Outcome(NamedTuple):
    """What a command did.

    Attributes:
        code: exit code.
        out: standard output.
        err: standard error.
    """

    code: int
    out: str
    err: str


def operations_pages() -> list[str]:
    """Return the pages of the menu about operations, and those that install and upgrade."""
    menu = (CHECKOUT / "mkdocs.yml").read_text(encoding="utf-8")
    section = menu.partition("\n- Operations:\n")[2].partition("\n- ")[0]
    more = ["install.md", "how-to/status-page.md", "how-to/upgrades.md"]
    return [*re.findall(r"(\S+\.md)$", section, re.MULTILINE), *more]


def commands(page: str) -> list[Command]:
    """Return the commands of a page, from top to bottom."""
    lines = (CHECKOUT / "docs" / page).read_text(encoding="utf-8").splitlines()
    return [Command(page, number, text) for number, text in _found(lines) if _FIRST.match(text)]


def _found(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    pending, begin, is_fenced = "", 0, False
    for number, line in enumerate(lines, 1):
        found = _BLOCK.match(line)
        if found is not None and found["fence"]:
            is_fenced = not is_fenced
        elif is_fenced:
            continue
        elif found is not None and not _BULLET.match(line):
            begin = begin if pending else number
            pending += found["line"]
            if pending.endswith("\\"):
                pending = pending[:-1]
            elif _is_whole(pending):
                yield begin, pending.removeprefix("$ ")
                pending = ""
            else:
                pending += "\n"
        else:
            words = _INLINE.findall(line)
            yield from ((number, text) for text in words if len(text.split()) > _NAME)


def _is_whole(text: str) -> bool:
    """Whether all quotes are closed."""
    try:
        shlex.split(text, comments=True)
    except ValueError:
        return not _FIRST.match(text)
    return True


def run(texts: Sequence[str], *, folder: Path, environment: Mapping[str, str]) -> list[Outcome]:
    """Run commands one after the other in one shell, which keeps their variables.

    Args:
        texts: of the commands.
        folder: where they run, and what they print is kept.
        environment: of the shell.
    """
    script = ["set -uo pipefail"]
    for number, text in enumerate(texts):
        # A variable that stays empty is as useless as a command that prints nothing.
        show = f'\nprintf "%s\\n" "${found[1]}"' if (found := _VARIABLE.match(text)) else ""
        files = f'>"{folder}/out.{number}" 2>"{folder}/err.{number}"'
        script.append(f"{{ {text}\ncode=$?{show}\n}} {files}\necho $code")
    done = subprocess.run(  # noqa: S603 - the commands of our own pages
        ["/bin/bash", "-c", "\n".join(script)],
        cwd=folder,
        env=dict(environment),
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )
    return [
        Outcome(
            int(code),
            (folder / f"out.{number}").read_text(encoding="utf-8"),
            (folder / f"err.{number}").read_text(encoding="utf-8"),
        )
        for number, code in enumerate(done.stdout.split())
    ]
