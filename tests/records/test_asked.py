"""What is asked: a question alone or somewhere in a message, its words, and its dates."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given, strategies as st

from memshelf.embedding.text import EMBEDDED_CHARS, MOST_SENTENCES
from memshelf.records.backends.in_process import InProcessRecordStore
from memshelf.records.model import NewRecord
from memshelf.records.retrieval.dates import dates
from memshelf.records.retrieval.index import Entry, RecordIndex
from memshelf.records.retrieval.plain import PlainScorer
from memshelf.records.retrieval.postings import Postings
from memshelf.records.retrieval.question import asked, understand
from memshelf.records.retrieval.scoring import Scorer
from memshelf.records.retrieval.terms import pack, query_terms, term_hash, terms
from memshelf.records.retrieval.weekdays import weekday_term

_NOW = datetime(2026, 5, 20, tzinfo=UTC)
_FACTS = (
    "The user is allergic to peanuts.",
    "Drives an old Volvo estate.",
    "His sister Marta plays the cello.",
    "妻子在第三医院做护士。",
    "Prefers window seats on long flights.",
    "每周三晚上上德语课。",
    "The office is closed on the first Monday of the month.",
    "和大学室友老韩合伙开了一家咖啡馆。",
)


async def _store(texts, embedder="default"):
    store = InProcessRecordStore(embedder=embedder)
    await store.add_many(NewRecord(text=text) for text in texts)
    return store


async def _first(store, question):
    found = await store.search(question, limit=1)
    return found[0].text if found else None


# --- messages with a question somewhere -------------------------------------------------------------------------------

_MESSAGES = [
    (
        "Morning! Hope you slept well. Ugh, the train was late again. Which food makes him ill? Let me know when "
        "you get a chance. The weather is finally nice.",
        "The user is allergic to peanuts.",
    ),
    (
        "I watched a great film last night about penguins. Anyway, lots going on here. Which instrument does his "
        "sibling play? Sorry for the long message. Talk soon!",
        "His sister Marta plays the cello.",
    ),
    ("早上好！昨晚睡得怎么样？地铁今天又晚点了。他爱人做什么工作？不好意思消息有点长。", "妻子在第三医院做护士。"),
]


@pytest.mark.parametrize(("message", "answer"), _MESSAGES)
async def test_a_question_is_answered_in_the_middle_of_a_message(message, answer):
    async with await _store(_FACTS) as store:
        assert answer in [found.text for found in await store.search(message, limit=2)]


async def test_by_words_a_question_is_answered_in_the_middle_of_a_message():
    noise = [
        f"Talked about the {what} again." for what in ("train", "film", "weather", "message", "penguins", "slides")
    ]
    message = " ".join(f"I saw the {what} today." for what in ("train", "film", "weather", "penguins"))
    async with await _store([*noise, "Marta plays the cello in an orchestra."], embedder=None) as store:
        found = await store.search(f"{message} Who plays the cello? Thanks!", limit=3)
        assert found[0].text == "Marta plays the cello in an orchestra."


@pytest.mark.parametrize("embedder", ["default", None])
async def test_a_time_in_one_sentence_does_not_hide_what_another_asks(embedder):
    texts = [f"The {what} is on the second floor." for what in ("canteen", "archive", "library", "print shop", "gym")]
    message = "Did you see the match last night? It was wild. Where is the print shop? Bye for today!"
    async with await _store(texts, embedder) as store:
        assert await _first(store, message) == "The print shop is on the second floor."


@pytest.mark.parametrize(
    "before", ["Hi, how are you today? ", "Nice day today. ", "What a week! ", "今天好冷。", "这周好忙。"]
)
@pytest.mark.parametrize("asked", ["What must a doctor never give Bob?", "医生绝不能给Bob开什么药？"])
async def test_what_was_added_today_does_not_stand_before_an_answer_because_of_a_greeting(before, asked):
    days = (60, *[0] * 6, *range(100, 120))
    noise = ("Had pasta for lunch.", "The kitchen light is broken.", "Ordered new shoes.", "It rained.", "下午下雨了。")
    texts = ["Bob is allergic to penicillin.", *(noise[day % 5] + f" ({day})" for day in range(len(days) - 1))]
    async with InProcessRecordStore() as store:
        records = zip(texts, days, strict=True)
        await store.add_many(NewRecord(text=text, at=_NOW - timedelta(days=day)) for text, day in records)
        found = await store.search(before + asked, limit=3, now=_NOW)
        assert texts[0] in [each.text for each in found]


@pytest.mark.parametrize(
    "asked",
    ["is there anything about {}", "do you remember {}", "Can you tell me something about {}, please?",
     "Remind me, {}?", "关于{}你知道什么？", "我之前说过{}什么", "还记得{}吗"],
)  # fmt: skip
@pytest.mark.parametrize("embedder", ["default", None])
async def test_a_name_is_found_however_it_is_asked_for(asked, embedder):
    texts = {
        "NH212": "The flight to Tokyo is NH212, departing 11:45.",
        "Kowalski": "The piano is tuned by Mr. Kowalski.",
        "Miso": "The cat is called Miso and eats only dry food.",
        "赵强": "周五和赵强一起打羽毛球。",
    }
    async with await _store([*texts.values(), *_FACTS], embedder) as store:
        for name, text in texts.items():
            assert await _first(store, asked.format(name)) == text


def test_of_one_sentence_there_is_nothing_else_to_understand():
    assert asked("What does he drive?") == ["What does he drive?"]
    assert asked("他开什么车") == ["他开什么车"]


def test_sentences_are_understood_one_by_one_besides_the_whole():
    assert asked("He is away. What does he drive?") == [
        "He is away. What does he drive?", "He is away.", "What does he drive?",
    ]  # fmt: skip


@given(st.text(st.sampled_from("ab 。？\n."), max_size=4 * EMBEDDED_CHARS))
def test_a_message_of_any_length_is_a_few_texts_that_hold_its_beginning(text):
    whole, *parts = asked(text)
    assert whole == text[:EMBEDDED_CHARS]
    assert len(parts) <= MOST_SENTENCES
    assert not parts or "".join("".join(parts).split()) == "".join(whole.split())


def test_both_scorers_take_the_best_of_the_sentences():
    index = RecordIndex()
    index.put([Entry(key, 0, pack(text)) for key, text in enumerate(_FACTS)])
    for scorer in (PlainScorer(index), Scorer(index)):
        ranked = []
        for text in ("Volvo. Cello!", "Volvo", "cello"):
            question = understand(asked(text), index, now=_NOW, meanings=None)
            ranked.append({slot for slot, _ in scorer.rank(question, 5)})
        assert ranked[0] == ranked[1] | ranked[2] == {1, 2}


@pytest.mark.parametrize(
    "message", ["It is the orchestra's day today. Who plays?", "An orchestra day today, 今天好冷。谁 plays？"]
)
def test_neither_scorer_lets_the_day_of_a_remark_lead(message):
    index = RecordIndex()
    days = [_NOW - timedelta(days=60), *[_NOW] * 6]
    texts = [
        "Nina plays cello in the orchestra.",
        *(f"The orchestra rehearses, number {number}." for number in range(6)),
    ]
    index.put(
        [
            Entry(key, int(at.timestamp() * 1_000_000), pack(text))
            for key, (at, text) in enumerate(zip(days, texts, strict=True))
        ]
    )
    question = understand(asked(message), index, now=_NOW, meanings=None)
    for scorer in (PlainScorer(index), Scorer(index)):
        assert max(scorer.rank(question, 7), key=lambda found: found[1])[0] == 0


@pytest.mark.parametrize(
    "question",
    ["What's the weather like today?", "今天天气怎么样？", "今天股市怎么样", "this year's Oscar winner?"],
)
async def test_what_is_asked_of_a_time_for_something_else_recalls_nothing(question):
    async with InProcessRecordStore() as store:
        for days in (0, 25):
            await store.add_many(NewRecord(text=text, at=_NOW - timedelta(days=days)) for text in _FACTS)
            assert await store.search(question, limit=5, now=_NOW) == []


@pytest.mark.parametrize(
    "question", ["what did I tell you today?", "今天我说了什么？", "what happened today?", "今天发生了什么？"]
)
async def test_what_is_asked_of_a_time_alone_recalls_what_is_of_it(question):
    async with InProcessRecordStore() as store:
        await store.add_many(NewRecord(text=text, at=_NOW) for text in _FACTS)
        await store.add("Sold the old piano.", at=_NOW - timedelta(days=90))
        found = [each.text for each in await store.search(question, limit=len(_FACTS), now=_NOW)]
        assert sorted(found) == sorted(_FACTS)


# --- words ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("embedder", ["default", None])
@pytest.mark.parametrize(
    "question",
    [
        "Who is Kowalsky?", "who is kowlaski", "what does Kowaslki do", "Kowallski", "Kowlski?",
        "Which patrner lives in Krakow?", "the partnr in Krakow",
    ],
)  # fmt: skip
async def test_a_word_with_one_letter_wrong_is_found_as_what_a_record_has(question, embedder):
    others = [f"{name} Novak sells insurance." for name in ("Anna", "Peter", "Jonas", "Marie", "Otto")]
    async with await _store([*others, "Our partner Kowalski lives in Krakow.", *_FACTS], embedder) as store:
        assert await _first(store, question) == "Our partner Kowalski lives in Krakow."


async def test_a_word_that_a_record_has_is_not_taken_for_another():
    async with await _store(["Ann will paint the fence.", "Ben will point at the fence."], None) as store:
        assert [found.text for found in await store.search("paint", limit=5)] == ["Ann will paint the fence."]
        assert await store.search("heron", limit=5) == []


@pytest.mark.parametrize("at_once", [1, 100])
def test_the_postings_tell_which_terms_any_record_has(at_once):
    postings, texts = Postings(), [f"word{number} and others" for number in range(100)]
    for first in range(0, 100, at_once):
        postings.add(first, [pack(text) for text in texts[first : first + at_once]])
    asked_for = [term_hash(term) for term in ("word7", "nothing", "other", "word99", "word100")]
    assert postings.held(asked_for) == [term for term in asked_for if postings.of(term)]
    assert len(postings.held(asked_for)) == 3
    assert Postings().held(asked_for) == []
    nothing = Postings()
    nothing.add(0, [b""] * 100)
    assert nothing.held(asked_for) == []


@pytest.mark.parametrize("question", ["老韩是谁", "老韩在哪"])
@pytest.mark.parametrize("embedder", ["default", None])
async def test_a_name_is_found_whatever_joins_it_to_the_question(question, embedder):
    async with await _store(_FACTS, embedder) as store:
        assert await _first(store, question) == "和大学室友老韩合伙开了一家咖啡馆。"


@pytest.mark.parametrize(
    "question", ["551b7d7", "what was commit 551b7d73d about", "551b7d73df7facac", "提交551b7d7改了什么"]
)
@pytest.mark.parametrize("embedder", ["default", None])
async def test_a_commit_is_found_by_its_short_and_by_its_long_name(question, embedder):
    commits = [f"Commit {number:x} reverts the queue change; needs a follow-up." for number in range(2**60, 2**60 + 9)]
    named = "Commit 551b7d73df7facac reverts the catalog change."
    async with await _store([*commits, "Commit 551b7d74df7facac reverts the import change.", named], embedder) as store:
        found = {each.text for each in await store.search(question, limit=1 if "551b7d73df7facac" in question else 2)}
        assert named in found


def test_only_a_pair_with_a_joining_character_may_be_no_word():
    terms = query_terms("老韩是谁")
    assert [terms[term_hash(each)].sure for each in ("老韩", "韩是", "韩")] == [True, False, True]
    assert not any(each.sure for each in query_terms("do you remember something? 你知道什么？").values())


# --- codes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "record"),
    [
        ("what is maxRetryCount set to", "Set MAX_RETRY_COUNT=5 on staging."),
        ("MAX_RETRY_COUNT", "maxRetryCount is 5 on staging."),
        ("max-retry-count", "maxRetryCount is 5 on staging."),
        ("what does retry_http_client do", "RetryHTTPClient is the one to use."),
        ("4a3c2fe2", "0x4A3C2FE2: the disk was full."),
        ("what was 0x4A3C2FE2", "4a3c2fe2: the disk was full."),
        ("which service is on port 48886", "billing listens on 10.0.0.7:48886."),
        ("48886端口是哪个服务？", "billing listens on 10.0.0.7:48886."),
        ("does he like C#?", "C# is what he likes to write."),
        ("BX77421K 是什么？", "The order is BX-77421-K."),
        ("where is BX-77421-K", "BX77421K is on its way."),
        ("EK-5520981", "Passport EK5520981 expires in May."),
        ("who has +48601234567?", "Reach the plumber at +48 601 234 567."),
        ("who has 48 601 234 567?", "Reach the plumber at +48601234567."),
    ],
)
@pytest.mark.parametrize("embedder", ["default", None])
async def test_a_code_is_found_in_other_spelling_and_leads(question, record, embedder):
    others = [f"Set {name}_RETRY=7 on the service's port." for name in ("MIN", "LAST", "NEXT")]
    others += [f"The service on port {port} is restarted." for port in (48885, 48887, 38886)]
    others += ["He likes C, and does not write C++.", "0x4A3C2FE1: the disk was full.", "Count the clients again."]
    async with await _store([*others, record], embedder) as store:
        assert await _first(store, question) == record


def test_a_code_says_more_than_a_word_and_a_year_does_not():
    asked = query_terms("invoice 48886 of 2024")
    assert asked[term_hash("48886")].weight > asked[term_hash("invoic")].weight == asked[term_hash("2024")].weight


def test_the_beginning_of_a_code_says_less_than_the_code_and_is_all_of_a_short_one():
    long, short = query_terms("order 2026110001"), query_terms("order 2026110")
    assert (
        long[term_hash("2026110")].weight < long[term_hash("2026110001")].weight == short[term_hash("2026110")].weight
    )


@given(st.text(st.sampled_from("aA0 xX_"), max_size=200))
def test_the_parts_of_a_name_are_found_in_it(text):
    assert set(query_terms(text)) == {each >> 3 for each in memoryview(pack(text)).cast("I")}


# --- dates ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-05", "2026/3/5", "2026.03.05", "2026年3月5日", "2026 年 3 月 5 号", "２０２６年３月５日",
        "March 5, 2026", "Mar. 5th 2026", "5 March 2026", "5th of March, 2026", "on 2026-03-05T10:30Z",
        "寄于2026年3月5日。", "二〇二六年三月五日", "5.3.2026", "05.03.2026", "5/3/2026", "3/5/2026", "03-05-2026",
        "20260305", "IMG_20260305_1200.jpg",
    ],
)  # fmt: skip
def test_a_day_is_one_term_however_it_is_written(text):
    for term in ("2026-03-05", "---03-05"):
        assert term_hash(term) in query_terms(text)
        assert term_hash(term) in {each >> 3 for each in memoryview(pack(text)).cast("I")}


@pytest.mark.parametrize(
    "text",
    ["March 5", "on 5 March", "Mar. 5th", "the 5th of March", "3月5日", "三月五号", "3 月 5 日"],
)
def test_a_day_without_its_year_is_the_same_term_in_each_form(text):
    assert list(terms(text))[-2:] == ["--03-05", "---03-05"]
    assert term_hash("---03-05") in query_terms(text)
    assert not [term for term in terms(text) if term.startswith("20")]


@pytest.mark.parametrize(
    "text",
    ["2026-02-30", "2026-13-01", "1.2026-03-05", "12026-03-05", "2026-03-056", "2026年3月", "March 2026",
     "192.168.20.26", "3026-03-05", "2026-03/05", "v2.2026.03.05", "20261301", "120260305", "202603051", "13/13/2026",
     "5.13.2026", "1.5.3.2026", "5.3.20261", "March 50", "march 5pm", "30 February", "十三月五日", "3月5000元",
     "24/7", "1/2 cup", "8/10", "src/3/15", "v3/15", "3/15in", "3/15/20", "3/15%", "13/13"],
)  # fmt: skip
def test_what_is_no_day_of_the_calendar_is_no_date(text):
    assert list(dates(text)) == []


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("3/15 dentist", ["03-15"]), ("看牙医3/15。", ["03-15"]), ("due 15/3.", ["03-15"]),
        ("leave: 3/6", ["03-06", "06-03"]), ("3/15-3/17", ["03-15", "03-16", "03-17"]),
        ("Rome, March 5-7", ["03-05", "03-06", "03-07"]), ("from Mar 30 to April 1st", ["03-30", "03-31", "04-01"]),
        ("5–7 March", ["03-05", "03-06", "03-07"]), ("the 5th to the 7th of March", ["03-05", "03-06", "03-07"]),
        ("12月30日至1月1日", ["12-30", "12-31", "01-01"]), ("三月五日到七日", ["03-05", "03-06", "03-07"]),
        ("feb 27 until feb 29", ["02-27", "02-28", "02-29"]),
        ("3/6 ~ 3/8", ["03-06", "03-07", "03-08", "06-03", "08-03"]),
        ("March 5 to 7 pm", ["03-05"]), ("March 5 - 12 June", ["03-05", "06-12"]), ("March 5 to 45", ["03-05"]),
        ("March 5 and 7", ["03-05"]), ("March 7-5", ["03-07"]), ("May 1 - Sept 1", ["05-01", "09-01"]),
    ],
)  # fmt: skip
def test_a_record_is_of_all_days_of_a_range_and_of_days_in_figures(text, days):
    found = {each for each in terms(text) if each.startswith("-")}
    assert found == {f"{dashes}{day}" for day in days for dashes in ("--", "---")}


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("2026-03-05 to 2026-03-07", ["2026-03-05", "2026-03-06", "2026-03-07"]),
        ("Dec 31, 2026 - Jan 2", ["2026-12-31", "2027-01-01", "2027-01-02"]),
        ("Dec 31 - Jan 2, 2027", ["2026-12-31", "2027-01-01", "2027-01-02"]),
        ("2027年2月28日到29日", ["2027-02-28"]),
        ("March 5-7, 2026", ["2026-03-05", "2026-03-06", "2026-03-07"]),
        ("2026-03-05 to 2027-03-07", ["2026-03-05", "2027-03-07"]),
    ],
)  # fmt: skip
def test_a_range_with_a_year_is_of_that_year(text, days):
    assert sorted({each for each in terms(text) if each.startswith("20") and len(each) == 10}) == days


@given(st.text(st.sampled_from("0123456789-/. 年月日,stmarchy到~"), max_size=60))
def test_no_text_breaks_the_reading_of_dates(text):
    list(terms(text))
    for named in dates(text):
        assert date(named.year or 2000, named.month, named.day)
        assert 0 <= named.start < named.end <= len(text)


@pytest.mark.parametrize("embedder", ["default", None])
@pytest.mark.parametrize(
    "question",
    [
        "2026年3月5日发生了什么？", "What happened on March 5, 2026?", "anything noted for 2026-03-05?", "5 March 2026",
        "3月5号发生了什么？", "What happened on March 5?", "what is there for 5.3.2026?", "log of 20260305",
        "March 5有什么安排？", "5th March有什么安排？",
    ],
)  # fmt: skip
async def test_what_names_a_day_is_found_by_it_in_both_languages(question, embedder):
    days = [f"2026-{month:02}-{day:02}" for month in (2, 3, 4) for day in (4, 5, 6)]
    others = [f"Paid the deposit on {day}." for day in days if day != "2026-03-05"]
    others += ["唐薇2025年4月5日续了保险。", "Nadia sold the car on March 15, 2026."]
    for record in (
        "彭飞2026年3月5日签了租约。",
        "Nadia had knee surgery on March 5, 2026.",
        "Returned the router on 2026-03-05.",
        "Returned the router on 5.3.2026.",
        "Returned the router on 20260305.",
    ):
        async with await _store([*others, record], embedder) as store:
            assert await _first(store, question) == record


_DIARY = [
    "Dentist on 2026-05-27.", "5月28日飞成都。", "Piano recital: June 2nd, 2026.",
    "Tax papers were due on 30 April 2026.", "车辆年检定在2026年6月20日。", "The passport expires on 2027-01-19.",
    "Book fair in Leipzig on 2024-05-28.", "Holiday in Rome, July 3-12.", "8/14 flea market",
]  # fmt: skip
"""Asked on a Wednesday, the 20th of May 2026."""


@pytest.mark.parametrize("embedder", ["default", None])
@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("What do I have next week?", {0, 1}), ("下周有什么安排？", {0, 1}), ("anything in the next 10 days", {0, 1}),
        ("What is planned for next month?", {2, 4}), ("六月份要做什么？", {2, 4}), ("未来两周有什么事？", {0, 1, 2}),
        ("What happened last month?", {3}), ("上个月有过什么事？", {3}), ("What do I have in 13 days?", {2}),
        ("Thanks for the slides. What do I have next week? No rush.", {0, 1}), ("What is on in January?", {5}),
        ("What is between May 25 and May 30?", {0, 1}), ("下下个星期有什么计划", {2}), ("六月二日有什么安排", {2}),
        ("Am I free on July 9?", {7}), ("2026年7月9日我在哪？", {7}), ("What is on August 14?", {8}),
        ("8/14有什么事？", {8}), ("What do I have on Wednesday?", {0}),
        ("What happend last month?", {3}), ("Anything scheduld for next month?", {2, 4}),
    ],
)  # fmt: skip
async def test_what_names_one_of_the_days_asked_for_is_found_whenever_it_was_noted(question, first, embedder):
    noted = [_NOW, *(_NOW - timedelta(days=days) for days in (1, 9, 40, 100))]
    records = [NewRecord(text=text, at=noted[-1]) for text in _DIARY]
    records += [NewRecord(text=text, at=at) for text, at in zip(_FACTS, noted, strict=False)]
    async with InProcessRecordStore(embedder=embedder) as store:
        await store.add_many(records)
        found = [each.text for each in await store.search(question, limit=len(first), now=_NOW)]
        assert set(found) == {_DIARY[each] for each in first}


_HABITS = [
    "Choir practice is on Mondays.", "每周二、四上陶艺课。", "Swim every Wed and Sat.", "每周一三五跑步。",
    "Market day: Sat/Sun.",
]  # fmt: skip


@pytest.mark.parametrize("embedder", ["default", None])
@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("What do I have on Monday?", {0, 3}), ("周四有什么课？", {1}), ("今天有什么安排？", {2, 3}),
        ("What do I have tomorrow?", {1}), ("What is on next Tuesday?", {1}), ("五月二十三日有什么事？", {2, 4}),
        ("What do I have on the 26th?", {1}), ("26号有什么安排？", {1}), ("What's on at the weekend?", {2, 4}),
        ("周末有什么安排？", {2, 4}),
    ],
)  # fmt: skip
async def test_what_is_on_every_such_day_of_the_week_is_of_a_day_to_come(question, found, embedder):
    async with InProcessRecordStore(embedder=embedder) as store:
        others = [text for text in _FACTS if not any(term.startswith("@") for term in terms(text))]
        await store.add_many(NewRecord(text=text, at=_NOW - timedelta(days=100)) for text in (*others, *_HABITS))
        texts = {each.text for each in await store.search(question, limit=len(found), now=_NOW)}
        assert texts == {_HABITS[each] for each in found}


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("every tuesday", {1}), ("on tuesdays", {1}), ("gym tue/thu", {1, 3}), ("tues. and thurs.", {1, 3}),
        ("mon, wed & fri", {0, 2, 4}), ("each sat", {5}), ("every weekend", {5, 6}), ("每周一三五", {0, 2, 4}),
        ("周二、四和星期天", {1, 3, 6}), ("每个星期日", {6}), ("禮拜三", {2}), ("每周末", {5, 6}), ("周二三点", {1}),
        ("sat in the sun", set()), ("they wed in may", set()), ("一周一次", set()), ("两个星期一次", set()),
        ("每周二一起吃饭", {1}), ("周一天气", {0}), ("monet", set()), ("周三5日", {2}),
        ("thur or fri", {3, 4}), ("thus it was", set()),
    ],
)  # fmt: skip
def test_a_text_names_these_days_of_the_week(text, days):
    assert {term for term in terms(text) if term.startswith("@")} == set(map(weekday_term, days))


@pytest.mark.parametrize("text", ["board call wed 2 dec 15:00", "2 dec 15.30", "2nd dec 8 pm", "2 dec 12 people"])
def test_a_time_of_day_behind_a_day_is_no_other_day(text):
    assert {each.term for each in dates(text)} == {"--12-02"}


def test_a_month_behind_a_time_has_its_day_behind_it():
    assert {each.term for each in dates("at 12:30 dec 5; 2026 dec 7")} == {"--12-05", "--12-07"}


@pytest.mark.parametrize("year", [1, 9999])
@pytest.mark.parametrize(
    "question",
    [
        "What is on the 31st?",
        "on Monday?",
        "周末有什么安排？",
        "What is on in the next two weeks?",
        "未来两周有什么安排？",
        "What was last week?",
        "yesterday?",
        "五月五日",
    ],
)
async def test_a_question_may_be_asked_on_the_first_and_the_last_day_of_the_calendar(question, year):
    day = datetime(year, *((1, 1) if year == 1 else (12, 31)), tzinfo=UTC)
    async with InProcessRecordStore(embedder=None) as store:
        await store.add("Dentist on 2026-05-27.", at=_NOW)
        assert await store.search(question, limit=1, now=day) == []


@pytest.mark.parametrize("question", ["What do I have in May?", "五月有什么安排？", "What is planned for next week?"])
async def test_the_only_record_is_found_by_the_day_that_it_names(question):
    async with InProcessRecordStore() as store:
        await store.add("Dentist on 2026-05-27.", at=_NOW - timedelta(days=90))
        assert len(await store.search(question, limit=5, now=_NOW)) == 1


async def test_the_day_of_a_remark_does_not_bring_up_what_names_it():
    async with InProcessRecordStore() as store:
        await store.add_many(NewRecord(text=text, at=_NOW - timedelta(days=90)) for text in (*_DIARY, *_FACTS))
        await store.add("The plumber came on 2026-05-19.", at=_NOW - timedelta(days=90))
        message = "Did you sleep well last night? Who plays the cello?"
        assert "cello" in (await store.search(message, limit=1, now=_NOW))[0].text


async def test_days_are_those_of_the_process_unless_the_question_says_where_it_is_asked(monkeypatch):
    zone = timezone(timedelta(hours=8))
    at = datetime.now(zone).replace(hour=3, minute=0)  # the day before in UTC
    monkeypatch.setenv("TZ", "UTC-8")
    time.tzset()
    try:
        async with InProcessRecordStore() as store:
            yesterday = await store.add("七点在公园打了太极", at=at - timedelta(days=1))
            today = await store.add("七点在公园打了羽毛球", at=at)
            for question, found in (("今天在公园做了什么？", today), ("昨天在公园做了什么？", yesterday)):
                assert (await store.search(question, limit=1))[0].id == found.id
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("embedder", ["default", None])
@pytest.mark.parametrize("question", ["后天要去哪里", "后天该带什么", "后天要交什么？"])
async def test_what_one_ought_to_do_on_a_day_is_no_matter_of_its_own(question, embedder):
    async with InProcessRecordStore(embedder=embedder) as store:
        texts = (
            "客户恒远科技要求报价单在12月2日之前发过去",
            "青霉素过敏",
            "家里路由器的密码改了",
            "绿茶放在厨房上层的柜子里",
        )
        await store.add_many(NewRecord(text=text, at=_NOW - timedelta(days=9)) for text in texts)
        now = datetime(2026, 11, 30, 9, tzinfo=UTC)
        assert (await store.search(question, limit=1, now=now))[0].text == texts[0]
