"""What the operator half of files says of losses, and which options readers get."""

from typing import Any

import pytest

from balanced_source.connectors.files import SKIPPED_BLOCKS
from balanced_source.errors import InvalidSpecError
from balanced_source_operator.contract.half import NO_LOSSES, half_of
from balanced_source_operator.controller.translate import reader_options
from balanced_source_operator.spec import parse_spec
from support.builders import spec_json

CSV: dict[str, Any] = {"paths": ["/data/in"], "format": "Csv", "schema": "a INT"}


def spec(**changes: Any) -> Any:
    return half_of("files").spec.model_validate({**CSV, **changes})


def test_blocks_that_were_skipped_are_a_loss() -> None:
    half = half_of("files")
    assert half.losses({}) == half.losses({SKIPPED_BLOCKS: 0}) == NO_LOSSES
    for skipped, words in ((1, "1 block of files"), (12, "12 blocks of files")):
        [problem] = half.losses({SKIPPED_BLOCKS: skipped, "others": 3}).problems
        assert problem.reason == "SplitsSkipped"
        assert words in problem.message


def test_only_what_the_user_sets_is_an_option() -> None:
    plain = reader_options(parse_spec(spec_json(source={"files": CSV})))
    assert plain["fileFormat"] == "csv"
    assert plain["schema"] == "a INT"
    assert None not in plain.values()
    assert not plain.keys() & {"escape", "metadataColumns"}
    assert half_of("files").part_options(spec()) == {**plain, "metadataColumns": "false"}


def test_what_the_user_sets_is_an_option_in_sparks_words() -> None:
    records = {"header": True, "separator": ";", "quote": "'", "escape": "!", "nullValue": "-"}
    given = spec(records={**records, "mode": "DropMalformed"}, metadataColumns=True)
    options = half_of("files").reader_options(given)

    assert {name: options[name] for name in ("header", "sep", "quote", "escape", "nullValue")} == {
        "header": "true",
        "sep": ";",
        "quote": "'",
        "escape": "!",
        "nullValue": "-",
    }
    assert (options["mode"], options["metadataColumns"]) == ("DROPMALFORMED", "true")
    assert half_of("files").part_options(given)["metadataColumns"] == "true"


@pytest.mark.parametrize("kind", ["Text", "Binary"])
def test_files_with_one_column_have_no_schema_to_infer(kind: str) -> None:
    given = half_of("files").spec.model_validate({"paths": ["/data/in"], "format": kind})
    with pytest.raises(InvalidSpecError, match=f"files of format {kind} have one column") as found:
        half_of("files").infer_schema(given, lambda _: {}, field="spec.source.files")

    assert found.value.field == "spec.source.files.format"


@pytest.mark.parametrize(
    ("paths", "store", "setting"),
    [
        (["s3://b/in"], "s3", "endpoint"),
        (["gs://b/in"], "gcs", "endpoint"),
        (["az://raw/in"], "azure", "endpoint"),
    ],
)
def test_the_operators_pod_asks_no_address_of_its_own_machine(
    paths: list[str], store: str, setting: str
) -> None:
    account = {"account": "lake"} if store == "azure" else {}
    settings = {setting: "http://169.254.169.254", **account}
    given = spec(paths=paths, **{store: settings})
    common: Any = None
    with pytest.raises(InvalidSpecError) as found:
        half_of("files").to_source(given, common, {}, field="spec.source.files")

    assert found.value.field == f"spec.source.files.{store}.{setting}"
