"""Hooks of mkdocs.

Diagrams are drawn by a script of the site itself, on the pages that have one. The examples that
pages name are files of the site: a reader of the site need not have a checkout.
"""

import io
import re
import subprocess
import zipfile
from pathlib import Path
from typing import Any, Final

from mkdocs.structure.files import File, Files
from mkdocs.utils import get_relative_url

SCRIPT: Final = "assets/mermaid.min.js"
ROOT: Final = Path(__file__).parent.parent
PROJECT: Final = "examples/connector"
"""A folder, so the site has an archive of it."""

_NAMED: Final = re.compile(r"(?<!\">)<code>(examples/[\w./-]+)</code>")


def on_files(files: Files, config: Any) -> Files:
    """Add the script and the examples to the site."""
    command = [Path(__file__).with_name("diagrams")]
    found = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - ours
    files.append(File.generated(config, SCRIPT, abs_src_path=found.stdout.strip()))
    for example in _tracked("examples"):
        if not example.startswith(f"{PROJECT}/"):
            files.append(File.generated(config, example, abs_src_path=str(ROOT / example)))
    files.append(File.generated(config, f"{PROJECT}.zip", content=_archive()))
    return files


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Link each example that a page names."""
    del config

    def linked(found: re.Match[str]) -> str:
        name = f"{PROJECT}.zip" if found[1] == PROJECT else found[1]
        if files.get_file_from_path(name) is None:
            return found[0]
        return f'<a href="{get_relative_url(name, page.url)}">{found[0]}</a>'

    return _NAMED.sub(linked, html)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Load the script on pages with a diagram, or the theme fetches one from another host."""
    del config
    if '<pre class="mermaid">' not in output:
        return output
    script = f'<script src="{get_relative_url(SCRIPT, page.url)}"></script>'
    return output.replace("</head>", f"{script}</head>", 1)


def _tracked(folder: str) -> list[str]:
    """Return the files of a folder that git knows; others may be a developer's own."""
    command = ["git", "-C", str(ROOT), "ls-files", folder]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - ours
    return done.stdout.splitlines()


def _archive() -> bytes:
    """Return the project of the sample connector, the same bytes for the same files."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in _tracked(PROJECT):
            entry = zipfile.ZipInfo(str(Path(name).relative_to("examples")))
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, (ROOT / name).read_bytes(), zipfile.ZIP_DEFLATED)
    return packed.getvalue()
