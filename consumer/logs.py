"""Logs to stderr: for people on a console, JSON for machines. One line a window at info."""

import logging
import sys

import structlog


def set_up(*, json: bool, verbose: bool) -> None:
    """Configure structlog and tame the libraries' own loggers."""
    logging.basicConfig(stream=sys.stderr, level=logging.CRITICAL, format="%(name)s: %(message)s")
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer() if json else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso" if json else "%H:%M:%S", utc=json),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG if verbose else logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
