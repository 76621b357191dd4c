"""What the parameters of the file tools mean, for the model."""

from __future__ import annotations

from memshelf.files.tools import FileToolKey

__all__ = ["FILE_PARAMETERS"]

_MEMORY = "The memory, by its name."

FILE_PARAMETERS: dict[FileToolKey, dict[str, str]] = {
    "view": {
        "memory": _MEMORY,
        "path": 'A file, such as "prefs/language.md", or a directory, such as "prefs/"; "" is the root.',
    },
    "grep": {
        "memory": _MEMORY,
        "pattern": "The text to find; with regex, a regular expression. It is matched against one line at a time.",
        "path": 'The directory to search, such as "prefs/", or one file; "" searches the whole memory.',
        "regex": "Whether pattern is a regular expression.",
        "case_sensitive": "Whether letter case counts.",
        "limit": "How many lines to return at most.",
    },
    "create": {
        "memory": _MEMORY,
        "path": "The new file's relative path; nothing may exist there yet. Directories need not exist.",
        "content": "The whole content of the file.",
    },
    "edit": {
        "memory": _MEMORY,
        "path": "An existing file.",
        "old_string": "The exact text to replace, with enough around it to occur exactly once in the file.",
        "new_string": 'The text to put there; "" removes the old one.',
    },
    "append": {
        "memory": _MEMORY,
        "path": "An existing file.",
        "content": "The text to add; it starts on a new line.",
    },
    "move": {
        "memory": _MEMORY,
        "source": "An existing file.",
        "destination": "The file's new relative path; nothing may exist there yet.",
    },
    "delete": {
        "memory": _MEMORY,
        "path": "An existing file.",
        "version": "The version that you viewed; if the file is at another one now, it is not deleted.",
    },
}
