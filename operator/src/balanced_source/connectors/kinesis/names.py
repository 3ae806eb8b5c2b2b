"""Names and ARNs of streams: two spellings of one stream, perhaps.

Ids of splits hold the spelling with which reading of a stream began. If the user changes it to the
other spelling, the ids stay, so that reading continues. Whether both mean the same stream is known
only from the service, which says when the stream was created.
"""

from collections.abc import Mapping


def is_arn(stream: str) -> bool:
    """Whether a stream is named by its ARN."""
    return stream.startswith("arn:")


def name_of(stream: str) -> str:
    """Return the name in an ARN, or the name itself."""
    return stream.rpartition("/")[2]


def meant(stream: str, streams: tuple[str, ...]) -> str | None:
    """Return which of the streams a spelling may mean; None if none of them, or several.

    Two different ARNs are two streams.
    """
    if stream in streams:
        return stream
    alike = [
        other
        for other in streams
        if is_arn(other) != is_arn(stream) and name_of(other) == name_of(stream)
    ]
    return alike[0] if len(alike) == 1 else None


def arns(streams: tuple[str, ...]) -> Mapping[str, str]:
    """Return name → ARN, for names that one ARN alone has."""
    known = [stream for stream in streams if is_arn(stream)]
    return {name_of(arn): arn for arn in known if meant(name_of(arn), streams) == arn}
