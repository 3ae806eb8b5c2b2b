"""Which hosts of a source do not run, and which of them tell nothing about changed settings."""

from collections.abc import Collection
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, Final

from balanced_source_operator.controller.application_facts import is_made_from

_NONE: Final = frozenset[str]()


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenHosts:
    """Hosts that have not run for long. The next operator needs it, so it is stored.

    Attributes:
        hash: of the settings in effect; empty before the first ones.
        nonce: of `spec.application.restart` that was set last.
        broken: hosts that were given time enough to run, and do not.
        excused: those of them that were broken before these settings, or this nonce, took effect.
    """

    hash: str = ""
    nonce: int | None = None
    broken: frozenset[str] = _NONE
    excused: frozenset[str] = _NONE

    def asked(self, found: str, nonce: int | None) -> "BrokenHosts":
        """Return what is known when these settings take effect.

        Returns itself if they are in effect already.
        """
        # To remove a nonce restarts nothing.
        asked = self.nonce if nonce is None else nonce
        if self.hash and is_made_from(self.hash, found) and asked == self.nonce:
            return self
        return replace(self, hash=found, nonce=asked, excused=self.broken)

    def looked(self, names: Collection[str], *, late: AbstractSet[str]) -> "BrokenHosts":
        """Return what is known after a look at the hosts.

        Args:
            names: wanted hosts that do not run now.
            late: hosts that were given time enough.
        """
        broken = (self.broken & frozenset(names)) | late
        if broken == self.broken:
            return self
        return replace(self, broken=broken, excused=self.excused & broken)


def dump(hosts: BrokenHosts) -> dict[str, Any]:
    """Return what the next operator needs; empty if all hosts run."""
    if not hosts.broken:
        return {}
    return {
        "hash": hosts.hash,
        "nonce": hosts.nonce,
        "broken": {name: name in hosts.excused for name in hosts.broken},
    }


def load(found: Any) -> BrokenHosts:
    """Return what an operator before this one has left.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: it cannot be read.
    """
    if not found:
        return BrokenHosts()
    nonce, broken = found["nonce"], {str(n): bool(is_old) for n, is_old in found["broken"].items()}
    return BrokenHosts(
        hash=str(found["hash"]),
        nonce=None if nonce is None else int(nonce),
        broken=frozenset(broken),
        excused=frozenset(name for name, is_old in broken.items() if is_old),
    )
