"""Tokens for SASL/OAUTHBEARER from a user's function, e.g. one that signs for a cloud's IAM."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from balanced_source.api import SecretReader
from balanced_source.errors import InvalidSpecError, text_of
from balanced_source.names import shown


def token_provider(secrets: SecretReader) -> str:
    """Return the function with which a reader of Secrets makes tokens, as ``module:function``.

    Empty if there is none. Only a query has one, never the operator.
    """
    # Asked at each look of an idle query: the check of a protocol takes a tenth of the look.
    return str(getattr(secrets, "token_provider", ""))


@dataclass(frozen=True, slots=True)
class TokenCallback:
    """What librdkafka calls when it needs a token.

    Equal if the function is the same, so that clients are kept.

    Attributes:
        reference: ``module:function``. The function gets `sasl.oauthbearer.config` and returns a
            token and the time at which it expires, in seconds since the epoch.
    """

    reference: str

    def __call__(self, config: str) -> Any:
        """Return a token and its end."""
        return provider_of(self.reference)(config)

    def __str__(self) -> str:
        return self.reference


def provider_of(reference: str) -> Callable[[str], Any]:
    """Return the function of the user.

    Raises:
        InvalidSpecError: there is no such module or function.
    """
    module, _, function = reference.partition(":")
    try:
        found: Callable[[str], Any] = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidSpecError(
            f"{shown(reference)} cannot be loaded: {text_of(error)}. Write module:function, and"
            " install the module for the Python of driver and executors",
            field="option tokenProvider",
        ) from error
    return found
