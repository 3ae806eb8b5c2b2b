"""The site's menu: a page that it does not name is found by no one who does not know it."""

import re

from testbed.versions import CHECKOUT


def test_the_menu_names_every_page() -> None:
    menu = (CHECKOUT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    named = re.findall(r"^\s*- (?:[^:\n]+: )?(\S+\.md)$", menu, re.MULTILINE)
    pages = {str(page.relative_to(CHECKOUT / "docs")) for page in (CHECKOUT / "docs").rglob("*.md")}

    assert set(named) == pages
    assert len(named) == len(pages), "once each"
