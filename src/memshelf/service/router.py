"""From a path to the resource at it. The same for a few routes and for hundreds: each segment is looked up once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memshelf.service.errors import no_such_path
from memshelf.service.operation import Operation, Resource

__all__ = ["Router"]


class _Node:
    __slots__ = ("any", "named", "parameter", "resource")

    def __init__(self) -> None:
        self.named: dict[str, _Node] = {}
        self.any: _Node | None = None
        self.parameter = ""
        """What the segment that leads to `any` is called."""
        self.resource: Resource | None = None


class Router:
    """The resources of the API, by what follows its prefix. A segment in braces stands for any text but none."""

    def __init__(self, operations: Iterable[Operation], prefix: str) -> None:
        """`prefix` is how the paths begin where they are named."""
        by_path: dict[str, dict[str, Operation]] = {}
        for operation in operations:
            by_path.setdefault(operation.path, {})[operation.method] = operation
        self._root = _Node()
        for path, methods in by_path.items():
            self._place(path).resource = Resource(f"{prefix}{path}", methods)

    def _place(self, path: str) -> _Node:
        node = self._root
        for segment in path[1:].split("/"):
            if not segment.startswith("{"):
                node = node.named.setdefault(segment, _Node())
                continue
            node.any = node.any or _Node()
            assert node.parameter in ("", segment[1:-1])  # noqa: S101  # one place has one name
            node.parameter = segment[1:-1]
            node = node.any
        return node

    def find(self, path: Sequence[str]) -> tuple[Resource, dict[str, str]]:
        """The resource at the path with these segments, and the parameters in it. 404."""
        node = self._root
        parameters: dict[str, str] = {}
        for segment in path:
            following = node.named.get(segment)
            if following is None:
                if node.any is None or not segment:
                    raise no_such_path()
                parameters[node.parameter] = segment
                following = node.any
            node = following
        if node.resource is None:
            raise no_such_path()
        return node.resource, parameters
