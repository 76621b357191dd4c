"""Words, characters and pairs; stems; packed terms; what is taken from a turn of a conversation."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given, strategies as st

from memshelf.embedding.text import EMBEDDED_CHARS, passages, sentences
from memshelf.records.retrieval.analysis import ANALYSIS, analyse
from memshelf.records.retrieval.terms import pack, query_terms, term_hash, terms


def test_chinese_gives_the_characters_that_do_not_only_join_and_all_pairs():
    assert list(terms("喜欢绿茶")) == ["喜", "欢", "绿", "茶", "喜欢", "欢绿", "绿茶"]
    assert list(terms("你的过敏")) == ["敏", "你的", "的过", "过敏"]


def test_what_is_kept_of_a_record_is_what_the_version_of_the_analysis_stands_for():
    """When this fails, raise `ANALYSIS` with the number here: what is stored is then analysed again."""
    text = "Ann: 你的过敏 in cafés since March 5, 2026 (20260305): 0x4A3C2FE2, BX-77421, maxRetryCount, C#; buses?"
    text = f"{text[:-1]} 3/15, May 3-7, every Tue, 04-26?"
    analysis = analyse(text, turn=True)
    kept = zlib.crc32(analysis.terms + repr((analysis.speaker, analysis.asks)).encode())
    assert (ANALYSIS, kept) == (12, 287_906_087)


def test_a_pair_that_joins_words_says_less_than_one_that_may_be_a_word():
    asked = {term: query_terms("你的过敏")[term_hash(term)] for term in ("敏", "你的", "的过", "过敏")}
    assert asked["敏"].weight < asked["你的"].weight == asked["的过"].weight < asked["过敏"].weight
    assert [each.sure for each in asked.values()] == [True, False, False, False]


def test_a_word_with_a_joining_character_is_found_as_a_whole():
    for word in ("过敏", "地铁", "了解", "地址"):
        assert word in list(terms(f"他的{word}呢"))


@pytest.mark.parametrize("text", ["复诊04-26 14:30", "dentist (04-26)", "04-26至04-26", "dentist, april 26"])
def test_a_month_and_a_day_joined_by_a_dash_are_a_day_with_the_nought(text):
    assert "---04-26" in list(terms(text)) or "--04-26" in list(terms(text))


@pytest.mark.parametrize(
    "text",
    ["12-18 people", "5-10分钟", "05-10分钟", "09-17点", "3.11", "3.04-07", "01-23-45", "04-26-1", "a_04-26",
     "02-31", "0755-26", "1.04-26", "04-26%", "v22.12.", "04-2611"],
)  # fmt: skip
def test_so_many_to_so_many_versions_and_numbers_are_no_days(text):
    assert not [each for each in terms(text) if each.startswith("--")]


def test_a_month_is_not_a_day_and_a_number_is_found_without_its_unit():
    assert list(terms("2024年5月8号")) == ["2024", "2024年", "5", "5月", "8", "8日", "2024-05-08", "---05-08"]
    assert list(terms("5月8日")) != list(terms("8月5日"))


def test_words_of_asking_say_nothing():
    assert list(terms("What is it that you would have of the?")) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("policies", "policy"), ("boxes", "box"), ("running", "runs"), ("stopped", "stopping"), ("Cafés", "cafés"),
        ("ＡＢＣ", "abc"), ("STRASSE", "straße"), ("painted", "painting"), ("houses", "house"),
        ("café", "cafe"), ("Zürich", "zurich"), ("cafe\u0301s", "cafe"), ("зелёный", "зеленый"), ("İzmir", "izmir"),
    ],
)  # fmt: skip
def test_forms_of_a_word_are_one_term(one, other):
    assert list(terms(one)) == list(terms(other))


@pytest.mark.parametrize("word", ["bus", "glass", "analysis", "sing", "red", "E0499", "v2", "6601884"])
def test_short_words_and_codes_stay_as_they_are(word):
    assert list(terms(word)) == [word.casefold()]


@pytest.mark.parametrize("text", ["No.", "是", "The Who", "what is it"])
def test_a_record_of_such_words_alone_is_found_by_them(text):
    assert {each >> 3 for each in memoryview(pack(text)).cast("I")} == set(query_terms(text)) != set()


def test_korean_words_are_found_with_and_without_their_particles():
    assert set(terms("커피")) <= set(terms("커피를 좋아해요"))


def test_long_identifiers_are_found_by_their_beginning():
    commit = "551b7d73df7facac"
    assert list(terms(f"Commit {commit}")) == ["commit", commit, "551b7d7"]
    assert "551b7d7" in list(terms("551b7d73d"))
    assert list(terms("551b7d7 internationalisation")) == ["551b7d7", "internationalisation"]


def test_codes_are_found_by_their_parts():
    assert list(terms("PO-88213, /v2/orders/export")) == ["po", "88213", "v2", "order", "export", "po88213"]


def test_a_term_next_to_chinese_is_its_own():
    assert "vue" in list(terms("前端用Vue写"))


@given(st.text(max_size=300))
def test_what_a_question_asks_for_is_in_a_record_of_the_same_text(text):
    import numpy as np

    packed = {int(each) >> 3 for each in np.frombuffer(pack(text), np.uint32)}
    assert set(query_terms(text)) == packed


def test_a_character_weighs_less_than_a_pair():
    weights = query_terms("绿茶")
    assert weights[term_hash("绿茶")].weight == 1.0
    assert weights[term_hash("绿")].weight < 0.5


def test_the_end_of_a_very_long_text_costs_nothing():
    assert pack("tea " * 8_000 + "x" * 1_000_000) == pack("tea " * 8_000)


def test_a_word_far_down_a_long_text_is_found():
    packed = pack("tea " * 5_000 + "saffron")
    assert term_hash("saffron") in {each >> 3 for each in memoryview(packed).cast("I")}
    assert sum(map(len, passages("A sentence of some length, again and again. " * 10_000))) <= 2 * EMBEDDED_CHARS


def test_sentences_end_where_chinese_and_english_ones_do():
    assert sentences("喜欢绿茶。不喝咖啡！真的吗？是的") == ["喜欢绿茶。 不喝咖啡！", "真的吗？ 是的"]
    assert sentences("He left at 10.30 today. She stayed; it rained!\nThen they met.") == [
        "He left at 10.30 today.", "She stayed;", "it rained!", "Then they met.",
    ]  # fmt: skip


def test_a_long_text_is_embedded_whole_and_by_sentence():
    first, second = (
        "用户每天早上都要喝一杯热的绿茶，不加糖也不加奶，已经好多年了",
        "周末他会带父母去西湖边散步，然后在附近的餐馆吃饭，晚上再回家",
    )
    assert passages(f"{first}。{second}。") == [f"{first}。{second}", f"{first}。", second]
    assert passages("Likes tea.") == ["Likes tea"]


def test_tags_and_time_stamps_are_not_embedded():
    assert passages("[短信] 2025-03-05 10:00:00 发送 黄思琪：你好") == ["发送 黄思琪：你好"]
    assert passages("2025-03-05") == ["2025-03-05"]
    assert passages("...") == ["..."]


def test_the_speaker_of_a_turn_is_known_and_not_embedded():
    turn = analyse("Caroline: Do you like tea? [image: a cup]", turn=True)
    assert (turn.speaker, turn.asks, turn.passages) == ("caroline", True, ["Do you like tea? [image: a cup]"])
    chinese = analyse("小明：你喜欢茶吗？", turn=True)
    assert (chinese.speaker, chinese.asks, chinese.passages) == ("小明", True, ["你喜欢茶吗？"])
    fact = analyse("Favourite novel: Middlemarch?", turn=False)
    assert (fact.speaker, fact.asks, fact.passages) == (None, False, ["Favourite novel: Middlemarch?"])
