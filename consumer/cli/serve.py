"""The command `reconciler serve`."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from consumer.cli.shared import WholeNumber, foreseen
from consumer.runtime.signals import Stopped, StopRequest, stopped_by_signals

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("directory", metavar="DIR", type=_FILE)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=WholeNumber(0, 65535), default=8300, show_default=True, help="0: a free port.")
@click.option("--tls-cert", type=_FILE, help="Certificate chain, PEM; with --tls-key.")
@click.option("--tls-key", type=_FILE, help="Its key, PEM, without password.")
@click.option("--allow-host", multiple=True, metavar="NAME", help="A DNS name of this server; may be repeated.")
@foreseen
def serve(directory: Path, **options: Any) -> int:
    """Run every changefeed of DIR (a TOML file each) in one process, with API, metrics and page.

    The token of the API is in the environment variable RECONCILER_TOKEN, or in the file that it names: file:PATH.
    SIGTERM and SIGINT stop cleanly.

    \b
    Example:
      RECONCILER_TOKEN=$(openssl rand -hex 32) reconciler serve changefeeds --port 8300
    """
    with suppress(Stopped), stopped_by_signals(StopRequest()):
        from consumer.serve import server  # noqa: PLC0415 a web server only where it is needed

        server.serve(directory, server.Listen(**options))
    return 0
