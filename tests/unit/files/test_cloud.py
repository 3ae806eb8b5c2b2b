"""Objects of clouds, by a client over objects in memory; and which credentials a client gets."""

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from balanced_source.connectors.files import Store
from balanced_source.errors import RefusedDiscoveryError, TransientDiscoveryError
from balanced_source_adapters.files import azure, cloud, gcs
from balanced_source_adapters.files.cloud import CloudStore, RangedFile
from balanced_source_adapters.files.file_store import WantedFiles
from balanced_source_adapters.files.stores import store_of

obstore = pytest.importorskip("obstore")

KEY = {"client_email": "a@b", "private_key": "hidden-key", "private_key_id": "1"}
RIVALS = ["SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT", "GOOGLE_BEARER_TOKEN"]


class Secrets:
    """One Secret, or none."""

    def __init__(self, given: Mapping[str, str] | None = None) -> None:
        self._given = given

    def read(self, name: str) -> Mapping[str, str]:
        if self._given is None:
            raise LookupError(name)
        return self._given


@pytest.fixture
def memory() -> Any:
    from obstore.store import MemoryStore

    made = MemoryStore()
    for name in ("in/a", "in/b/c", "in/é + %20#?", "inner", "other"):
        made.put(name, b"x" * 5)
    return made


@pytest.fixture(params=[True, False])
def store(memory: Any, request: pytest.FixtureRequest) -> CloudStore:
    return CloudStore("gs://", lambda _: memory, is_ordered=request.param)


def paths(found: Iterator[Any]) -> list[str]:
    return sorted(file.path for file in found)


def test_objects_below_a_prefix_are_listed(store: CloudStore) -> None:
    assert paths(store.walk("b/in/")) == ["b/in/a", "b/in/b/c", "b/in/é + %20#?"]
    assert paths(store.walk("b/in/a")) == ["b/in/a"]
    assert paths(store.walk("b/in/a", wanted=WantedFiles(below=True))) == []
    assert len(paths(store.walk("b"))) == 5
    assert paths(store.walk("b/in", after="b/in/a")) == ["b/in/b/c", "b/in/é + %20#?"]
    assert paths(store.walk("b/nothing")) == []
    for file in store.walk("b/in"):
        assert file == store.stat(file.path)
        assert (file.size, file.modified % 1_000_000_000) == (5, 0)


@pytest.mark.parametrize("after", ["a/z", "p/z", "z/inner", "zz/a"])
def test_a_path_of_another_bucket_hides_no_object(memory: Any, after: str) -> None:
    store = CloudStore("gs://", lambda _: memory, is_ordered=True)
    whole = paths(store.walk("z"))

    assert paths(store.walk("z", after=after)) == [path for path in whole if path > after]


def test_an_empty_object_may_stand_for_a_folder(store: CloudStore, memory: Any) -> None:
    memory.put("in", b"")
    assert paths(store.walk("b/in")) == ["b/in", "b/in/a", "b/in/b/c", "b/in/é + %20#?"]


def test_a_name_that_the_client_cannot_read_is_told(store: CloudStore) -> None:
    with pytest.raises(
        OSError, match=r"b/in//a: Could not .* empty path segment\. Rename this obj"
    ):
        store.stat("b/in//a")


def test_objects_and_folders_exist(store: CloudStore) -> None:
    assert [store.exists(base) for base in ("b/in", "b/in/", "b/in/a", "b", "b/nothing")] == [
        True,
        True,
        True,
        True,
        False,
    ]
    assert store.stat("b/in") is None
    with pytest.raises(FileNotFoundError, match="gs://b/nothing does not exist"):
        store.open("b/nothing")


def test_an_object_is_read_at_any_place(store: CloudStore, memory: Any) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": list(range(200_000))}), sink, row_group_size=10_000)
    memory.put("t.parquet", sink.getvalue().to_pybytes())

    with store.open("b/in/a") as opened:
        assert (opened.size(), opened.read(), opened.read_at(2, 3)) == (5, b"xxxxx", b"xx")
    with store.open("b/t.parquet") as opened:
        found = pq.ParquetFile(opened, pre_buffer=True).read(use_threads=True)
    assert found.column("id").to_pylist() == list(range(200_000))


def test_an_object_that_vanishes_is_missing_in_the_middle(store: CloudStore, memory: Any) -> None:
    opened = store.open("b/in/a")
    memory.delete("in/a")
    with pytest.raises(FileNotFoundError, match="cannot read gs://b/in/a: it does not exist"):
        opened.read(1)


class Fetched:
    """Bytes, and which ranges of them were asked for."""

    def __init__(self, size: int) -> None:
        self.content = bytes(n % 251 for n in range(size))
        self.asked: list[tuple[int, int]] = []

    def __call__(self, start: int, end: int) -> bytes:
        self.asked.append((start, end))
        return self.content[start:end]

    def file(self) -> RangedFile:
        return RangedFile(self, len(self.content))


def test_small_reads_in_turn_become_few_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cloud, "LEAST", 10)
    monkeypatch.setattr(cloud, "MOST", 40)
    made = Fetched(130)
    file = made.file()
    file._span = 10

    assert b"".join(iter(lambda: file.read(7), b"")) == made.content
    lengths = [end - start for start, end in made.asked]
    assert lengths[:3] == [10, 20, 40]
    assert max(lengths) == 40
    assert file.tell() == 130


def test_a_large_read_is_cut_into_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cloud, "PIECE", 200_000)
    made = Fetched(600_000)
    file = made.file()

    assert file.read() == made.content
    assert [end - start for start, end in made.asked] == [200_000] * 3
    assert file.read(5) == b""


def test_a_file_is_left_and_sought_as_any_other() -> None:
    made = Fetched(100)
    file = made.file()

    assert (file.seek(-10, 2), file.read(20)) == (90, made.content[90:])
    assert (file.seek(5), file.seek(5, 1), file.read(1)) == (5, 10, made.content[10:11])
    assert (file.readable(), file.seekable(), file.writable(), file.closed) == (
        True,
        True,
        False,
        False,
    )
    file.flush()
    file.close()
    assert file.closed


class Denied:
    """A client of a store that refuses."""

    TEXT = (
        "Generic error: Error performing GET http://s/b?comp=list&sig=hidden in 1.49ms - Server"
        ' returned 403 Forbidden: <?xml version="1.0"?>\n<Code>AuthorizationFailure</Code>\n\n'
        "Debug source: hidden"
    )

    def __call__(self, *_: Any, **__: Any) -> Any:
        from obstore.exceptions import PermissionDeniedError

        raise PermissionDeniedError(self.TEXT)


def test_errors_are_sentences_without_signatures(
    store: CloudStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    says = (
        "gs://b/in/a: Generic error: Error performing GET http://s/b - Server returned 403"
        " Forbidden (AuthorizationFailure). Check bucket, endpoint and credentials"
    )
    opened = store.open("b/in/a")
    for name in ("head", "list", "get_range"):
        monkeypatch.setattr(obstore, name, Denied())

    with pytest.raises(TransientDiscoveryError) as listing:
        list(store.walk("b/in/a"))
    with pytest.raises(OSError, match="cannot look at") as looking:
        store.stat("b/in/a")
    with pytest.raises(OSError, match="cannot read") as reading:
        opened.read(1)

    assert str(listing.value) == str(looking.value) == f"cannot look at {says}"
    assert str(reading.value) == f"cannot read {says}"
    assert {each.value.__cause__ for each in (listing, looking, reading)} == {None}


def test_a_listing_that_is_refused_is_a_sentence(
    store: CloudStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(obstore, "list", Denied())
    with pytest.raises(TransientDiscoveryError, match=r"^cannot list gs://b/in: Generic"):
        list(store.walk("b/in"))
    with pytest.raises(OSError, match=r"^cannot list gs://b/none: Generic"):
        store.exists("b/none")


class Made:
    """The clients that were made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.options: list[Mapping[str, str]] = []
        for module in (gcs, azure):
            monkeypatch.setattr(module, "client_of", self._client_of)
        for name in RIVALS:
            monkeypatch.delenv(name, raising=False)

    def _client_of(self, _kind: str, options: Mapping[str, str], *, otherwise: str) -> Any:
        self.options.append(options)
        return lambda _: None


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Made:
    return Made(monkeypatch)


def test_google_gets_the_key_and_nothing_else_of_it(made: Made) -> None:
    store = Store(endpoint="http://g:1", secret="k")  # noqa: S106 - a name
    other = {"gcs_base_url": "http://elsewhere", "disable_oauth": True}
    secrets = Secrets({"serviceAccount": json.dumps({**KEY, **other})})

    ordered = store_of(store, ("gs://",), secrets).is_ordered
    store_of(Store(), ("gs://",), Secrets())

    assert ordered
    assert made.options == [
        {
            "base_url": "http://g:1",
            "service_account_key": json.dumps(KEY),
            "skip_signature": "false",
        },
        {},
    ]


@pytest.mark.parametrize(
    ("keys", "credentials"),
    [
        ({"accountKey": "a"}, {"credential_type": "access_key", "account_key": "a"}),
        ({"sasToken": "s"}, {"credential_type": "sas_token", "sas_key": "s"}),
        (
            {"tenantId": "t", "clientId": "c", "clientSecret": "s"},
            {
                "credential_type": "client_secret",
                "tenant_id": "t",
                "client_id": "c",
                "client_secret": "s",
            },
        ),
    ],
)
def test_azure_gets_one_kind_of_credentials(
    made: Made, keys: dict[str, str], credentials: dict[str, str]
) -> None:
    endpoint = "https://lake.blob.core.windows.net"
    store = Store(endpoint=endpoint, account="lake", secret="k")  # noqa: S106 - a name

    assert not store_of(store, ("az://",), Secrets(keys)).is_ordered
    place = {"account_name": "lake", "endpoint": endpoint}
    fixed = {"skip_signature": "false", "use_emulator": "false"}
    assert made.options == [{**place, **fixed, **credentials}]


def test_where_the_host_does_not_name_the_account_the_path_does(made: Made) -> None:
    store_of(Store(endpoint="http://127.0.0.1:1", account="lake"), ("az://",), Secrets())

    assert made.options == [{"account_name": "lake", "endpoint": "http://127.0.0.1:1/lake"}]


@pytest.mark.parametrize(
    ("scheme", "keys", "says"),
    [
        ("gs://", None, "Secret k is missing: create it"),
        ("gs://", {}, "Secret k has no key serviceAccount: add it"),
        ("gs://", {"serviceAccount": '"hidden"'}, "serviceAccount of Secret k is not the JSON"),
        ("gs://", {"serviceAccount": "hidden"}, "serviceAccount of Secret k is not the JSON"),
        ("gs://", {"serviceAccount": '{"type": "hidden"}'}, "is not the JSON of a service"),
        ("az://", None, "Secret k is missing: create it"),
        ("az://", {}, "Secret k must have the keys of exactly one of these: accountKey; sasToken;"),
        ("az://", {"accountKey": "hidden", "sasToken": "hidden"}, "keys of exactly one of these"),
        ("az://", {"clientId": "hidden"}, "Secret k has no key tenantId, clientSecret: add it"),
    ],
)
def test_a_secret_that_does_not_fit_is_a_sentence_that_does_not_quote_it(
    made: Made, scheme: str, keys: Mapping[str, str] | None, says: str
) -> None:
    with pytest.raises(RefusedDiscoveryError, match=says) as caught:
        store_of(Store(account="lake", secret="k"), (scheme,), Secrets(keys))  # noqa: S106 - a name

    assert "hidden" not in str(caught.value)
    assert made.options == []


@pytest.mark.parametrize("scheme", ["gs://", "az://"])
def test_credentials_that_the_client_cannot_read_are_not_quoted(scheme: str) -> None:
    keys = {"serviceAccount": json.dumps(KEY)} if scheme == "gs://" else {"accountKey": "hidden!"}
    store = store_of(
        Store(endpoint="http://x", account="lake", secret="k"),  # noqa: S106 - a name
        (scheme,),
        Secrets(keys),
    )
    with pytest.raises(
        RefusedDiscoveryError, match="Secret k cannot be used: its content"
    ) as caught:
        store.stat("b/in")

    assert "hidden" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_credentials_of_the_environment_that_cannot_be_read_are_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT_KEY", '"hidden"')
    store = store_of(Store(endpoint="http://x"), ("gs://",), Secrets())
    with pytest.raises(RefusedDiscoveryError, match="correct the variables that begin with GOOGLE"):
        store.stat("b/in")


@pytest.mark.parametrize("scheme", ["gs://", "az://"])
def test_without_the_client_a_sentence_says_what_to_install(
    scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(RefusedDiscoveryError, match=r"obstore, which is missing: install balanced"):
        store_of(Store(account="lake"), (scheme,), Secrets())


def test_the_name_of_an_object_with_a_line_end_is_the_reason() -> None:
    with (
        pytest.raises(OSError, match=r'cannot list: .*"o/nl x".* path segment.*\. Rename this obj'),
        cloud.explained("cannot list"),
    ):
        raise ValueError(
            'Error parsing Path "o/nl\nx": illegal "\n" in path segment\n\nDebug source:\n'
        )


def test_a_base_that_vanishes_during_the_look_does_not_exist(
    store: CloudStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: Any, **__: Any) -> Any:
        raise FileNotFoundError

    monkeypatch.setattr(store, "_listed", gone)
    assert store.exists("b/in") is False
