"""What a changefeed's protocol loses before its messages reach Kafka, named at each start."""

import structlog

from consumer.config.model import SourceSection
from consumer.formats.debezium.columns import LOSSES

log = structlog.get_logger()
_NO_DDL = (
    "source.protocol = 'avro' without avro-enable-watermark: the topics hold no DDL. Create, change, truncate and drop"
    " tables in the target by hand, at the moment when upstream does: rows alone show neither TRUNCATE nor DROP"
)


def told_of_losses(source: SourceSection) -> str:
    """What a user has to know of a protocol that loses values or DDLs; "" of another one."""
    if source.protocol == "debezium":
        return f"source.protocol = {source.protocol!r} loses values: {'; '.join(LOSSES)}"
    return _NO_DDL if source.protocol == "avro" and not source.avro_enable_watermark else ""


def warn_of_losses(source: SourceSection) -> None:
    """Log it, once for each run."""
    if told := told_of_losses(source):
        log.warning(told)
