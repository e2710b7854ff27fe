"""The command `reconciler completion`: what a shell reads to complete commands, options and files."""

import click
from click.shell_completion import get_completion_class

from consumer.cli.shared import foreseen
from ordering.errors import ConfigError

_PROGRAM = "reconciler"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
@foreseen
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of `reconciler` for SHELL.

    \b
    Examples:
      reconciler completion bash > ~/.local/share/bash-completion/completions/reconciler
      reconciler completion fish > ~/.config/fish/completions/reconciler.fish
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise ConfigError(f"no completion is known for {shell}")
    root = context.find_root().command
    # the text alone: `source` would ask the version of bash, which need not be here
    made = kind(root, {}, _PROGRAM, f"_{_PROGRAM.upper()}_COMPLETE")
    click.echo(made.source_template % made.source_vars())
