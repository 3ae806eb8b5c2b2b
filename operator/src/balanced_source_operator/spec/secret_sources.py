"""Secrets that hold options or settings, and the rule that nothing else holds them."""

from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn

from pydantic_core import PydanticCustomError

from balanced_source.names import shown
from balanced_source.secret_keys import (
    HOLDING,
    NAMING,
    holds_secret,
    java_secret,
    secret_argument,
    variable_holds_secret,
)
from balanced_source_operator.contract.base import Model, ObjectName, rule

Options = dict[str, str]


def no_secrets(what: str, instead: str) -> dict[str, str]:
    """Returns the rule that keys of a map hold no secrets."""
    return rule(
        f"!self.exists(key, key.matches('{HOLDING}') && !key.matches('{NAMING}'))",
        f"{what} whose names end in password, secret, token or the like are secrets: put them into"
        f" a Secret and name it in {instead}",
    )


_JVM: Final = (
    "write the option into a file, which the pod template mounts from the Secret, and set"
    " @/path/of/the/file here"
)
_PROGRAM: Final = (
    "let the program read it from a variable that driver.template sets with valueFrom, or from a"
    " file that it mounts"
)
_VARIABLE: Final = "set the variable with valueFrom.secretKeyRef"
_URL: Final = "a URL among the arguments"


def without_secrets(instead: str) -> Callable[[Options], Options]:
    """Returns a check that options hold no secrets; its message never holds a value."""

    def check(options: Options) -> Options:
        for key, value in options.items():
            if (name := java_secret(value)) is not None:
                _refuse(f"{shown(name)} in {shown(key)}", _JVM)
            if holds_secret(key, value):
                _refuse(shown(key), f"name that in {instead}")
        return options

    return check


def without_secret_arguments(arguments: list[str]) -> list[str]:
    """Returns the arguments of a program.

    Raises:
        PydanticCustomError: one holds a secret. The message never holds its value.
    """
    if (name := secret_argument(arguments)) is not None:
        _refuse(f"the argument {shown(name)}" if name else _URL, _PROGRAM)
    return arguments


def without_secret_variables(template: dict[str, Any]) -> dict[str, Any]:
    """Returns a pod template whose types have been checked.

    Raises:
        PydanticCustomError: a variable holds a secret. The message never holds its value.
    """
    for place, variable in _variables(template.get("spec") or {}):
        name, value = variable.get("name") or "", variable.get("value") or ""
        if variable_holds_secret(name, value):
            _refuse(f"{place}: the variable {shown(name)}", _VARIABLE)
    return template


def _variables(pod: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for number, container in enumerate(pod.get(kind) or ()):
            for index, variable in enumerate(container.get("env") or ()):
                yield f"spec.{kind}[{number}].env[{index}]", variable


def _refuse(what: str, instead: str) -> NoReturn:
    raise PydanticCustomError(
        "secret_in_spec",
        "{what} holds a secret, which everybody who may read the object would see: put it into a"
        " Secret and {instead}",
        {"what": what, "instead": instead},
    )


_LOGIN: Final = (
    "credentials before an @ in a URL can be seen by everybody who may read the object: put them"
    " into a Secret and name it in sparkConfFrom"
)

NO_LOGIN_IN_URL: Final = rule("!self.matches('//[^/@ :]*:[^/@ ]+@')", _LOGIN)
"""The rule that a location has no credentials."""


def without_login(location: str) -> str:
    """Return the location.

    Raises:
        PydanticCustomError: it has credentials. The message never holds them.
    """
    if holds_secret("", location):
        raise PydanticCustomError("secret_in_spec", _LOGIN)
    return location


class SecretName(Model):
    """A Secret in the namespace of the BalancedSource."""

    name: ObjectName
    """Name of the Secret. Each of its keys is an option or a setting."""


class SecretSource(Model):
    """Where further options or settings come from."""

    secret_ref: SecretName
    """The Secret that holds them. Its values never appear in any other object, log or message."""
