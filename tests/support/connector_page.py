"""The files of docs/writing-a-connector.md, as its table puts them together."""

import re
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from testbed.versions import CHECKOUT

PAGE: Final = CHECKOUT / "docs" / "writing-a-connector.md"
_ROW: Final = re.compile(r"^\| `(\w+\.\w+)` \| (.*?) \|", re.MULTILINE)
_SECTION: Final = re.compile(r"\[([^]]+)\]\(#")
_BLOCK: Final = re.compile(r"^```(python|toml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LANGUAGES: Final = {".py": "python", ".toml": "toml"}


def files() -> Mapping[str, str]:
    """Return the content of each file that a reader of the page makes, by its name."""
    return {
        name: "\n".join(_blocks(_LANGUAGES[Path(name).suffix], _SECTION.findall(cell)))
        for name, cell in _ROW.findall(PAGE.read_text(encoding="utf-8"))
    }


def execute(name: str) -> types.ModuleType:
    """Execute a file of the page as the module that it would be, and return the module."""
    module = types.ModuleType(Path(name).stem)
    sys.modules[module.__name__] = module  # dataclasses, and the other files, look it up
    exec(compile(files()[name], name, "exec"), module.__dict__)  # noqa: S102 - the page's own code
    return module


def unused() -> list[str]:
    """Return the blocks that belong to no file."""
    used = "\n".join(files().values())
    return [
        code for _, code in _BLOCK.findall(PAGE.read_text(encoding="utf-8")) if code not in used
    ]


def _blocks(language: str, sections: list[str]) -> list[str]:
    page = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    texts = {text.partition("\n")[0]: text for text in page}
    return [
        code
        for section in sections
        for kind, code in _BLOCK.findall(texts[section])
        if kind == language
    ]
