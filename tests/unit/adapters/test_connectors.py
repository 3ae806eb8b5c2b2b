"""Connectors are found by entry points, loaded when needed, and never break one another."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from balanced_source.api import (
    CONTRACT,
    OLDEST_CONTRACT,
    AsyncCall,
    Caller,
    CallExecutor,
    Connector,
    Identity,
    NamedSecrets,
    SecretReader,
)
from balanced_source.connectors.discovery import Alarm
from balanced_source.connectors.kafka import DiscoverKafka, KafkaCluster, TopicList
from balanced_source.errors import ConnectorError, ContractViolationError, InvalidSpecError
from balanced_source_adapters.connectors import ConnectorPart, Connectors, installed
from balanced_source_adapters.coordinator_loop import with_alarms
from balanced_source_adapters.kafka.admin import KafkaAdmin
from balanced_source_adapters.kafka.connector import KafkaConnector
from balanced_source_adapters.registrations import BUILT_IN, GROUP, Registration, Registrations
from support.numbers_source import NumbersSource
from support.world import kafka_source

ROOT = Path(__file__).parents[3]


class OtherConnector(Connector):
    """One from elsewhere."""

    kind = "other"

    def executor(self, secrets: SecretReader, *, caller: Caller, client_id: str) -> CallExecutor:
        return lambda call: (type(call).__name__, caller, client_id)

    def identity_of(self, call: AsyncCall) -> Identity:
        return NamedSecrets()


class Half:
    """A part of `HalvedConnector`."""


HALF = ConnectorPart(name="operator half", base=Half, derived="OperatorHalf")


class HalvedConnector(OtherConnector):
    operator = f"{__name__}:Half"


class FutureConnector(OtherConnector):
    contract = CONTRACT + 1


class PastConnector(OtherConnector):
    contract = OLDEST_CONTRACT - 1


class UnsureConnector(OtherConnector):
    contract = "1"  # type: ignore[assignment]


def lacking() -> Connector:
    raise ModuleNotFoundError("No module named 'httpx.client'", name="httpx.client")


def incomplete() -> Connector:
    name = f"{__name__}.client"
    raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def newer() -> Connector:
    name = "balanced_source.api.later"
    raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def without_operator() -> Connector:
    name = "balanced_source_operator"
    raise ModuleNotFoundError(f"No module named {name!r}", name=name)


class MisnamedConnector(OtherConnector):
    kind = "another"


def broken() -> Connector:
    raise ImportError("libother.so: no such file")


def ending() -> Connector:
    raise SystemExit(5)


def here(name: str, kind: str = "other", package: str = "other-source 1.0") -> Registration:
    return Registration(kind=kind, reference=f"{__name__}:{name}", package=package)


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, __name__, sys.modules[OtherConnector.__module__])


def test_the_project_registers_kafka_as_others_register_theirs() -> None:
    """The table is for folders on PYTHONPATH, where no entry point is."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "entry-points"
    ]

    assert declared == {GROUP: dict(BUILT_IN)}
    assert "kafka" in installed().kinds


def test_a_source_leads_to_its_connector() -> None:
    assert isinstance(installed().of(kafka_source("c")), KafkaConnector)


def test_another_connector_takes_its_place_beside_kafka() -> None:
    both = Connectors(
        [
            here("OtherConnector"),
            Registration(kind="kafka", reference=BUILT_IN["kafka"], package="p"),
        ]
    )

    assert both.kinds == ("kafka", "other")
    assert both.get("other") is both.get("other"), "loaded once"
    execute = both.get("other").executor(Nothing(), caller=Caller.OPERATOR, client_id="me")
    assert execute(Alarm()) == ("Alarm", Caller.OPERATOR, "me")
    assert (
        both.get("other").secrets(kafka_source("c"))
        == both.get("other").needed_secrets(kafka_source("c"))
        == ()
    )
    assert both.get("other").identity_of(Alarm()) == NamedSecrets()


def test_the_same_entry_point_twice_is_one() -> None:
    twice = [
        here("OtherConnector"),
        here("OtherConnector", package="other-source 1.0, from a folder"),
    ]

    assert Connectors(twice).get("other").kind == "other"


@pytest.mark.parametrize(
    ("registrations", "says"),
    [
        ([], "no connector of kind 'other' is installed.*images of operator and driver"),
        ([here("OtherConnector", kind="others")], "others.; did you mean others. A connector of"),
        (
            [here("OtherConnector"), here("broken", package="fork 2")],
            r"other-source 1.0 \(.*and fork 2 .*but one",
        ),
        (
            [here("broken")],
            "of other-source 1.0 is broken.*cannot be loaded: ImportError: libother.so",
        ),
        ([here("ending")], "of other-source 1.0 is broken.*cannot be loaded: SystemExit: 5"),
        (
            [here("lacking")],
            (
                "'other' of other-source 1.0 cannot be loaded: .*:lacking needs module"
                f" 'httpx.client', which is not installed for {sys.executable}. Install it there;"
                " under the operator, add it to the image"
            ),
        ),
        ([here("without_operator")], "needs module 'balanced_source_operator', which is not inst"),
        (
            [here("incomplete")],
            "is broken: its module .*client' is missing. Install the package again",
        ),
        ([here("newer")], "No module named 'balanced_source.api.later'. Install a release that"),
        (
            [here("FutureConnector")],
            (
                "'other' of other-source 1.0 is written for version 2 of the contract of"
                " connectors, and this release has version 1: upgrade balanced-source, or install"
                " an older release of the package"
            ),
        ),
        ([here("PastConnector")], "version 0 .* from 1 on: install a newer release of the package"),
        ([here("UnsureConnector")], "its contract is '1', and a whole number was expected"),
        ([here("absent")], "of other-source 1.0 is broken.*AttributeError"),
        (
            [Registration(kind="other", reference="nocolon", package="p 1")],
            "'other' of p 1 is broken: its entry point is 'nocolon', and module:Class was expected",
        ),
        ([here("Path")], "Path is not a class derived from Connector. Install"),
        ([here("MisnamedConnector")], "says that its kind is 'another'"),
    ],
)
def test_an_unusable_connector_names_its_package(
    registrations: list[Registration], says: str
) -> None:
    with pytest.raises(ConnectorError, match=says):
        Connectors(registrations).get("other")


def test_a_connector_that_says_nothing_is_written_for_the_first_contract() -> None:
    assert OtherConnector().contract == OLDEST_CONTRACT == 1
    assert OtherConnector().contract <= CONTRACT


def test_a_half_is_made_once_where_it_is_needed() -> None:
    connectors = Connectors([here("HalvedConnector")])

    half = connectors.half("other", lambda connector: connector.operator, HALF)
    assert isinstance(half, Half)
    assert connectors.half("other", lambda connector: connector.operator, HALF) is half


@pytest.mark.parametrize(
    ("connector", "reference", "says"),
    [
        (
            "OtherConnector",
            "",
            "connector 'other' of other-source 1.0 has no operator half: it cannot be",
        ),
        (
            "HalvedConnector",
            f"{__name__}:Nothing",
            "of other-source 1.0 is broken: .*Nothing is not a class derived from OperatorHalf",
        ),
        (
            "HalvedConnector",
            "nocolon",
            "is broken: its operator half is 'nocolon', and module:Class was expected. Install",
        ),
        ("HalvedConnector", "a b:C", "its operator half is 'a b:C', and module:Class was"),
        (
            "HalvedConnector",
            f"{__name__}:absent",
            "of other-source 1.0 is broken: .*AttributeError",
        ),
    ],
)
def test_a_half_that_cannot_be_used_names_the_package(
    connector: str, reference: str, says: str
) -> None:
    with pytest.raises(ConnectorError, match=says):
        Connectors([here(connector)]).half("other", lambda found: reference or found.operator, HALF)


class WrongConnector(OtherConnector):
    """Returns what no one can work with."""

    operator = 7  # type: ignore[assignment]
    codec = "json"  # type: ignore[assignment]

    def executor(self, secrets: SecretReader, *, caller: Caller, client_id: str) -> CallExecutor:
        return None  # type: ignore[return-value]

    def identity_of(self, call: AsyncCall) -> Identity:
        return "me"  # type: ignore[return-value]

    def server_of(self, call: AsyncCall) -> str:
        raise KeyError("server")

    def secrets(self, source: object) -> tuple[str, ...]:
        return "password"  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (
            lambda made: made.executor(Nothing(), caller=Caller.OWNER, client_id="me"),
            "executor: TypeError: it returned a NoneType, and a function that executes calls was",
        ),
        (
            lambda made: made.identity_of(Alarm()),
            "identity_of: TypeError: it returned a str, and NamedSecrets or DriverOnly was",
        ),
        (lambda made: made.codec, "codec: TypeError: it returned a str, and a CallCodec, or None,"),
        (lambda made: made.server_of(Alarm()), "server_of: KeyError: 'server'. Report this"),
        (
            lambda made: made.needed_secrets(kafka_source("c")),
            "needed_secrets: TypeError: it returned a str, and a tuple with names of Secrets was",
        ),
        (lambda made: made.operator, "operator: TypeError: it returned a int, and a text such as"),
    ],
)
def test_a_connector_that_returns_something_else_is_named(
    ask: Callable[[Connector], object], says: str
) -> None:
    made = Connectors([here("WrongConnector")]).get("other")

    with pytest.raises(ConnectorError) as caught:
        ask(made)

    assert f"failed in {says}" in str(caught.value)
    assert str(caught.value).startswith("connector 'other' of ")


class WrongAddress(OtherConnector):
    """Returns a port where an address is expected."""

    def server_of(self, call: AsyncCall) -> str:
        return 9092  # type: ignore[return-value]


def test_an_address_of_a_server_is_a_text() -> None:
    made = Connectors([here("WrongAddress")]).get("other")

    with pytest.raises(ConnectorError, match="server_of: TypeError: it returned a int, and the"):
        made.server_of(Alarm())


def test_a_broken_connector_hurts_no_other_one() -> None:
    mixed = Connectors(
        [here("broken"), Registration(kind="kafka", reference=BUILT_IN["kafka"], package="p")]
    )

    assert mixed.get("kafka").kind == "kafka"


def test_a_source_that_belongs_to_no_connector_says_so() -> None:
    with pytest.raises(ConnectorError, match="no connector of kind ''"):
        installed().of(NumbersSource(()))


def test_a_kind_is_quoted_in_short() -> None:
    with pytest.raises(ConnectorError) as caught:
        installed().get("a" * 5000)

    assert len(str(caught.value)) < 1000


def test_kafka_executes_its_own_calls_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KafkaAdmin, "discover", lambda _, call: ("discovered", call.scope))
    execute = with_alarms(KafkaConnector().executor(Nothing(), caller=Caller.OWNER, client_id="me"))

    assert execute(discovery()) == ("discovered", "main")
    assert execute(Alarm()) is None
    with pytest.raises(ContractViolationError, match="cannot execute a ForeignCall"):
        execute(ForeignCall())


def test_kafka_names_the_secrets_of_a_call_and_of_a_source() -> None:
    source = kafka_source(
        clusters=(cluster("a", "s1"), cluster("b", "s2", "s1")), inactive=(cluster("c", "s0"),)
    )
    kafka = KafkaConnector()

    assert kafka.identity_of(discovery("s")) == NamedSecrets(("s",))
    assert kafka.identity_of(Alarm()) == NamedSecrets()
    assert kafka.needed_secrets(source) == ("s1", "s2")
    assert kafka.secrets(source) == ("s0", "s1", "s2"), (
        "a cluster that is not read may be read again"
    )
    with pytest.raises(ContractViolationError, match="is not a Kafka source"):
        kafka.secrets(NumbersSource(()))


def test_only_the_operator_refuses_a_secret_that_names_its_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A driver is its owner's own process: what it has belongs to the owner."""
    monkeypatch.setattr(KafkaAdmin, "discover", lambda admin, _: admin._secrets.read("s"))
    kafka, call = KafkaConnector(), discovery("s")

    assert kafka.executor(Lending(), caller=Caller.OWNER, client_id="me")(call) == Lending().read(
        "s"
    )
    with pytest.raises(
        InvalidSpecError, match=r"Secret s: property ssl\.key\.location is not allowed here"
    ):
        kafka.executor(Lending(), caller=Caller.OPERATOR, client_id="me")(call)


def test_a_connector_is_found_without_its_client() -> None:
    """Every process looks connectors up; few need the client of each."""
    program = (
        "import sys\n"
        "from balanced_source_adapters.connectors import installed\n"
        "installed().get('kafka')\n"
        "sys.exit('confluent_kafka' in sys.modules or 'pydantic' in sys.modules)"
    )

    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program]
    assert subprocess.run(command, check=False, env=environment).returncode == 0  # noqa: S603


class ForeignCall(AsyncCall):
    pass


class Nothing:
    def read(self, name: str) -> dict[str, str]:
        raise LookupError(name)


class Lending:
    def read(self, name: str) -> dict[str, str]:
        return {"ssl.key.location": "/var/run/secrets/token"}


def cluster(name: str, *secrets: str) -> KafkaCluster:
    return KafkaCluster(name=name, bootstrap_servers="b:1", secrets=secrets)


def discovery(*secrets: str) -> DiscoverKafka:
    return DiscoverKafka(
        scope="main", round=1, cluster=cluster("main", *secrets), subscriber=TopicList(("t",))
    )


def registered(**references: str) -> Registrations:
    return Registrations(
        Registration(kind=kind, reference=reference, package="p 1")
        for kind, reference in references.items()
    )


@pytest.mark.parametrize(
    ("module", "preferred", "kind"),
    [
        ("ledger.reader", "ledger", "ledger"),
        ("ledger.reader", "ledgerb", "ledgerb"),
        ("acme.kelp.pages", "ledger", "kelp"),
        ("acme.mist", "", "mist"),
        ("acmes.mist", "mist", None),
        ("balanced_source.api", "kafka", None),
    ],
)
def test_code_belongs_to_the_kind_whose_module_is_nearest(
    module: str, preferred: str, kind: str | None
) -> None:
    """One module may register two kinds; packages may share the first part of their names."""
    found = registered(
        ledger="ledger:Shape",
        ledgerb="ledger:OtherShape",
        kelp="acme.kelp.connector:Kelp",
        mist="acme.mist.connector:Mist",
        kafka=BUILT_IN["kafka"],
    )

    assert found.kind_of(module, preferred=preferred) == kind
