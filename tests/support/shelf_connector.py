"""Four tapes that never end as an installed connector, for operators that run without a broker."""

from pathlib import Path
from typing import Any, Final

from balanced_source.api import (
    AsyncCall,
    Caller,
    CallExecutor,
    Connector,
    Identity,
    NamedSecrets,
    SecretReader,
)
from balanced_source.connectors.discovery import Discovered
from balanced_source_operator.contract.base import Model
from balanced_source_operator.contract.half import Common, OperatorHalf, Texts
from support import installed
from support.tapes import SHELF, FindTapes, ListTapes, TapeSource, TapeSplit

KIND: Final = "tapes"
TAPES: Final = ("a", "b", "c", "d")


def register(folder: Path) -> None:
    """Make a folder that registers the connector where it is on the path."""
    installed.register(folder, KIND, f"{__name__}:ShelfConnector")


class ShelfConnector(Connector):
    kind = KIND
    operator = f"{__name__}:ShelfOperatorHalf"

    def executor(self, secrets: SecretReader, *, caller: Caller, client_id: str) -> CallExecutor:
        def execute(call: AsyncCall) -> Any:
            match call:
                case ListTapes():
                    return Discovered(split_ids=frozenset((SHELF, name) for name in TAPES))
                case FindTapes(split_ids=split_ids):
                    return [TapeSplit(name=str(name)) for _, name in split_ids]
            return None

        return execute

    def identity_of(self, call: AsyncCall) -> Identity:
        return NamedSecrets()


class ShelfSpec(Model):
    """Nothing can be chosen."""


class ShelfOperatorHalf(OperatorHalf[ShelfSpec]):
    spec = ShelfSpec
    description = "Four tapes."

    def to_source(self, spec: ShelfSpec, common: Common, texts: Texts, *, field: str) -> TapeSource:
        return TapeSource(assigner=common.assigner, discovery_interval=5.0)
