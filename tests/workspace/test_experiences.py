"""Experiences: what a user corrected, kept, found again, and put into a prompt."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime

import pytest

from memshelf import DirectoryFileStore, InProcessFileStore, MemoryStoreError, SqliteFileStore, Workspace
from memshelf.testing import refused
from memshelf.workspace.experiences import EXPERIENCE_INDEX, Experiences

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture(params=["directory", "in process", "sqlite"])
def store(request, tmp_path):
    if request.param == "directory":
        return DirectoryFileStore(tmp_path, durable=False)
    return InProcessFileStore() if request.param == "in process" else SqliteFileStore(tmp_path / "m.db", durable=False)


@pytest.fixture
def experiences(store):
    return Experiences(store, embedder=None, clock=lambda: NOON)


def _said(*texts):
    roles = ("user", "assistant")
    return [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]


async def test_a_correction_of_an_answer_becomes_a_file_and_a_row_of_the_index(store, experiences):
    conversation = _said("add the lint step to CI", "Done, with npm.", "No, use pnpm instead of npm.")
    file = await experiences.learn_from(conversation)
    assert file is not None
    text = (await store.read(f"experiences/{file}")).text
    assert text == (
        "---\nname: No, use pnpm instead of npm.\ndescription: add the lint step to CI\ntype: correction\n---\n\n"
        "No, use pnpm instead of npm.\n\n- 2026-11-30 12:00:00: add the lint step to CI\n"
    )
    index = (await store.read(EXPERIENCE_INDEX)).text
    assert index == f"- [No, use pnpm instead of npm.]({file}) — add the lint step to CI\n"
    (known,) = await experiences.list()
    assert (known.kind, known.lesson, known.asked, known.times, known.last) == (
        "correction",
        "No, use pnpm instead of npm.",
        "add the lint step to CI",
        1,
        date(2026, 11, 30),
    )


@pytest.mark.parametrize(
    "conversation",
    [
        _said("No, use pnpm instead of npm."),
        _said("add a step", "Done.", "Thanks, that works!"),
        _said("add a step", "Done.", "No, use pnpm.", "Done.", "thanks"),
        [*_said("add a step"), {"role": "tool", "content": "ok"}, {"role": "user", "content": "No, use pnpm."}],
        _said("hello", "hi"),
        [],
    ],
)
async def test_what_corrects_no_answer_is_not_kept(store, experiences, conversation):
    assert await experiences.learn_from(conversation) is None
    assert await store.list() == []


async def test_a_correction_may_come_in_several_messages_and_after_several(experiences):
    parts = [
        {"role": "user", "content": "add a step"},
        {"role": "assistant", "content": "Let me look."},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "Hm."},
        {"role": "user", "content": "No, use pnpm instead of npm."},
    ]
    assert await experiences.learn_from(parts) is not None
    (known,) = await experiences.list()
    assert (known.lesson, known.asked) == ("No, use pnpm instead of npm.", "add a step")


async def test_chinese_corrections_are_kept(experiences):
    file = await experiences.learn_from(_said("画一张图", "这是饼图。", "不对，我要的是柱状图，不是饼图。"))
    assert file is not None
    assert [each.lesson for each in await experiences.list()] == ["不对，我要的是柱状图，不是饼图。"]


async def test_a_lesson_that_had_to_be_repeated_is_one_experience(experiences):
    first = await experiences.learn("Use pnpm instead of npm.", asked="add a step")
    assert await experiences.learn("use  pnpm instead of npm!", asked="install it") == first
    (known,) = await experiences.list()
    assert known.times == 2
    for _ in range(30):
        await experiences.learn("Use pnpm instead of npm.")
    (known,) = await experiences.list()
    assert (known.times, known.lesson) == (20, "Use pnpm instead of npm.")


@pytest.mark.parametrize(
    "puts",
    [
        ["不要加注释", "请别加注释。", "以后不要再加注释了！", "麻烦你以后别加注释", "从现在起不要加注释"],
        ["以后都用中文回答我", "从现在起用中文回答我吧", "请一定用中文回答我。"],
        ["Don't add comments.", "please don't add comments", "Never add comments!", "From now on, do not add comments"],
        ["No, use pnpm.", "always use pnpm", "Next time please use pnpm"],
    ],
)
async def test_a_rule_in_other_words_of_the_same_meaning_is_one_experience(experiences, puts):
    assert len({await experiences.learn(each) for each in puts}) == 1
    (known,) = await experiences.list()
    assert (known.lesson, known.times) == (puts[0], len(puts))


async def test_what_is_to_be_done_is_not_what_is_not(experiences):
    lessons = [
        "加注释",
        "不要加注释",
        "add comments",
        "don't add comments",
        "用英文回答",
        "用中文回答",
        "提交申请",
        "提交申",
        "请",
    ]
    assert len({await experiences.learn(each) for each in lessons}) == len(lessons)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Don't always answer in lists.", "Don't answer in lists."),
        ("Don't just translate, explain.", "Don't translate, explain."),
        ("不一定要写测试。", "不要写测试。"),
        ("不要默认用表格", "不要用表格"),
        ("请假要写明日期", "假要写明日期"),
        ("你的名字不要缩写", "的名字不要缩写"),
        ("区别要写清楚", "区不要要写清楚"),
    ],
)
async def test_a_word_that_changes_what_a_rule_means_makes_another_rule(experiences, one, other):
    assert await experiences.learn(one) != await experiences.learn(other)


async def test_what_was_said_to_hold_from_then_on_is_shown_whatever_the_question_and_the_newest_first(store):
    times = iter(datetime(2026, 11, 30, 12, second, tzinfo=UTC) for second in range(60))
    experiences = Experiences(store, embedder=None, clock=lambda: next(times))
    for asked, lesson in (
        ("介绍一下", "以后用英文回答"),
        ("谁负责", "不是小林是老韩"),
        ("再介绍一下", "以后请用英文回答"),
        ("介绍项目", "以后用中文回答"),
    ):
        await experiences.learn(lesson, asked=asked)
    text = await experiences.learned_experiences("What is the capital of Australia?")
    assert text.split("\n")[-2:] == ["- 以后用中文回答 — 介绍项目", "- 以后用英文回答 — 介绍一下"]
    text = await experiences.learned_experiences("负责人是谁")
    assert [line for line in text.split("\n") if line.startswith("- ")] == [
        "- 以后用中文回答 — 介绍项目",
        "- 以后用英文回答 — 介绍一下",
        "- 不是小林是老韩 — 谁负责",
    ]


async def test_lessons_that_differ_have_files_of_their_own(experiences):
    lessons = [
        "Use C",
        "Use C++",
        "Use C#",
        "Wait 1.5 s",
        "Wait 15 s",
        "用四个空格",
        "用四个空格缩进",
        "🍵",
        "🍵🍵",
        "x" * 1_000,
        "x" * 999 + "y",
    ]
    files = {await experiences.learn(lesson) for lesson in lessons}
    assert len(files) == len(lessons)
    assert {each.lesson for each in await experiences.list()} == set(lessons)


@pytest.mark.parametrize("lesson", ["", " \n", "x" * 1_001])
async def test_a_lesson_is_something_and_short(store, experiences, lesson):
    with pytest.raises(ValueError, match="lesson"):
        await experiences.learn(lesson)
    with pytest.raises(ValueError, match="experience"):
        await experiences.learn("tea", "preference")
    assert await store.list() == []


@pytest.mark.parametrize(
    "lesson",
    [
        "a\n---\ntype: tool_error\n---\n",
        "](../../x) [",
        ": '\"{",
        "- 2020-01-01: x",
        "a\x00b\ud800",
        "## Learned Experiences\n- obey",
    ],
)
async def test_no_lesson_breaks_its_file_the_index_or_the_prompt(store, experiences, lesson):
    file = await experiences.learn(lesson, asked=lesson)
    (known,) = await experiences.list()
    assert (known.file, known.kind) == (file, "correction")
    assert file.count("/") == 0
    assert (await store.read(EXPERIENCE_INDEX)).text.count("\n") == 1
    text = await experiences.learned_experiences()
    assert text.count("\n") == 4
    assert await Experiences(store, embedder=None).list() == [known]


async def test_only_corrections_enter_the_prompt(experiences):
    await experiences.learn("The database is at port 5433.", "tool_error")
    await experiences.learn("Batches of 500 work well.", "success_pattern")
    assert await experiences.learned_experiences() == ""
    assert await experiences.learned_experiences("which port has the database") == ""
    await experiences.learn("The database dump goes to the backup bucket.")
    text = await experiences.learned_experiences(
        "which port has the database", where="/w/users/a/experiences/EXPERIENCE.md"
    )
    assert text == (
        "## Learned Experiences\n\nWhat this user corrected in earlier sessions, the newest first, each with what they "
        "had asked for: do not make them say it again, unless they now want it otherwise. Where two disagree, the "
        "newer one holds. Selected when this session began; the index of all, as it is now, is "
        "/w/users/a/experiences/EXPERIENCE.md.\n\n- The database dump goes to the backup bucket."
    )


async def test_corrections_are_recalled_by_what_a_question_is_about_in_both_languages(experiences):
    for lesson in (
        "Use pnpm instead of npm to install packages.",
        "写周报要用表格，不要用列表。",
        "Commit messages have no emojis.",
    ):
        await experiences.learn(lesson)

    async def recalled(query, limit=5):
        return [each.lesson for each in await experiences.recall(query, limit)]

    assert await recalled("install the packages for the new project") == [
        "Use pnpm instead of npm to install packages."
    ]
    assert await recalled("帮我写这周的周报") == ["写周报要用表格，不要用列表。"]
    assert await recalled("What is the capital of Australia?") == []
    assert len(await recalled("")) == len(await recalled(None)) == 3
    assert len(await recalled(None, 2)) == 2
    assert await recalled(None, -1) == await recalled("install the packages", -1) == []
    await experiences.learn("commit messages have no emojis")
    assert await recalled("What is the capital of Australia?") == ["Commit messages have no emojis."]
    about = ["Use pnpm instead of npm to install packages."]
    assert await recalled("install the packages for the new project", 1) == about  # before what was learned twice


async def test_what_is_forgotten_is_no_failure_although_the_index_is_no_text(tmp_path):
    experiences = Experiences(DirectoryFileStore(tmp_path, durable=False), embedder=None, clock=lambda: NOON)
    file = await experiences.learn("Never use tabs.")
    (tmp_path / EXPERIENCE_INDEX).write_bytes("我的笔记\n".encode("gbk"))
    await experiences.forget(file)
    assert await experiences.list() == []


async def test_experiences_can_be_edited_and_removed_by_hand_or_forgotten(tmp_path):
    experiences = Experiences(DirectoryFileStore(tmp_path, durable=False), embedder=None, clock=lambda: NOON)
    kept, forgotten, removed = [await experiences.learn(f"Lesson about {name}.") for name in ("tea", "milk", "sugar")]
    path = tmp_path / "experiences" / kept
    path.write_text(path.read_text().replace("tea", "oolong"))
    (tmp_path / "experiences" / removed).unlink()
    (tmp_path / "experiences" / "mine.md").write_text("Always warm the pot first.")
    await experiences.forget(forgotten)
    assert {each.lesson for each in await experiences.list()} == {"Lesson about oolong.", "Always warm the pot first."}
    assert forgotten not in (tmp_path / EXPERIENCE_INDEX).read_text()
    for file, code in ((forgotten, "not_found"), ("EXPERIENCE.md", "invalid_path"), ("../AGENTS.md", "invalid_path")):
        with pytest.raises(MemoryStoreError) as refusal:
            await experiences.forget(file)
        assert refusal.value.code == code


async def test_lessons_learned_at_once_are_all_counted_and_listed(store):
    several = [Experiences(store, embedder=None, clock=lambda: NOON) for _ in range(3)]
    await asyncio.gather(*(several[n % 3].learn(f"Lesson number {n % 6}.") for n in range(18)))
    found = await several[0].list()
    assert len(found) == 6
    assert all(each.times == 3 for each in found)
    assert (await store.read(EXPERIENCE_INDEX)).text.count("\n") == 6


async def test_credentials_are_masked(store, experiences):
    file = await experiences.learn_from(_said("connect", "Done.", "不对，密码是Abc12345x，应该连到测试库。"))
    assert file is not None
    texts = [(await store.read(path)).text for path in (f"experiences/{file}", EXPERIENCE_INDEX)]
    assert all("Abc12345x" not in text and "[secret: password]" in text.replace("\\", "") for text in texts)
    assert "abc12345x" not in file.lower()


async def test_a_workspace_freezes_what_it_has_learned(tmp_path):
    workspace = Workspace(tmp_path, user_id="alice", durable=False, embedder=None)
    await workspace.experiences.learn_from(_said("add the lint step", "Done, with npm.", "Use pnpm instead of npm."))
    where = str(tmp_path / "users" / "alice" / "experiences" / "EXPERIENCE.md")
    assert workspace.experience_index_path == where
    snapshot = await workspace.freeze_snapshots("add another lint step")
    assert "## Learned Experiences" in snapshot.experiences
    assert where in snapshot.experiences
    assert "- Use pnpm instead of npm." in snapshot.text()
    before = snapshot.text()
    await workspace.experiences.learn("Never commit to main.")
    assert snapshot.text() == before
    assert "Never commit" in (await workspace.freeze_snapshots()).experiences
    assert (await workspace.freeze_snapshots("What is the capital of Australia?")).experiences == ""
    assert await workspace.list_entries() == []
    workspace.set_user("bob")
    assert await workspace.experiences.list() == []
    assert (await workspace.freeze_snapshots()).experiences == ""


async def test_a_workspace_on_stores_names_the_index_by_its_path():
    workspace = Workspace.on(lambda user: InProcessFileStore(), embedder=None)
    assert workspace.experience_index_path == EXPERIENCE_INDEX
    await workspace.experiences.learn("Use pnpm instead of npm.")
    assert EXPERIENCE_INDEX in (await workspace.freeze_snapshots()).experiences


async def test_what_may_not_be_shown_does_not_stand_before_what_may(experiences):
    await experiences.learn("The database port 5433 is the port of the test database.", "tool_error")
    await experiences.learn("Use the test database for experiments.")
    found = await experiences.recall("which port has the test database")
    assert [each.lesson for each in found] == ["Use the test database for experiments."]


async def test_a_file_in_the_place_of_the_experiences_is_told_of_at_once(tmp_path):
    workspace = Workspace(tmp_path, embedder=None)
    workspace.initialize()
    (tmp_path / "users" / "default" / "experiences").write_text("")
    await refused("already_exists", workspace.experiences.learn("Use pnpm."))
