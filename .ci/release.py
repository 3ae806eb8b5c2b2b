"""Make a release.

Versions, changelog, tag, site, wheels, images, chart, bills of materials, signatures.

    .ci/release.py 0.2.0             print what would be done, and change nothing
    .ci/release.py 0.2.0 --publish   do it; needs docker, helm, syft, cosign, twine, and rights

If a step fails, run the same command again: it continues behind the commit and the tag. What is
pushed twice is pushed as it was. docs/development.md describes the procedure.
"""

import argparse
import datetime as dt
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import addresses

ROOT = Path(__file__).parent.parent
VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
PLACES = {
    "pyproject.toml": (r'(?m)^(version = ")[^"]+(")$', r'(balanced-source-native==)[^"]+(")'),
    "spark_app/native/Cargo.toml": (r'(?m)\A([\s\S]*?^version = ")[^"]+(")$',),
    "spark_app/native/Cargo.lock": (r'(name = "balanced-source-native"\nversion = ")[^"]+(")',),
    "charts/balanced-source/Chart.yaml": (r"(?m)^(version: )\S+()$", r"(?m)^(appVersion: )\S+()$"),
}
"""File → patterns around its version."""

PAGES = ("docs/*.md", "docs/*/*.md", "examples/*/*.md", "Dockerfile")
"""What names images and wheels of the present version, for readers to copy."""

NAMED = re.compile(r"(image\.tag=|\boperator:|balanced_source(?:_native)?-)\d+\.\d+\.\d+")
"""How they name it. The images of Spark have the version of Spark."""

UNRELEASED = "## [Unreleased]\n"
SPARK = ("4.2.0", "4.3.0")


def changed_files(version: str, today: dt.date) -> dict[str, str]:
    """Return the content of every file that names the version, with the new one.

    Raises:
        ValueError: a file has no version where it is expected, or nothing is in the changelog.
    """
    found = {}
    for name, patterns in PLACES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        for pattern in patterns:
            text, count = re.subn(pattern, rf"\g<1>{version}\g<2>", text)
            if count != 1:
                raise ValueError(
                    f"{name} has its version in {count} places that match {pattern}, not in one"
                )
        found[name] = text
    for name, text in pages().items():
        found[name] = NAMED.sub(rf"\g<1>{version}", text)
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    head, heading, rest = changelog.partition(UNRELEASED)
    if not heading or not rest.partition("\n## ")[0].strip():
        raise ValueError("CHANGELOG.md has nothing under Unreleased: there is nothing to release")
    found["CHANGELOG.md"] = f"{head}{UNRELEASED}\n## [{version}] - {today.isoformat()}\n{rest}"
    return found


def pages() -> dict[str, str]:
    """Return the pages that name the version, by their paths."""
    files = sorted(path for pattern in PAGES for path in ROOT.glob(pattern))
    texts = {path: path.read_text(encoding="utf-8") for path in files}
    return {str(p.relative_to(ROOT)): text for p, text in texts.items() if NAMED.search(text)}


def commands(version: str, registry: str) -> list[list[str]]:
    """Return the commands that publish a version, in order.

    The tag is pushed last: before that, nothing is final.
    """
    images = [
        f"{registry}/operator:{version}",
        *(f"{registry}/spark:{spark}-{version}" for spark in SPARK),
    ]
    chart = f"dist/balanced-source-{version}.tgz"
    return [
        ["make", "test"],
        ["git", "commit", "--all", "--message", f"Release {version}"],
        ["git", "tag", "--sign", f"v{version}", "--message", f"Release {version}"],
        [".ci/site-version", version],
        [".ci/wheels", "dist"],
        ["docker", "build", "--target", "operator", "--tag", images[0], "."],
        *(
            [
                "docker",
                "build",
                "--target",
                "spark",
                "--build-arg",
                f"SPARK_VERSION={spark}",
                "--tag",
                image,
                ".",
            ]
            for spark, image in zip(SPARK, images[1:], strict=True)
        ),
        *(
            ["syft", image, "--output", f"spdx-json=dist/{image.replace('/', '_')}.spdx.json"]
            for image in images
        ),
        ["helm", "package", "charts/balanced-source", "--destination", "dist"],
        *(["docker", "push", image] for image in images),
        ["helm", "push", chart, f"oci://{registry}/charts"],
        *(
            ["cosign", "sign", "--yes", image]
            for image in (*images, f"{registry}/charts/balanced-source:{version}")
        ),
        ["sh", "-c", "twine upload --skip-existing dist/*.whl dist/*.tar.gz"],
        ["git", "push", "origin", "HEAD", "gh-pages", f"v{version}"],
    ]


def done(version: str) -> int:
    """Return how many of the first commands a former try has done: test, commit and tag."""
    if _output("git", "log", "-1", "--format=%s").strip() != f"Release {version}":
        return 0
    tags = _output("git", "tag", "--points-at", "HEAD").split()
    return 3 if f"v{version}" in tags else 2


def main(arguments: Sequence[str] = sys.argv[1:]) -> int:
    """Print the plan, or carry it out; the exit code is 1 if it cannot be made."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("version")
    parser.add_argument(
        "--registry", help="of images and the chart; by default that of .ci/addresses.toml"
    )
    parser.add_argument("--publish", action="store_true", help="do it")
    chosen = parser.parse_args(arguments)
    places = addresses.read()
    if VERSION.fullmatch(chosen.version) is None:
        return _fail(f"{chosen.version!r} is not a version such as 0.2.0")
    try:
        begun = done(chosen.version)
        files = {} if begun else changed_files(chosen.version, dt.datetime.now(dt.UTC).date())
    except ValueError as error:
        return _fail(str(error))
    if chosen.publish and places.placeholders:
        return _fail(
            "set the project's addresses in .ci/addresses.toml first:"
            f" {', '.join(places.placeholders)}"
        )
    if chosen.publish and (dirty := _output("git", "status", "--porcelain")):
        return _fail(
            f"there are uncommitted changes:\n{dirty}commit them. If a former try of a release has"
            " left them, `git restore .` takes them back"
        )
    if begun:
        print(f"continue: the commit Release {chosen.version} is there")
    for name, text in files.items():
        print(f"write {name}")
        if chosen.publish:
            (ROOT / name).write_text(text, encoding="utf-8")
    for command in commands(chosen.version, chosen.registry or places.registry)[begun:]:
        print(" ".join(command))
        if chosen.publish:
            subprocess.run(command, cwd=ROOT, check=True)  # noqa: S603 - the list above
    print("released" if chosen.publish else "dry run: nothing was changed; --publish does it")
    return 0


def _output(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout  # noqa: S603


def _fail(message: str) -> int:
    print(message, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
