"""Check the built documentation site.

A page never makes a request to another host, and no link leads nowhere.

Links between pages and their anchors are checked by `mkdocs build --strict`; this looks at what the
theme added.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
"""Element → attribute of what a browser fetches by itself."""


class _Page(HTMLParser):
    """Collects what a page loads, and where it links to."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.linked: list[str] = []
        self.has_diagram = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.has_diagram |= tag == "pre" and found.get("class") == "mermaid"
        if tag == "a" and (target := found.get("href")):
            self.linked.append(target)
        is_page = tag == "link" and found.get("rel") in ("canonical", "prev", "next")
        if not is_page and (target := found.get(LOADED.get(tag, ""))):
            self.loaded.append(target)


def main(site: Path) -> int:
    """Print what is wrong; the exit code is 1 if anything is."""
    pages = sorted(site.rglob("*.html"))
    complaints = [complaint for page in pages for complaint in _complaints(site, page)]
    if not any('<pre class="mermaid">' in page.read_text(encoding="utf-8") for page in pages):
        complaints.append("no page has a diagram: mkdocs shows them as code")
    print(
        "\n".join(complaints)
        or f"site: {len(pages)} pages load nothing from elsewhere and have no dead link"
    )
    return 1 if complaints or not pages else 0


def _complaints(site: Path, file: Path) -> list[str]:
    page, name = _Page(), file.relative_to(site)
    page.feed(file.read_text(encoding="utf-8"))
    outside = [f"{name}: loads {target}" for target in page.loaded if urlsplit(target).netloc]
    dead = [
        f"{name}: dead link {link}"
        for link in page.linked
        if file.name != "404.html" and _is_dead(site, file, link)
    ]
    undrawn = page.has_diagram and not any(
        target.endswith("/mermaid.min.js") for target in page.loaded
    )
    return outside + dead + ([f"{name}: a diagram, and nothing that draws it"] if undrawn else [])


def _is_dead(site: Path, file: Path, link: str) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc or not parts.path:
        return False
    target = (
        site / parts.path.lstrip("/") if parts.path.startswith("/") else file.parent / parts.path
    )
    return not (target.is_file() or (target / "index.html").is_file())


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
