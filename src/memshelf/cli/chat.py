"""`memshelf chat`: the command; the conversation itself is in `conversation`, which needs the extra `agent`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Literal

import click

from memshelf.cli.command import disk_paths, require_agent
from memshelf.cli.memory import disk_path
from memshelf.cli.mounts import mounted

__all__ = ["chat", "threads_option"]

Permission = Literal["allow", "ask", "deny"]


threads_option = click.option(
    "--threads",
    shell_complete=disk_paths,
    default=".memshelf/threads",
    show_default=True,
    metavar="DIR",
    help="Where threads are kept.",
)


@click.command()
@click.option(
    "--memory",
    "-m",
    "memories",
    multiple=True,
    metavar="NAME=PATH[:read|:write]",
    help="Mount a memory under a name; repeatable. PATH is a directory or a SQLite file (PATH#NAME). Writable unless "
    "it ends in :read.",
)
@click.option(
    "--workspace",
    "-w",
    "directory",
    metavar="DIR",
    shell_complete=disk_paths,
    help="Give the model the workspace in this directory: what is known about the user, and standing rules.",
)
@click.option("--user", metavar="ID", help="Whose workspace memory.  [default: default]")
@click.option(
    "--model",
    envvar="MEMSHELF_MODEL",
    show_envvar=True,
    metavar="MODEL",
    help="The model that answers, as PROVIDER:NAME, such as openai-responses:gpt-5.",
)
@click.option(
    "--thread",
    "--session",
    "thread",
    metavar="NAME",
    help="Continue this thread, or start it. Without it, a new one is started.",
)
@click.option("--new", is_flag=True, help="Refuse a --thread that exists already.")
@threads_option
@click.option(
    "--always-load", multiple=True, metavar="PATH", help="Show the model this file in full, as README.md always is."
)
@click.option("--allow", multiple=True, metavar="RULE", help="Allow a tool: an ID or a pattern, as memory.file.*.")
@click.option(
    "--ask", multiple=True, metavar="RULE", help="Ask before each call of a tool; refuse where nobody can be asked."
)
@click.option("--deny", multiple=True, metavar="RULE", help="Refuse a tool.")
@click.argument("question", required=False)
def chat(
    memories: Sequence[str],
    directory: str | None,
    user: str | None,
    model: str | None,
    thread: str | None,
    new: bool,
    threads: str,
    always_load: Sequence[str],
    allow: Sequence[str],
    ask: Sequence[str],
    deny: Sequence[str],
    question: str | None,
) -> None:
    """Chat with a model that has memories.

    With QUESTION, or a question on standard input, answers once and ends. Otherwise every line is a turn: Ctrl-C stops
    an answer, and at the prompt it leaves, as Ctrl-D does, and a line that is only exit or quit. The conversation is
    kept in plain text in a file of --threads that only you can read, and goes on with the same --thread. The model
    named test needs no key: it calls every tool once, with arguments of no meaning. Try it with a memory that does not
    matter.

    \b
    Examples:
      memshelf chat --memory user=.memory/user --model openai-responses:gpt-5
      memshelf chat -m user=user.db -m team=team.db#notes:read --thread work
      memshelf chat --workspace ~/notes --user ann --session work
      memshelf chat -m user=.memory/user --ask memory.file.delete
      echo "What do you know about me?" | memshelf chat -m user=.memory/user
      memshelf chat -m trial=trial.db --model test "hello"
    """
    if not model:
        raise click.UsageError(
            "No model is named. Use --model, such as --model openai-responses:gpt-5, or set MEMSHELF_MODEL."
        )
    if not memories and directory is None:
        raise click.UsageError("There is no memory. Mount one with --memory NAME=PATH, or give a --workspace DIR.")
    if user is not None and directory is None:
        raise click.UsageError("--user goes with --workspace DIR.")
    if new and thread is None:
        raise click.UsageError("--new goes with --thread NAME; without a name, every thread is new.")
    mounts = [mounted(each, ("README.md", *always_load)) for each in memories]
    place = None
    if directory is not None:
        from memshelf.cli.workspace_place import opened_workspace  # it loads the search of entries

        place = opened_workspace(directory, user)
    rules: dict[str, Permission] = {
        **dict.fromkeys(allow, "allow"),
        **dict.fromkeys(ask, "ask"),
        **dict.fromkeys(deny, "deny"),
    }
    if question is None and not sys.stdin.isatty():
        question = sys.stdin.read()
    elif question is not None and question != question.encode(errors="replace").decode():
        raise click.UsageError("The question is UTF-8 text; this is not.")
    require_agent()
    from memshelf.cli import conversation  # it loads the agent framework, which only chats need

    conversation.hold(
        conversation.Party(model, mounts, place, rules),
        directory=disk_path(threads),
        thread=thread,
        new=new,
        question=question,
    )
