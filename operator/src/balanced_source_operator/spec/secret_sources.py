"""Secrets that hold options or settings, and the rule that nothing else holds them."""

from collections.abc import Callable
from typing import Final

from pydantic_core import PydanticCustomError

from balanced_source.names import shown
from balanced_source.secret_keys import HOLDING, NAMING, holds_secret
from balanced_source_operator.contract.base import Model, ObjectName, rule

Options = dict[str, str]


def no_secrets(what: str, instead: str) -> dict[str, str]:
    """Returns the rule that keys of a map hold no secrets."""
    return rule(
        f"!self.exists(key, key.matches('{HOLDING}') && !key.matches('{NAMING}'))",
        f"{what} whose names end in password, secret, token or the like are secrets: put them into"
        f" a Secret and name it in {instead}",
    )


def without_secrets(instead: str) -> Callable[[Options], Options]:
    """Returns a check that options hold no secrets; its message never holds a value."""

    def check(options: Options) -> Options:
        if found := [key for key, value in options.items() if holds_secret(key, value)]:
            raise PydanticCustomError(
                "secret_in_spec",
                "{key} holds a secret, which everybody who may read the object would see: put it"
                " into a Secret and name that in {instead}",
                {"key": shown(found[0]), "instead": instead},
            )
        return options

    return check


_LOGIN: Final = (
    "credentials before an @ in a URL can be seen by everybody who may read the object: put them"
    " into a Secret and name it in sparkConfFrom"
)

NO_LOGIN_IN_URL: Final = rule("!self.matches('//[^/@ ]+:[^/@ ]+@')", _LOGIN)
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
