"""Hooks of mkdocs.

Diagrams are drawn by a script of the site itself, on the pages that have one.
"""

import subprocess
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.utils import get_relative_url

SCRIPT = "assets/mermaid.min.js"


def on_files(files: Files, config: Any) -> Files:
    """Add the script to the site."""
    command = [Path(__file__).with_name("diagrams")]
    found = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - ours
    files.append(File.generated(config, SCRIPT, abs_src_path=found.stdout.strip()))
    return files


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Load the script on pages with a diagram, or the theme fetches one from another host."""
    del config
    if '<pre class="mermaid">' not in output:
        return output
    script = f'<script src="{get_relative_url(SCRIPT, page.url)}"></script>'
    return output.replace("</head>", f"{script}</head>", 1)
