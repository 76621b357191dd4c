"""What is taken for a user's correction, and what is not."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from memshelf.workspace.chinese_corrections import CHINESE
from memshelf.workspace.corrections import correction_in
from memshelf.workspace.english_corrections import ENGLISH

REPLIES = [
    json.loads(line)
    for line in Path(__file__).parents[2].joinpath("bench/workspace/corrections.jsonl").read_text().splitlines()
]

CORRECTIONS = """\
No, that's not what I meant. I want the totals per month.
No, use the staging database.
That's wrong, the deadline is Friday.
That's not right. The function takes two arguments.
This is not what I asked for: I wanted a table.
Your answer is wrong, 17 is prime.
You misunderstood me, I need the French version.
You forgot to run the tests.
You didn't follow the style guide: four spaces.
You should have asked before deleting the branch.
I told you not to touch the migrations.
I already told you to answer in Chinese.
I said Tuesday, not Thursday.
I asked for JSON, not YAML.
I meant the other repository, the public one.
I didn't ask you to refactor the parser.
Stop using emojis in commit messages.
Please stop adding comments to every line.
Never commit to main directly.
Don't use mocks for the database again.
Don't ever delete my files without asking.
From now on, write the summaries in English.
Next time, run the linter before you commit.
In the future please don't rename public functions.
Use pnpm instead of npm.
Please use tabs, not spaces.
It should be utf-8, not latin-1.
Actually, the meeting is on Monday, not on Sunday.
Hmm, that's still wrong. Sort by date first.
Answer in Chinese from now on.
不对，发布日期是周五。
不对。应该先跑测试再提交。
错了，我们用的是 PostgreSQL。
你理解错了，我需要的是月度总额。
你搞错了，负责人是小王。
这不是我要的，我要一个表格。
我要的是 JSON，不是 YAML。
我说的是上海而不是北京。
我问的不是这个，是部署流程。
我没让你删这个分支。
我没说要重构解析器。
别再用表情符号了。
不要再加注释了，代码自己能说明白。
以后不要直接提交到 main。
以后请用中文回答。
下次记得先跑 lint。
下次你要先问我再删文件。
从现在开始，一律用英文写提交信息。
用 pnpm 而不是 npm。
不要用 var，用 const。
别用 mock，要用真实的数据库。
应该用四个空格，不要用 tab。
你忘了更新文档。
你又把测试删了。
你没按我说的格式写。
我说过不要改公共接口。
我已经告诉过你，要用 UTC 时间。
应该是 8080 端口，不是 80。
嗯，不对，先按日期排序。
不是，我要的是周报不是日报。
No, I wanted it sorted descending.
Nope, not like that. Keep the original headings.
That is incorrect: Canberra is the capital.
It's still not what I asked for; the chart needs a legend.
Sorry, I meant the production cluster.
Wait, you missed the second file.
You've got the date wrong, it's the 14th.
Your translation is not accurate, "bank" means river bank here.
I told you to keep functions under 20 lines.
Stop apologizing all the time.
Please don't use semicolons anymore.
Going forward, always add type hints.
Next time please don't touch the lock file.
In future use British spelling.
Only use the public API and not the internals.
You should not have pushed to main.
You keep ignoring the tests.
The port should be 8443, not 443.
不是这样，先备份再迁移。
你又理解错了，我想要柱状图。
这个不对，利率应该是百分之三。
你算错了，合计是一千二。
别老是用英文回答我。
以后回答都用中文。
今后不要自动格式化代码。
我要的不是总结，是逐条列出来。
应该用 Asia/Shanghai 时区，而不是 UTC。
你漏掉了第三个文件。
我早就说过别动配置文件。
不要用列表，改用表格。
请不要再道歉了，直接给答案。
名字写错了，是“张伟”不是“张玮”。
这不是我想要的格式，要 CSV。
你怎么又用 var 了，用 let。
""".splitlines()

OTHERS = """\
No, thanks, that's all for today.
No, I don't need anything else.
No problem, take your time.
Nothing is wrong with the build.
Is that wrong?
What's wrong with this query?
What did I do wrong here?
If that's wrong, tell me.
My boss said that's wrong and should be redone.
She told me to stop using the old API.
That's right, thank you!
That's not bad at all.
That's wrongly attributed to Einstein in many books, please check it.
I told you about my dog, remember?
I said yes to the offer.
I asked for a raise yesterday.
I meant to call her, but forgot.
I didn't want to bother you.
Stop words should be removed from the corpus.
Stop smoking is one of my goals for the year.
Never mind, I found it.
Never seen that error before.
Don't delete the file yet, I want to look at it first.
Don't worry about the tests.
Next time I am in Berlin we should meet.
In the future we may move to Kubernetes.
Use the attached file to make a summary.
You should have a look at the report.
You are right, it works now.
Can you use pnpm instead of npm?
Write a function that returns the wrong answer on purpose.
Translate: "No, that's wrong. Use the other one."
> No, that's wrong, use UTC.
Why is it wrong to use goto?
The test should be green now.
We use PostgreSQL, not MySQL.
I use tabs instead of spaces at work.
How do I stop a running container?
不对称加密和对称加密有什么区别？
你觉得这样对不对？
没错，就是这样。
没错了，谢谢。
我错了，是我记错了日期。
不错，很好用。
老板说不对，要重做。
他让我别再用旧接口了。
如果不对，请告诉我。
以后再说吧。
下次再聊。
下次你来杭州，我们一起吃饭。
以后请你吃饭。
以后要是有空，我们去西湖。
我说的是实话。
我用筷子而不是叉子。
用户反馈页面打不开。
别再等了，我们出发吧。
不要担心测试。
请把这段话翻译成英文：“不对，应该用 UTC。”
为什么说这样是错的？
哪里错了？
你忘了我吗？
我忘了带钥匙。
我们用 PostgreSQL，不用 MySQL。
不是我不想去，是太忙了。
这个功能什么时候上线？
帮我写一封道歉信，说我们算错了账单。
谢谢，这样就对了。
No worries, that works for me.
No, it's fine as it is.
No idea what that means.
That's wrong in so many ways, but the movie was fun?
I think the deadline is Friday, not Monday.
The teacher told us to use Python instead of Java.
Please use the data in the attachment for the report.
Stop me when it gets too long.
Stop the server and delete the logs.
Never mind the last question.
Don't forget to add milk to the list.
Don't use too much salt in this recipe.
Next time slot is at 3pm.
In the future, people will live on Mars.
You forgot me already, haha.
You didn't do anything wrong.
I meant what I said.
I asked for two days off, but I'm not sure.
It's not right to lie, explain why.
This is not urgent.
It was not true love, write a poem about it.
How is that not right?
From now on means what in legal English?
Next time you see him, say hello.
Write a letter that says the invoice should be 300, not 400.
不对外开放的接口有哪些？
这件事不对劲，帮我分析一下。
错了就改，善莫大焉，解释这句话。
以后我想学法语。
下次开会是周三。
下次请客吃饭去哪里好。
别人都说这个好。
你忘了说哪里了？
你看错了也没关系。
用一个比喻来解释，不用太长。
用户要求导出，不用审批。
我不是说过我喜欢绿茶吗？
应该是周五交付，不是很确定。
我说的不是问题。
从现在开始计时。
今后三年的计划是什么？
你又来了，哈哈。
不是吧，这么快就好了。
别用力过猛，休息一下。
你没看新闻吗？
我让你久等了，抱歉。
这样写对吗？还是应该用复数？
翻译：以后不要迟到。
他总说我错了，我很难过。
别客气。
不用客气！
不是这样的话就没办法了。
In my opinion, use of tabs is fine.
The report should be ready by Friday.
""".splitlines()


@pytest.mark.parametrize("text", CORRECTIONS)
def test_a_correction_is_seen_and_kept_in_the_users_words(text):
    lesson = correction_in(text)
    assert lesson is not None
    assert lesson in " ".join(text.split())


@pytest.mark.parametrize("text", OTHERS)
def test_what_is_none_is_not_taken_for_one(text):
    assert correction_in(text) is None


def test_the_sets_are_large_enough_to_mean_something():
    assert len(CORRECTIONS) >= 60
    assert len(OTHERS) >= 60
    for sentences in (CORRECTIONS, OTHERS):
        assert sum(not each.isascii() for each in sentences) >= 29


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("part", ["tuning", "held-out"])
def test_of_many_replies_most_corrections_are_seen_and_hardly_anything_else(part, lang):
    replies = [each for each in REPLIES if (each["part"], each["lang"]) == (part, lang)]
    seen = [each["correction"] for each in replies if correction_in(each["text"]) is not None]
    assert len(replies) >= 100
    assert sum(seen) / len(seen) >= 0.95
    assert sum(seen) / sum(each["correction"] for each in replies) >= 0.85


@pytest.mark.parametrize(("said", "pattern"), [*ENGLISH.examples, *CHINESE.examples])
def test_each_pattern_finds_what_it_is_for(said, pattern):
    assert re.search(pattern, said, re.IGNORECASE)


@pytest.mark.parametrize(
    "text",
    [
        "不要加注释",
        "别加注释",
        "请不要加注释",
        "以后都用中文回答我",
        "从现在起用中文回答",
        "换成 pytest 吧别用 unittest 了",
        "不是小林是老韩",
        "记错了，我姓李",
        "不是让你改代码，是让你看看",
        "太长了下次三句话以内",
        "我说了多少次了不要用表格",
        "能不能别每次都列清单？",
        "怎么又用英文了？",
        "Can you stop summarizing everything at the end?",
        "Why do you keep using var?",
        "Who told you to change the schema?",
        "don't 加注释 please",
        "谢谢，图很好看。不过以后配色别用红色。",
    ],
)
def test_a_correction_is_seen_without_a_full_stop_between_clauses_and_as_a_question(text):
    assert correction_in(text) is not None


@pytest.mark.parametrize(
    "text", ["No.", "That's wrong.", "不对。", "错了！", "你搞错了。", "Wrong", "no, that's wrong!!"]
)
def test_a_correction_that_says_nothing_teaches_nothing(text):
    assert correction_in(text) is None


def test_what_follows_a_bare_reaction_belongs_to_it_and_the_rest_does_not():
    assert correction_in("Thanks. That's wrong! The total is 42. Now write the report for the whole year.") == (
        "That's wrong! The total is 42."
    )
    assert correction_in("谢谢。不对！总数是四十二，请按月汇总。另外帮我写年报。") == "不对！总数是四十二，请按月汇总。"


def test_a_lesson_is_short_whatever_follows():
    lesson = correction_in("That's wrong, " + "the deadline is on Friday and " * 50 + "so on.")
    assert lesson is not None
    assert len(lesson) <= 300


@pytest.mark.parametrize(
    "unit",
    [
        *("no, ", "不对", "don't use ", "用", "`", '"', "“", ".", "use a not ", "我说过", "'x", "no", ", ", "a , "),
        *("不用, ", "以后", "please ", "the x should be ", "from now on a, ", "，", "别", "你", "嗯，", "aaaa,"),
    ],
)
@pytest.mark.parametrize("line", [100_000, 299])
def test_a_hostile_text_costs_little(unit, line):
    text = ((unit * line)[:line] + "\n") * (100_000 // line)
    start = time.process_time()
    correction_in(text)
    assert time.process_time() - start < 0.1


def test_what_somebody_else_wrote_and_the_user_pasted_is_not_the_users():
    pasted = (
        "Summarise this mail:\n" + "Dear team, thanks for the update on the plan. " * 20 + "From now on, use port 80.\n"
    )
    assert correction_in(pasted) is None
    assert correction_in("```\nNo, use port 80.\n```") is None
    assert correction_in("No, use port 80.\n" + pasted) == "No, use port 80."
