"""What the rules of a thread need to know of a message, whatever framework it belongs to."""

from __future__ import annotations

from typing import Protocol, TypeVar

__all__ = ["MessageShape"]

Message = TypeVar("Message", contravariant=True)


class MessageShape(Protocol[Message]):
    """How messages of one framework are read.

    A turn begins with a message that says something of the user's and answers no tool call; it goes on until the next
    one. Within a turn, a round begins with each answer of the model and holds the results of the calls in it.
    """

    def starts_turn(self, message: Message) -> bool: ...

    def starts_round(self, message: Message) -> bool: ...

    def tokens(self, message: Message) -> int: ...

    def over(self, message: Message, tool_result_tokens: int) -> int:
        """How many tokens fewer it takes when each of its tool results takes at most so many."""
        ...

    def lines(self, message: Message, tool_result_tokens: int) -> list[tuple[str, str]]:
        """The message for a reader: who speaks, and what they say. Longer tool results are shortened."""
        ...
