"""What everyone else has to know of a load: that it is not done yet."""

from ordering.errors import ConfigError
from ordering.progress import Progress
from ordering.timestamps import utc_text


def refuse_unfinished_load(progress: Progress, where: str) -> None:
    """Raise ConfigError while a dump is loaded only in part: applying anything would leave gaps."""
    if progress.loading_ts:
        raise ConfigError(
            f"a dump of {progress.loading_ts} ({utc_text(progress.loading_ts)} UTC) is loaded only in part",
            where=where,
            hint="`reconciler load CONFIG --dump DIR` goes on with it (docs/load.md tells how to begin anew)",
        )
