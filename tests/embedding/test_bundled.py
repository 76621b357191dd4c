"""The bundled model."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from forked import finish, fork
from memshelf.embedding import blas
from memshelf.embedding.bundled import BundledEmbedder
from memshelf.embedding.default import default_embedder
from memshelf.embedding.protocol import Embedder


async def test_meanings_are_close_across_languages():
    rows = np.asarray(await BundledEmbedder().embed(["I like green tea", "我喜欢绿茶", "The train is late"]))
    assert rows.shape == (3, 512)
    assert rows.dtype == np.float32
    assert rows[0] @ rows[1] > 0.6 > rows[0] @ rows[2]


async def test_a_text_has_one_vector_whatever_stands_beside_it():
    embedder = BundledEmbedder()
    texts = [f"text number {each} 第{each}条" for each in range(150)]
    together = np.asarray(await embedder.embed(texts))
    for each in (0, 64, 149):
        alone = np.asarray(await embedder.embed([texts[each]]))
        assert np.allclose(alone[0], together[each], atol=1e-5)


@pytest.mark.parametrize("text", ["", " ", "\x00", "👩‍👩‍👧‍👦", "a" * 100_000, "好" * 100_000])
async def test_every_text_has_a_vector(text):
    (row,) = np.asarray(await BundledEmbedder().embed([text]))
    assert np.isfinite(row).all()
    assert np.linalg.norm(row) == pytest.approx(1, abs=1e-3)


async def test_no_texts_have_no_vectors():
    assert np.asarray(await BundledEmbedder().embed([])).shape == (0, 512)


async def test_it_is_the_default_and_says_what_it_is():
    embedder = default_embedder()
    assert isinstance(embedder, BundledEmbedder)
    assert isinstance(embedder, Embedder)
    assert (embedder.model, embedder.dimension) == ("universal-sentence-encoder-multilingual-3", 512)
    assert embedder.version


async def test_the_event_loop_goes_on_meanwhile():
    embedder = BundledEmbedder()
    await embedder.embed(["warm"])
    embedding = asyncio.create_task(embedder.embed(["tea and cake " * 50] * 64))
    turns = 0
    while not embedding.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns > 1


def test_it_works_in_a_forked_child():
    asyncio.run(BundledEmbedder().embed(["before the fork"]))
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(asyncio.wait_for(BundledEmbedder().embed(["in the child"]), 30))
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_child_that_is_forked_while_the_number_of_threads_is_changed_computes_too():
    def compute(report):
        signal.alarm(20)  # the child would wait for a thread that it does not have
        with blas.one_thread():
            report("done")

    with blas._lock:
        child = fork(compute)
    assert finish([child]) == ["done"]


_LIMITS = """
import threadpoolctl
import numpy
from memshelf.embedding.blas import one_thread

def threads():
    return {each["num_threads"] for each in threadpoolctl.threadpool_info() if each["user_api"] == "blas"}

with threadpoolctl.threadpool_limits(2, user_api="blas"):
    before = threads()
    with one_thread():
        with one_thread():
            assert threads() == {1}
        assert threads() == {1}
    assert threads() == before == {2}
"""


def test_threads_are_as_many_as_before_when_the_last_one_leaves():
    subprocess.run([sys.executable, "-c", _LIMITS], check=True)


_LIMITS_IN_THREADS = """
import threading
import numpy
import threadpoolctl
from memshelf.embedding.blas import one_thread

def threads():
    return {each["num_threads"] for each in threadpoolctl.threadpool_info() if each["user_api"] == "blas"}

def within(entered, leave, seen):
    with one_thread():
        seen.append(threads())
        entered.set()
        leave.wait(30)
        seen.append(threads())

before = threads()
with one_thread():
    assert threads() == {1}
assert threads() == before
seen = []
started = [(threading.Event(), threading.Event()) for _ in range(3)]
workers = [threading.Thread(target=within, args=(*events, seen)) for events in started]
for worker, (entered, _) in zip(workers, started):
    worker.start()
    assert entered.wait(30)
for worker, (_, leave) in zip(workers, started):  # the first to enter is the first to leave
    leave.set()
    worker.join()
assert seen == [{1}] * 6, seen
assert threads() == before
"""


def test_one_thread_holds_for_whichever_thread_asks_for_it():
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", _LIMITS_IN_THREADS], check=True, env=environment)
