"""The files of docs/writing-a-connector.md, as its table puts them together."""

import re
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from testbed.versions import CHECKOUT

PAGE: Final = CHECKOUT / "docs" / "writing-a-connector.md"
_ROW: Final = re.compile(r"^\| `(\w+\.\w+)` \| (.*?) \|", re.MULTILINE)
_SECTION: Final = re.compile(r"\[([^]]+)\]\(#")
_BLOCK: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LANGUAGES: Final = {".py": "python", ".toml": "toml"}


class Block(NamedTuple):
    """A block of the page.

    Attributes:
        language: that the page names.
        code: without the line break at its end.
    """

    language: str
    code: str


def blocks() -> list[Block]:
    """Return all blocks of the page, from top to bottom."""
    return [Block(language, code.rstrip("\n")) for language, code in _BLOCK.findall(_page())]


def text() -> str:
    """Return the page without its blocks."""
    return _BLOCK.sub("", _page())


def files() -> Mapping[str, str]:
    """Return the content of each file that a reader of the page makes, by its name."""
    return {
        name: "\n".join(_blocks(_LANGUAGES[Path(name).suffix], _SECTION.findall(cell)))
        for name, cell in _ROW.findall(_page())
    }


def execute(name: str) -> types.ModuleType:
    """Execute a file of the page as the module that it would be, and return the module."""
    module = types.ModuleType(Path(name).stem)
    sys.modules[module.__name__] = module  # dataclasses, and the other files, look it up
    exec(compile(files()[name], name, "exec"), module.__dict__)  # noqa: S102 - the page's own code
    return module


def unused() -> list[str]:
    """Return the blocks of code that belong to no file."""
    used, in_files = "\n".join(files().values()), _LANGUAGES.values()
    return [b.code for b in blocks() if b.language in in_files and b.code not in used]


def _page() -> str:
    return PAGE.read_text(encoding="utf-8")


def _blocks(language: str, sections: list[str]) -> list[str]:
    page = re.split(r"^## ", _page(), flags=re.MULTILINE)
    texts = {section.partition("\n")[0]: section for section in page}
    return [
        code
        for section in sections
        for kind, code in _BLOCK.findall(texts[section])
        if kind == language
    ]
