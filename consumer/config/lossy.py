"""What a changefeed's protocol loses before its messages reach Kafka, named at each start."""

import structlog

from consumer.formats.debezium.columns import LOSSES

log = structlog.get_logger()


def told_of_losses(protocol: str) -> str:
    """What a user has to know of a protocol that loses values; "" of another one."""
    return f"source.protocol = {protocol!r} loses values: {'; '.join(LOSSES)}" if protocol == "debezium" else ""


def warn_of_losses(protocol: str) -> None:
    """Log it, once for each run."""
    if told := told_of_losses(protocol):
        log.warning(told)
