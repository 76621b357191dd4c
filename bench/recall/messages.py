"""Questions as people send them: somewhere among other sentences, which are about something else."""

from __future__ import annotations

import random
from dataclasses import replace

from bench.recall.datasets import Dataset

__all__ = ["in_messages"]

_ENGLISH = """
Good morning, I hope the night was quiet.
I came straight from the gym and could eat a horse.
Of course the train was late today, too.
The slides went down well, so thank you for those.
Well, there is a lot going on here.
The sun is out at last, by the way.
There is something that I wanted to ask.
This got rather long, sorry.
Answer when it suits you.
It can wait, I'm about to have lunch.
The fan of my laptop rattles.
We saw a film about penguins last night, a lovely one.
""".strip().splitlines()
_CHINESE = """
早，希望你昨晚睡得好。
刚健完身，现在能吃下一头牛。
地铁果然又晚点了。
幻灯片大家都说好，多亏有你。
反正最近事情一大堆。
对了，今天总算出太阳了。
有件事想问问你。
抱歉写得有点长。
方便的时候回我就好。
不着急，我正要去吃午饭。
电脑的风扇一直在响。
昨晚我们看了一部讲企鹅的电影，挺感人的。
""".strip().splitlines()


def in_messages(dataset: Dataset, sentences: int) -> Dataset:
    """The same questions, each in a message with so many other sentences of its language."""
    chosen = random.Random(sentences)

    def message(question: str) -> str:
        chinese = any("\u4e00" <= each <= "\u9fff" for each in question)
        parts = chosen.sample(_CHINESE if chinese else _ENGLISH, sentences)
        parts.insert(chosen.randrange(sentences + 1), question)
        return ("" if chinese else " ").join(parts)

    scopes = {
        name: (records, [replace(each, text=message(each.text)) for each in queries if each.kind != "unrelated"])
        for name, (records, queries) in dataset.scopes.items()
    }
    return Dataset(f"{dataset.name}, in messages of {sentences + 1} sentences", scopes)
