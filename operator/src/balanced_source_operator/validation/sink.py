"""Names a sink without which the packaged application would end when it starts."""

from balanced_source.sinks import check_options
from balanced_source_operator.spec.application import PACKAGED_APPLICATION, Application


def check_sink(application: Application) -> None:
    """Check that the sink of the packaged application has the option that its format needs.

    Options in Secrets are not known here: such a sink is checked by the driver.

    Raises:
        InvalidSpecError: the option is missing.
    """
    if application.main_application_file != PACKAGED_APPLICATION or application.pipeline is None:
        return
    sink = application.pipeline.sink
    if not sink.options_from:
        check_options(sink.format, sink.options)
