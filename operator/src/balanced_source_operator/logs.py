"""Structured logs: one line of key=value on a terminal, JSON elsewhere."""

import logging
import sys

import structlog


def configure_logging(*, is_debug: bool = False) -> None:
    """Set up logging of the process, once."""
    level = logging.DEBUG if is_debug else logging.INFO
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    renderer: structlog.typing.Processor
    if sys.stderr.isatty():
        renderer = _for_people()
    else:
        shared.append(structlog.processors.format_exc_info)
        renderer = structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    logging.getLogger("kopf").setLevel(logging.WARNING)


def configure_quiet_logging() -> None:
    """Set up logging of a command that shows its state itself: only errors are logged."""
    structlog.configure(
        processors=[structlog.stdlib.add_log_level, _for_people()],
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def _for_people() -> structlog.dev.ConsoleRenderer:
    # The default shows the variables of each frame, and with them passwords.
    return structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
