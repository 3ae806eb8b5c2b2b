"""The changelog says each thing once."""

import re
from collections import Counter
from collections.abc import Iterator

from testbed.versions import CHECKOUT

TEXT = (CHECKOUT / "CHANGELOG.md").read_text(encoding="utf-8")
_ENTRY = re.compile(r"^- .*\n(?:^  .*\n)*", re.MULTILINE)


def entries(text: str) -> Iterator[str]:
    """Entries under Unreleased: in one line, without marks, so that a new line break is none."""
    unreleased = text.partition("\n## [Unreleased]\n")[2].partition("\n## ")[0]
    return (" ".join(re.findall(r"\w+", entry)).lower() for entry in _ENTRY.findall(unreleased))


def repeated(text: str) -> set[str]:
    return {entry for entry, times in Counter(entries(text)).items() if times > 1}


def test_no_entry_occurs_twice_before_a_release() -> None:
    assert repeated(TEXT) == set()


def test_an_entry_in_other_lines_or_in_another_section_is_a_repetition() -> None:
    text = "\n## [Unreleased]\n\n### Added\n\n- An alert\n  that says `why`.\n- A panel.\n"

    assert repeated(f"{text}\n### Fixed\n\n- An alert that\n  says why.\n") == {
        "an alert that says why"
    }
    assert repeated(f"{text}\n## [1.0.0]\n\n- A panel.\n") == set()
