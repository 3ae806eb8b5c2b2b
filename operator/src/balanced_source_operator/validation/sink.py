"""Names a sink without which the packaged application would end when it starts."""

from collections.abc import Sequence

from balanced_source.documents.storage import FIRST_HOST
from balanced_source.sinks import check_options, own_options
from balanced_source_operator.spec.application import PACKAGED_APPLICATION, Application


def check_sink(application: Application, *, hosts: Sequence[str] = ()) -> None:
    """Check the sink of the packaged application as its drivers do.

    It needs the option that its format cannot do without, and a path for each host. Options in
    Secrets are not known here: such a sink is checked by the driver.

    Args:
        application: of the spec.
        hosts: names of the hosts.

    Raises:
        InvalidSpecError: an option is missing, or a host has no path of its own.
    """
    if application.main_application_file != PACKAGED_APPLICATION or application.pipeline is None:
        return
    sink = application.pipeline.sink
    if not sink.options_from:
        check_options(sink.format, sink.options)
    for host in hosts:
        own_options(sink.format, sink.options, host=host, is_first=host == FIRST_HOST)
