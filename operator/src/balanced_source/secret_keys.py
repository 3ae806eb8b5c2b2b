"""The one table of names whose values are secrets, and where such values hide.

What a spec says is copied into a SparkApplication in clear, so secrets come from mounted files
instead. `HOLDING` and `NAMING` are in the dialect that the API server knows too.
"""

import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

WORDS: Final = (
    "passw(or)?d",
    "passphrase",
    "secret",
    "token",
    "credentials?",
    "jaas[._-]?config",
    "keystore[._-]?key",
    "(ssl|private)[._-]?key[._-]?pem",
    "(secret|access|private|api|auth|shared|encryption|account)[._-]?key",
    "connection[._-]?string",
    "shared[._-]?access[._-]?signature",
    # These words mean something else in other names.
    "redis(cli)?[._-]auth",
    "databricks[._-]pat",
)
"""Ends of names that hold secrets, in any case, with words of a name together or apart."""

BEFORE_HOST: Final = ("account[._-]?key", "client[._-]?secret", "fs[.]azure[.]sas")
"""The same for storage accounts: a host may follow."""

SHORT: Final = ("pass", "pwd")
"""The same, but only as a word of its own: not in `bypass` or `compass`."""

_IN_CAMEL_CASE: Final = "|".join(word.capitalize() for word in SHORT)

HOLDING: Final = (
    f"(?i:{'|'.join(WORDS)})$|(?i:{'|'.join(BEFORE_HOST)})([.].*)?$"
    f"|(^|[._-])(?i:{'|'.join(SHORT)})$|[a-z0-9]({_IN_CAMEL_CASE})$"
)
"""Names that hold secrets."""

NAMING: Final = (
    "^spark[.]kubernetes[.](driver|executor)[.](secrets|secretKeyRef|label|annotation|volumes)[.]"
    "|(^|[.])GOOGLE_APPLICATION_CREDENTIALS$|[._-](?i:file)$"
)
"""Names that stand for a Secret, a file, or anything else, but do not hold it."""

_SECRET: Final = re.compile(HOLDING)
_NAMED: Final = re.compile(NAMING)
_HIDDEN: Final = re.compile(
    r"(?i)(?:^|[?&;])(?:password|pwd|passwd|accountkey|sharedaccess(?:key|signature)|sig)=(?!\$[({])"
    r"|//[^/@\s:]*:(?!\$[({])[^/@\s]+@"
)
"""A secret in a value: a parameter or a login of a URL, unless it is taken from a variable."""

_JAVA: Final = re.compile(r"""(?:^|[\s"'])-D([^\s="']+)=["']?(?!\$[({])([^\s"']+)""")
"""A system property in the options of a JVM."""

_JAVA_DEFAULT: Final = "changeit"
"""The password of the trust store that every JDK has: no secret."""

_REFERENCE: Final = re.compile(
    r"|(?i:true|false)|\$\(\w+\)|\$\{[^{}]+\}|arn:\S+|(?:file:)?(?:/[\w.-]+){2,}"
)
"""Values of variables and arguments that are no secrets: they say where one is, or nothing."""

_WORKING_FOLDER: Final = "PWD"
_NAME: Final = re.compile(r"[\w.-]+")


def holds_secret(key: str, value: str = "") -> bool:
    """Returns whether an option or setting holds a secret: by its name, or within its value."""
    return (
        _is_secret_name(key) or _HIDDEN.search(value) is not None or java_secret(value) is not None
    )


def java_secret(options: str) -> str | None:
    """Returns the first system property among the options of a JVM that holds a secret."""
    return next((name for name, value in _JAVA.findall(options) if _is_set(name, value)), None)


def variable_holds_secret(name: str, value: str) -> bool:
    """Returns whether an environment variable holds a secret in clear."""
    is_named = name != _WORKING_FOLDER and _is_secret_name(name) and not _refers(value)
    return is_named or holds_secret("", value)


def secret_argument(arguments: Sequence[str]) -> str | None:
    """Returns the name of the first argument of a program that holds a secret.

    Empty if it is within a URL; None if no argument does.
    """
    for argument, following in zip_longest(arguments, arguments[1:], fillvalue=""):
        option = option_name(argument)
        if option is not None:
            name, value = option, "" if following.startswith("-") else following
        else:
            name, _, value = argument.lstrip("-").partition("=")
        if _NAME.fullmatch(name) and _is_secret_name(name) and not _refers(value):
            return name
        if holds_secret("", argument):
            return java_secret(argument) or ""
    return None


def option_name(argument: object) -> str | None:
    """Returns the name of the option that an argument is, if its value stands in the next one."""
    is_option = isinstance(argument, str) and argument.startswith("-") and "=" not in argument
    return argument.lstrip("-") if is_option and isinstance(argument, str) else None


def _is_set(name: str, value: str) -> bool:
    is_default = value == _JAVA_DEFAULT and "truststore" in name.lower()
    return _is_secret_name(name) and not is_default and not _refers(value)


def _is_secret_name(key: str) -> bool:
    return _SECRET.search(key) is not None and _NAMED.search(key) is None


def _refers(value: str) -> bool:
    return _REFERENCE.fullmatch(value) is not None
