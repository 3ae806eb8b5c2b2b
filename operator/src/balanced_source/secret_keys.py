"""Names of options and settings whose values are secrets.

What a spec says is copied into a SparkApplication in clear, so secrets come from mounted files
instead. The patterns are in the dialect that the API server knows too.
"""

import re
from typing import Final

HOLDING: Final = (
    "(?i)(passw(or)?d|passphrase|secret|token|credentials?|jaas[._]config|keystore[._]key"
    "|(secret|access|private|api|shared|encryption)[._-]?key|account[._]key([.].*)?|client[._]secret([.].*)?"
    "|fs[.]azure[.]sas([.].*)?)$"
)
"""Ends of names that hold secrets; for storage accounts, a host may follow."""

NAMING: Final = (
    "^spark[.]kubernetes[.](driver|executor)[.](secrets|secretKeyRef|label|annotation|volumes)[.]"
)
"""Settings that name a Secret, or anything else, but do not hold it."""

_SECRET: Final = re.compile(HOLDING)
_REFERENCE: Final = re.compile(NAMING)
_IN_URL: Final = re.compile(r"(?i)[?&;](password|pwd|passwd)=|//[^/@\s]+:[^/@\s]+@")


def holds_secret(key: str, value: str = "") -> bool:
    """Returns whether an option or setting holds a secret, by its name or as a URL's password."""
    is_secret = _SECRET.search(key) is not None and _REFERENCE.match(key) is None
    return is_secret or _IN_URL.search(value) is not None
