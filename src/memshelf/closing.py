"""What is closed at the end of an `async with`."""

from __future__ import annotations

from types import TracebackType
from typing import Self

__all__ = ["Closes"]


class Closes:
    """An async context manager that ends in `aclose`."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        raise NotImplementedError
