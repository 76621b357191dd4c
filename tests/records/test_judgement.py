import asyncio
import os
from pathlib import Path

import numpy as np
import pytest

from memshelf.embedding.bundled import BundledEmbedder
from memshelf.records.retrieval import judgement as module
from memshelf.records.retrieval.judgement import EXAMPLES, Judgement
from memshelf.records.retrieval.vectors import Floats, normalised

OF_A_MEMORY = (
    "Which school does their daughter attend?", "How did the interview on Tuesday go?", "Where did we park the van?",
    "Rename the column in the orders table.", "她女儿在哪所学校？", "周二的面试怎么样？", "把订单表那一列改个名。",
)  # fmt: skip
BESIDES = (
    "How far is Mars from the sun?", "Write a fable about a fox.", "What is a prime number?", "Thank you so much.",
    "火星离太阳多远？", "写一个关于狐狸的寓言。", "什么是质数？", "多谢多谢。",
)  # fmt: skip


@pytest.fixture(scope="module")
def judgement() -> Judgement:
    return Judgement.learned(vectors(EXAMPLES))


def vectors(texts: tuple[str, ...]) -> Floats:
    return normalised(asyncio.run(BundledEmbedder().embed(texts)))


def test_questions_to_a_memory_are_told_from_all_else_in_both_languages(judgement: Judgement):
    asked = [judgement.of(each).asked_of_memory for each in vectors(OF_A_MEMORY)]
    said = [judgement.of(each).asked_of_memory for each in vectors(BESIDES)]
    assert min(asked) > max(said)


def test_what_all_questions_share_is_taken_out_of_a_question(judgement: Judgement):
    first, second = vectors(("Which school does their daughter attend?", "Where did we park the van?"))
    apart = judgement.of(first).vector @ judgement.of(second).vector
    assert apart < first @ second
    assert np.isclose(np.linalg.norm(judgement.of(first).vector), 1)


def test_vectors_that_are_all_the_same_say_nothing(judgement: Judgement):
    same = np.tile(vectors(("Anything.",)), (len(EXAMPLES), 1))
    meaning = Judgement.learned(same).of(same[0])
    assert meaning.asked_of_memory == pytest.approx(0, abs=1e-3)
    assert np.isfinite(meaning.vector).all()


def test_the_judgement_that_comes_with_the_package_is_what_is_learned_of_the_bundled_model(judgement: Judgement):
    """When this fails, `MEMSHELF_UPDATE_GOLDEN=1` writes it anew, for the version that `judgement` then has to name."""
    if os.environ.get("MEMSHELF_UPDATE_GOLDEN"):
        Path(str(module._LEARNED)).write_bytes(np.array(judgement.numbers, "<f4").tobytes())
    model = BundledEmbedder()
    kept = Judgement.kept((model.model, model.version, model.dimension))
    assert kept is not None
    np.testing.assert_allclose(kept.numbers, judgement.numbers, atol=1e-4)
    assert Judgement.kept((model.model, f"{model.version}.1", model.dimension)) is None
