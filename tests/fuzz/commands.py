"""Texts and arguments that a user hands to the command line."""

from typing import Any, Final

import yaml
from hypothesis import strategies as st
from typer.testing import CliRunner

from balanced_source_operator.cli import app
from balanced_source_operator.resources.kinds import BALANCED_SOURCE
from fuzz.judge import Judge, SilentError, TracebackError, shortened
from fuzz.manifests import specs
from fuzz.values import broken

_HEAD: Final = {
    "apiVersion": BALANCED_SOURCE.api_version,
    "kind": BALANCED_SOURCE.kind,
    "metadata": {"name": "orders"},
}


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    """Draws what is called a manifest: one that is broken in places, or anything at all."""
    if draw(st.booleans()):
        head = draw(broken((_HEAD,)))
        spec = draw(specs())
        value = {**head, "spec": spec} if isinstance(head, dict) else [head, spec]
        text = yaml.safe_dump_all([value] * draw(st.integers(1, 2)), allow_unicode=True)
        cut = draw(st.integers(0, len(text)))
        return (text if draw(st.booleans()) else text[:cut]).encode("utf-8", "surrogatepass")
    return draw(
        st.binary(max_size=60)
        | st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass"))
    )


_COMMANDS: Final = (
    ["validate", "--server", "never", "-f", "-"],
    ["validate", "--server", "never", "-o", "json", "-f", "-"],
    ["plan", "-f", "/dev/null", "--state", "/dev/null"],
    ["status", "--dir"],
    ["top", "--dir"],
)
cases: Final = st.tuples(
    st.sampled_from(_COMMANDS), st.lists(st.text(max_size=20), max_size=2), texts()
)


def check(case: Any, judge: Judge) -> None:
    """Runs a command; it must end with a known exit code, and say something."""
    arguments, more, given = case
    result = CliRunner().invoke(app, [*arguments, *more], input=given)
    if result.exit_code not in (0, 1, 2):
        raise TracebackError(
            f"{result.exception!r} for {arguments + more} {shortened(repr(given))}"
        )
    if result.exit_code:
        judge.refused += 1
        if not result.output.strip():
            raise SilentError(f"no sentence for {arguments + more} {shortened(repr(given))}")
