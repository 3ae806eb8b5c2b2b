"""Events of a real S3 server in a real queue (moto): new objects are read without a listing."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import botocore.session
import pytest

from balanced_source.connectors.files import FilesSource, Format, Store
from balanced_source.errors import DiscoveryError
from balanced_source_adapters.files import stores
from balanced_source_adapters.files.connector import Lister
from balanced_source_spark.contract.secrets import QuerySecrets
from testbed.s3 import BUCKET, s3_server
from testbed.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

KEY = "test"


class Scene:
    """A bucket that tells a queue of new objects, and a lister with the cursor that is stored."""

    def __init__(self, endpoint: str, folder: Path) -> None:
        self._session = botocore.session.Session()
        self._session.set_credentials(KEY, KEY)
        self._endpoint = endpoint
        self.s3, sqs = self._client("s3"), self._client("sqs")
        self.url = sqs.create_queue(QueueName="news")["QueueUrl"]
        wanted = {
            "QueueArn": "arn:aws:sqs:us-east-1:123456789012:news",
            "Events": ["s3:ObjectCreated:*"],
        }
        self.s3.put_bucket_notification_configuration(
            Bucket=BUCKET, NotificationConfiguration={"QueueConfigurations": [wanted]}
        )
        secret = folder / "store"
        secret.mkdir()
        for name in ("accessKeyId", "secretAccessKey"):
            (secret / name).write_text(KEY)
        self.lister, self.cursor = Lister(QuerySecrets(folder=folder)), None

    def _client(self, name: str) -> Any:
        return self._session.create_client(
            name, region_name="us-east-1", endpoint_url=self._endpoint
        )

    def look(self, queue: str | None = None) -> list[str]:
        source = FilesSource(
            paths=(f"s3://{BUCKET}/in/*.txt",),
            kind_of_file=Format.TEXT,
            store=Store(endpoint=self._endpoint, region="us-east-1", secret="store"),  # noqa: S106
            discovery_interval=1,
            queue=queue or self.url,
        )
        page = self.lister(source.list_page(1, self.cursor))
        self.cursor = json.loads(json.dumps(page.cursor))
        return [split.file.path for split in page.splits]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with s3_server() as environment:
        yield Scene(environment["AWS_ENDPOINT_URL"], tmp_path)


def test_new_objects_are_read_without_a_listing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.s3.put_object(Bucket=BUCKET, Key="in/first.txt", Body=b"one\n")
    assert scene.look() == [f"{BUCKET}/in/first.txt"]

    def walk(*_: object, **__: object) -> Any:
        raise AssertionError("listed")

    monkeypatch.setattr(stores.S3Store, "walk", walk)
    for key in ("in/a second+é.txt", "in/other.json", "elsewhere.txt"):
        scene.s3.put_object(Bucket=BUCKET, Key=key, Body=b"two\n")

    found: list[str] = []

    def is_read() -> bool:
        found.extend(scene.look())
        return bool(found)

    wait_until(is_read, 30, "the new object")
    assert scene.look() == []
    assert found == [f"{BUCKET}/in/a second+é.txt"]


def test_a_queue_that_is_missing_is_said(scene: Scene) -> None:
    missing = scene.url.replace("news", "nowhere")
    scene.s3.put_object(Bucket=BUCKET, Key="in/first.txt", Body=b"one\n")
    scene.look(missing)

    with pytest.raises(DiscoveryError, match=r"cannot read notifications from the queue .*nowhere"):
        scene.look(missing)
