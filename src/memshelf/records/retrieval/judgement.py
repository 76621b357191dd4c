"""What the vector of a question says of the question itself. Needs NumPy."""

from __future__ import annotations

from importlib.resources import files

import numpy as np

from memshelf.records.retrieval import weights
from memshelf.records.retrieval.background import BESIDES, OWN_TASKS, QUESTIONS
from memshelf.records.retrieval.question import Meaning
from memshelf.records.retrieval.vectors import Floats, normalised

__all__ = ["EXAMPLES", "Judgement"]

EXAMPLES = (*QUESTIONS, *OWN_TASKS, *BESIDES)
"""The texts that `Judgement` learns from."""

_BUNDLED = ("universal-sentence-encoder-multilingual-3", "0.2.1", 512)
_LEARNED = files("memshelf.records.retrieval").joinpath("judgement.f32")
"""What `learned` makes of the vectors of the bundled model, which takes longer than all else that a search does."""


class Judgement:
    """Tells questions to a memory from general knowledge, tasks and small talk, by a ridge regression over examples."""

    def __init__(self, middle: Floats, direction: Floats, questions: Floats) -> None:
        """The mean of the examples, which way from it the questions lie, and the mean of the plain questions."""
        self.numbers = middle, direction, questions

    @classmethod
    def kept(cls, made_by: tuple[str, str, int]) -> Judgement | None:
        """The one for the vectors of this model, version and dimension, if it came with the package."""
        if made_by != _BUNDLED:
            return None
        return cls(*np.frombuffer(_LEARNED.read_bytes(), "<f4").reshape(3, -1))

    @classmethod
    def learned(cls, examples: Floats) -> Judgement:
        """`examples`: the vectors of `EXAMPLES`, of length 1."""
        sides = np.array([1.0] * (len(EXAMPLES) - len(BESIDES)) + [-1.0] * len(BESIDES), np.float32)
        middle = examples.mean(axis=0)
        around = examples - middle
        # In its dual form, which is as large as there are examples, whatever the dimension.
        mixture = np.linalg.solve(around @ around.T + weights.RIDGE * np.eye(len(around), dtype=np.float32), sides)
        direction = around.T @ mixture
        direction /= max(float((around @ direction).std()), 1e-6)
        return cls(middle, direction, examples[: len(QUESTIONS)].mean(axis=0))

    def of(self, vector: Floats) -> Meaning:
        # All questions are alike in being questions; what is left is what this one is about.
        middle, direction, questions = self.numbers
        about = normalised(vector - weights.QUESTIONS_ALIKE * questions)[0]
        return Meaning(about, float((vector - middle) @ direction))
