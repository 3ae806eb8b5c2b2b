"""Options for all JVMs that a run starts, wherever they run."""

import pytest

from testbed.java import jvm_environment


@pytest.mark.parametrize(
    ("told", "more", "options"),
    [
        ("-Xshare:auto", ("-Da=b",), "-Xshare:auto -Da=b"),
        ("", ("-Da=b",), "-Da=b"),
        ("-Xint", (), "-Xint"),
    ],
)
def test_programs_with_an_environment_of_their_own_get_the_options_too(
    monkeypatch: pytest.MonkeyPatch, told: str, more: tuple[str, ...], options: str
) -> None:
    monkeypatch.setenv("JDK_JAVA_OPTIONS", told)

    assert jvm_environment(*more) == {"JDK_JAVA_OPTIONS": options}


def test_without_options_there_is_not_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JDK_JAVA_OPTIONS", raising=False)

    assert jvm_environment() == {}
