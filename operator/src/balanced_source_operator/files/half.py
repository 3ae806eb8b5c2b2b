"""The operator half of files; see `OperatorHalf`."""

from collections.abc import Mapping
from typing import Any, Final

from balanced_source.api import Problem, SecretReader, Source
from balanced_source.connectors.files import (
    SKIPPED_BLOCKS,
    FilesSource,
    Format,
    Store,
    StoreKind,
    kind_of_all,
    place_of,
    reached,
)
from balanced_source.durations import seconds
from balanced_source.errors import ContractViolationError, InvalidSpecError
from balanced_source.names import counted
from balanced_source.reasons import Reason
from balanced_source_operator.contract.addresses import check_endpoint
from balanced_source_operator.contract.half import (
    NO_LOSSES,
    Common,
    Losses,
    OperatorHalf,
    Texts,
)
from balanced_source_operator.files.spec import (
    WORDS,
    AzureStoreSpec,
    FilesSpec,
    GcsStoreSpec,
    S3StoreSpec,
)

_FIXED: Final = "cannot be changed: create a new source instead"


class FilesOperatorHalf(OperatorHalf[FilesSpec]):
    """Files on mounted volumes, in object stores and in HDFS."""

    spec = FilesSpec
    description = "Files on mounted volumes, in object stores and in HDFS."
    words = WORDS
    can_have_hosts = False
    awaits_end = True

    def to_source(
        self, spec: FilesSpec, common: Common, texts: Texts, *, field: str
    ) -> FilesSource:
        if spec.s3 is not None:
            check_endpoint(spec.s3.endpoint, field=f"{field}.s3.endpoint")
            check_endpoint(spec.s3.notification_queue, field=f"{field}.s3.notificationQueue")
        if spec.gcs is not None:
            check_endpoint(spec.gcs.endpoint, field=f"{field}.gcs.endpoint")
        if spec.azure is not None:
            check_endpoint(spec.azure.endpoint, field=f"{field}.azure.endpoint")
        return _source(spec, field=field)

    def losses(self, numbers: Mapping[str, int]) -> Losses:
        """Return the blocks that planning has left out, as ``onLoss: Skip`` allows."""
        if not (skipped := numbers.get(SKIPPED_BLOCKS, 0)):
            return NO_LOSSES
        message = (
            f"{counted(skipped, 'block')} of files not read (onLoss: Skip): the files were changed"
            " or deleted after they were listed"
        )
        problem = Problem(reason=Reason.SPLITS_SKIPPED, message=message)
        return Losses(gaps=skipped, problems=(problem,))

    def infer_schema(self, spec: FilesSpec, secrets: SecretReader, *, field: str) -> str:
        # an operator never infers
        from balanced_source_adapters.files.inference import CsvForm, inferred_ddl

        call = _source(spec, field=field).list_page(1, None)
        if call.kind in (Format.TEXT, Format.BINARY):
            raise InvalidSpecError(
                f"files of format {spec.format.value} have one column", field=f"{field}.format"
            )
        records = spec.records
        form = CsvForm(
            header=records.header,
            separator=records.separator,
            quote=records.quote,
            escape=records.escape or "",
            null=records.null_value,
        )
        return inferred_ddl(call, secrets, form)

    def reader_options(self, spec: FilesSpec) -> Mapping[str, str]:
        records = spec.records
        given = {
            "fileFormat": spec.format.value.lower(),
            "schema": spec.ddl,
            "mode": records.mode.value.upper(),
            "columnNameOfCorruptRecord": records.corrupt_column,
            "header": str(records.header).lower(),
            "sep": records.separator,
            "quote": records.quote,
            "escape": records.escape,
            "nullValue": records.null_value,
        }
        if spec.metadata_columns is not None:
            given["metadataColumns"] = str(spec.metadata_columns).lower()
        return {name: value for name, value in given.items() if value is not None}

    def part_options(self, spec: FilesSpec) -> Mapping[str, str]:
        """Leave out the metadata columns, which rows of other parts do not have."""
        return {"metadataColumns": "false", **self.reader_options(spec)}

    def check_change(
        self, before: Source[Any, Any], after: Source[Any, Any], *, field: str
    ) -> None:
        """Refuse what the API server refuses too: local mode has none."""
        former, files = _files(before), _files(after)
        if former.paths != files.paths:
            raise InvalidSpecError(_FIXED, field=f"{field}.paths")
        if former.kind_of_file is not files.kind_of_file:
            raise InvalidSpecError(_FIXED, field=f"{field}.format")
        if former.boundedness is not files.boundedness:
            raise InvalidSpecError(
                f"whether there is one {_FIXED}", field=f"{field}.discoveryInterval"
            )

    def fixed(self, source: Source[Any, Any]) -> Mapping[str, str]:
        """Return what `check_change` compares."""
        files = _files(source)
        return {
            "paths": "\n".join(files.paths),
            "format": files.kind_of_file.value,
            "discoveryInterval": files.boundedness.value,
        }


def _files(source: Source[Any, Any]) -> FilesSource:
    if not isinstance(source, FilesSource):
        raise ContractViolationError(f"{type(source).__name__} is not a file source")
    return source


def _source(spec: FilesSpec, *, field: str) -> FilesSource:
    return FilesSource(
        paths=tuple(spec.paths),
        kind_of_file=Format(spec.format.value.lower()),
        store=_store(spec, field),
        split_bytes=spec.split_bytes,
        discovery_interval=None
        if spec.discovery_interval is None
        else seconds(spec.discovery_interval),
        late=seconds(spec.late_window),
        on_loss=spec.on_loss,
        ahead=spec.look_ahead,
        names_grow=spec.names_grow,
        may_repeat=spec.allow_repeat,
        queue="" if spec.s3 is None else spec.s3.notification_queue or "",
    )


def _store(spec: FilesSpec, field: str) -> Store:
    """Return how the store of the paths is reached.

    Raises:
        InvalidSpecError: the paths lie in several stores, or the settings are of another one.
    """
    try:
        kind = kind_of_all(spec.paths)
        _check_others(spec, kind, field)
        store = reached(_given(spec, kind), spec.paths)
    except ValueError as error:
        raise InvalidSpecError(str(error), field=f"{field}.paths") from error
    server = f"//{place_of(spec.paths[0]).server}" if kind is StoreKind.HDFS else store.endpoint
    check_endpoint(server, field=f"{field}.paths")
    return store


def _given(spec: FilesSpec, kind: StoreKind) -> Store:
    if kind is StoreKind.GCS:
        gcs = spec.gcs or GcsStoreSpec()
        return Store(endpoint=gcs.endpoint or "", secret=gcs.secret)
    if kind is StoreKind.AZURE:
        azure = spec.azure or AzureStoreSpec()
        return Store(
            endpoint=azure.endpoint or "", account=azure.account or "", secret=azure.secret
        )
    s3 = spec.s3 or S3StoreSpec()
    return Store(endpoint=s3.endpoint or "", region=s3.region or "", secret=s3.secret)


def _check_others(spec: FilesSpec, kind: StoreKind, field: str) -> None:
    former = {StoreKind.S3, StoreKind.VOLUME}  # s3 was never refused beside local files
    allowed = {"s3": former, "gcs": {StoreKind.GCS}, "azure": {StoreKind.AZURE}}
    for name, kinds in allowed.items():
        if getattr(spec, name) is not None and kind not in kinds:
            raise InvalidSpecError(
                f"has no meaning for {kind}: leave it out", field=f"{field}.{name}"
            )
