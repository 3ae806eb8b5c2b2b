"""Compares the folder of a file sink with the Spark checkpoint, before a run starts."""

from pathlib import Path

from balanced_source.sinks import has_log, new_folder
from balanced_source_operator.spec.application import PipelineSpec


def check_sink_folder(pipeline: PipelineSpec) -> None:
    """Check that the folder of a file sink has the log of what the Spark checkpoint has finished.

    Spark reads that log in every tenth micro-batch only, and fails then. URLs are not checked.

    Raises:
        InvalidSpecError: the folder is another one, or it was deleted.
    """
    sink = pipeline.sink
    path = next((value for name, value in sink.options.items() if name.lower() == "path"), "")
    is_remote = ":" in path or ":" in pipeline.checkpoint_location
    if not path or is_remote or not has_log(sink.format):
        return
    commits = Path(pipeline.checkpoint_location) / "commits"
    has_commits = commits.is_dir() and any(file.name.isdecimal() for file in commits.iterdir())
    if has_commits and not (Path(path) / "_spark_metadata").is_dir():
        raise new_folder()
