"""`python -m consumer.reference`: writes the pages of reference into `docs/`, or prints one that is named."""

from pathlib import Path

import click

from consumer.reference import PAGES


@click.command()
@click.argument("name", type=click.Choice(list(PAGES)), required=False)
def main(name: str | None) -> None:
    """Write docs/configuration.md, docs/cli.md and docs/api.md again; with NAME print that one instead."""
    if name is not None:
        click.echo(PAGES[name](), nl=False)
        return
    for each, page in PAGES.items():
        path = Path("docs") / f"{each}.md"
        path.write_text(page(), encoding="utf-8")
        click.echo(f"wrote {path}")


if __name__ == "__main__":
    main(prog_name="python -m consumer.reference")
