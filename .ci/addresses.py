"""Write the addresses of `.ci/addresses.toml` into the files that must name them.

`make generate` runs this.
"""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PLACEHOLDER = "example.org"


class Addresses(NamedTuple):
    """Where the project is on the web.

    Attributes:
        repository: of the source.
        site: of the documentation; each version has a folder there.
        registry: of images and the chart.
    """

    repository: str
    site: str
    registry: str

    @property
    def placeholders(self) -> list[str]:
        """Addresses that no maintainer has set yet."""
        return [address for address in self if PLACEHOLDER in address]

    @property
    def urls(self) -> Mapping[str, str]:
        """The links that a package index shows."""
        return {
            "Homepage": f"{self.site}/",
            "Documentation": f"{self.site}/latest/",
            "Source": self.repository,
            "Issues": f"{self.repository}/issues",
            "Changelog": f"{self.repository}/blob/main/CHANGELOG.md",
        }


def read() -> Addresses:
    """Return the addresses.

    Raises:
        TypeError: one is missing or unknown.
    """
    return Addresses(**tomllib.loads((ROOT / ".ci" / "addresses.toml").read_text(encoding="utf-8")))


def changed_files(addresses: Addresses) -> dict[str, str]:
    """Return the content of every file that names an address.

    Raises:
        ValueError: a file has no place for an address, or several.
    """
    table = "".join(f'{name} = "{url}"\n' for name, url in addresses.urls.items())
    projects = {"pyproject.toml", "spark_app/native/pyproject.toml"}
    found = {
        name: _put(name, r"(?m)^\[project\.urls\]\n(?:\w+ = .*\n)*", f"[project.urls]\n{table}")
        for name in projects
    }
    chart = f"home: {addresses.site}/\nsources: [{addresses.repository}]\n"
    found["charts/balanced-source/Chart.yaml"] = _put(
        "charts/balanced-source/Chart.yaml", r"(?m)^home: .*\nsources: .*\n", chart
    )
    found["charts/balanced-source/values.yaml"] = _put(
        "charts/balanced-source/values.yaml",
        r"(?m)^  repository: .*/operator\n",
        f"  repository: {addresses.registry}/operator\n",
    )
    # A team that serves a copy of the site sets the variable when it builds the site.
    site = f"site_url: !ENV [BALANCED_SOURCE_DOCUMENTATION_URL, '{addresses.site}/']\n"
    found["mkdocs.yml"] = _put("mkdocs.yml", r"(?m)^site_url: .*\n", site)
    return found


def _put(name: str, pattern: str, text: str) -> str:
    before = (ROOT / name).read_text(encoding="utf-8")
    after, count = re.subn(pattern, lambda _: text, before)
    if count != 1:
        raise ValueError(f"{name} has {count} places that match {pattern}, not one")
    return after


if __name__ == "__main__":
    for file, content in changed_files(read()).items():
        (ROOT / file).write_text(content, encoding="utf-8")
