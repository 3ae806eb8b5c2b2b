"""The page of the Kinesis source.

`kinesis_text.md`, and the fields and options that the code declares.
"""

from pathlib import Path
from typing import Final

from balanced_source_operator.cli.markdown import rows_of
from balanced_source_operator.spec.crd import custom_resource_definition
from balanced_source_spark.kinesis.option_names import OPTIONS
from support.reference.markdown import head, table

ORIGIN: Final = (
    "tests/support/reference/kinesis_text.md, option_names.py of balanced_source_spark.kinesis and"
    " the CRD"
)
_PLACE: Final = "spec.source.kinesis"


def page() -> str:
    """Return the page."""
    text = Path(__file__).with_name("kinesis_text.md").read_text(encoding="utf-8")
    options = table(
        ("option", "default", "meaning"), [(f"`{o.name}`", o.default, o.meaning) for o in OPTIONS]
    )
    return head("Kinesis", ORIGIN, text) + options + f"\n## Fields of `{_PLACE}`\n\n" + _fields()


def _fields() -> str:
    schema = custom_resource_definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"][
        "properties"
    ]
    branch = schema["spec"]["properties"]["source"]["properties"]["kinesis"]
    rows = [
        (f"`{path}`", kind, default, meaning)
        for path, kind, default, meaning in rows_of(branch, _PLACE)
    ]
    return table(("field", "type", "default", "meaning"), rows)
