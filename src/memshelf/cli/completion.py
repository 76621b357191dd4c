"""`memshelf completion`: what a shell needs to complete commands, options and the paths of a memory."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from memshelf.cli import render

__all__ = ["COMPLETION_VARIABLE", "PROGRAM", "completion"]

PROGRAM = "memshelf"
COMPLETION_VARIABLE = "_MEMSHELF_COMPLETE"
"""The variable through which a shell's script asks this program for completions."""

_INSTALL = {
    "bash": """echo 'eval "$(memshelf completion bash)"' >> ~/.bashrc""",
    "zsh": """echo 'eval "$(memshelf completion zsh)"' >> ~/.zshrc""",
    "fish": "memshelf completion fish > ~/.config/fish/completions/memshelf.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(list(_INSTALL)))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    \b
    Examples:
      eval "$(memshelf completion bash)"
      memshelf completion fish > ~/.config/fish/completions/memshelf.fish
    """
    script = get_completion_class(shell)
    if script is None:
        raise click.UsageError(f"There is no completion for {shell}.")
    source = script(context.find_root().command, {}, PROGRAM, COMPLETION_VARIABLE).source()
    render.line(f"{source.rstrip()}\n\n# To install it: {_INSTALL[shell]}")
