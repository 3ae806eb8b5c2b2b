"""Look for constructions that are not plain English in what users read.

`make lint` fails when it finds one.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
READ = ("README.md", "docs", ".github", "charts/balanced-source", "crds", "examples")
CODE = ("operator/src", "spark_app/src")
TESTS = ("tests", "operator/src/balanced_source/testing")
SUFFIXES = {".md", ".yaml", ".yml", ".txt", ".ipynb", ".json"}
LEFT_OUT = {"scenarios.md", "protocol.md", "balancedsource.io_balancedsources.yaml"}
"""Names of tests, a page of internals that is still to be rewritten, and a copy: the CRD itself is
read in `crds`."""


def main() -> int:
    """Print what is found; the exit code is 1 if anything is."""
    rules = tomllib.loads((ROOT / ".ci" / "prose.toml").read_text(encoding="utf-8"))
    patterns = [(re.compile(pattern, re.IGNORECASE), advice) for pattern, advice in rules.items()]
    files = [
        *_files(),
        *(file for folder in CODE for file in sorted((ROOT / folder).rglob("*.py"))),
    ]
    found = [complaint for file in files for complaint in _of(file, patterns)]
    for folder in TESTS:
        for file in sorted((ROOT / folder).rglob("*.py")):
            found += _in_names(file, patterns)
    print(
        "\n".join(found) or f"prose: {len(files)} files have none of {len(patterns)} constructions"
    )
    return 1 if found else 0


def _files() -> Iterator[Path]:
    for name in READ:
        path = ROOT / name
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if file.suffix in SUFFIXES and (
                file.name not in LEFT_OUT or file.parent.name == "crds"
            ):
                yield file


def _of(file: Path, patterns: list[tuple[re.Pattern[str], str]]) -> Iterator[str]:
    return _in_code(file, patterns) if file.suffix == ".py" else _complaints(file, patterns)


def _complaints(file: Path, patterns: list[tuple[re.Pattern[str], str]]) -> Iterator[str]:
    text = file.read_text(encoding="utf-8")
    for pattern, advice in patterns:
        for match in pattern.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            yield _complaint(file, line, match[0], advice)


def _in_code(file: Path, patterns: list[tuple[re.Pattern[str], str]]) -> Iterator[str]:
    """Texts of a program: those that it may show, and its docstrings."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for pattern, advice in patterns:
                if match := pattern.search(node.value):
                    yield _complaint(file, node.lineno, match[0], advice)


def _in_names(file: Path, patterns: list[tuple[re.Pattern[str], str]]) -> Iterator[str]:
    """Names of tests are sentences: scenarios.md and reports of failures show them."""
    for match in re.finditer(
        r"^ *(?:async )?def (test_\w+)", file.read_text("utf-8"), re.MULTILINE
    ):
        for pattern, advice in patterns:
            if pattern.search(match[1].replace("_", " ")):
                line = file.read_text("utf-8").count("\n", 0, match.start()) + 1
                yield _complaint(file, line, match[1], advice)


def _complaint(file: Path, line: int, words: str, advice: str) -> str:
    return f"{file.relative_to(ROOT)}:{line}: {' '.join(words.split())!r}: write {advice!r}"


if __name__ == "__main__":
    sys.exit(main())
