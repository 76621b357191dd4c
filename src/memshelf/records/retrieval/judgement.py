"""What the vector of a question says of the question itself. Needs NumPy."""

from __future__ import annotations

import numpy as np

from memshelf.records.retrieval import weights
from memshelf.records.retrieval.background import BESIDES, OWN_TASKS, QUESTIONS
from memshelf.records.retrieval.question import Meaning
from memshelf.records.retrieval.vectors import Floats, normalised

__all__ = ["EXAMPLES", "Judgement"]

EXAMPLES = (*QUESTIONS, *OWN_TASKS, *BESIDES)
"""The texts that `Judgement` learns from."""


class Judgement:
    """Tells questions to a memory from general knowledge, tasks and small talk, by a ridge regression over examples."""

    def __init__(self, examples: Floats) -> None:
        """`examples`: the vectors of `EXAMPLES`, of length 1."""
        sides = np.array([1.0] * (len(EXAMPLES) - len(BESIDES)) + [-1.0] * len(BESIDES), np.float32)
        self._middle = examples.mean(axis=0)
        around = examples - self._middle
        # In its dual form, which is as large as there are examples, whatever the dimension.
        mixture = np.linalg.solve(around @ around.T + weights.RIDGE * np.eye(len(around), dtype=np.float32), sides)
        direction = around.T @ mixture
        self._direction: Floats = direction / max(float((around @ direction).std()), 1e-6)
        self._questions = examples[: len(QUESTIONS)].mean(axis=0)

    def of(self, vector: Floats) -> Meaning:
        # All questions are alike in being questions; what is left is what this one is about.
        about = normalised(vector - weights.QUESTIONS_ALIKE * self._questions)[0]
        return Meaning(about, float((vector - self._middle) @ self._direction))
