"""Whether a user corrects an assistant, in English or Chinese, and what they say. Pure functions.

Few false alarms matter more than all corrections: what is taken for one is shown to a model in later sessions.
"""

from __future__ import annotations

import re

__all__ = ["correction_in"]

_LOOKED_AT, _LESSON_CHARS, _LESSON_SENTENCES = 2_000, 300, 3
_LONG = 600
"""A text of more characters was probably pasted: a correction stands in its first three sentences, or is none."""

_SHORTEST = 8
"""A lesson has this many letters, of which a Chinese character counts as three: "that's wrong" teaches nothing."""

_NOT_THE_USERS = re.compile(r"```.*?(?:```|\Z)|^>.*$", re.DOTALL | re.MULTILINE)
_QUOTED = re.compile(
    r"`[^`\n]{1,200}`|\"[^\"\n]{1,200}\"|“[^”\n]{1,200}”|「[^」\n]{1,200}」|(?<!\w)'[^'\n]{1,200}'(?!\w)"
)
_SENTENCE = re.compile(r"[^.!?。！？\n]+(?:\.(?=\w)[^.!?。！？\n]*)*[.!?。！？]*")
_QUESTION = re.compile(
    r"[?？][\"'”」)]*\s*$|[吗呢么]\s*[。！]?\s*$"
    r"|^(?:why|what|how|is|are|was|do|does|did|can|could|would)\b(?! not\b)",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(r"\b(?:if|whether|suppose|for example)\b|如果|要是|假如|假设|万一|比如|例如", re.IGNORECASE)
_REPORTED = re.compile(
    r"\b(?:he|she|they|everyone|someone|somebody|people|my \w+|the \w+)(?: \w+)? "
    r"(?:said|says|told|tells|thinks?|claims?|asked)\b"
    r"|(?:[他她]们?|有人|别人|老板|领导|同事|老师|客户|医生|[妈爸]{1,2}|朋友)"
    r"[^，。,]{0,6}(?:说|告诉|[让叫](?!你)|觉得|要求|问|批评)",
    re.IGNORECASE,
)

_DONE = r"(?:used|been|done|put|kept|run|written|gone|taken|made|asked|\w+ed)"
_DO = (
    r"(?:use|commit|push|delete|write|add|call|mock|send|ask|answer|reply|assume|translate|change|edit|touch|run|put"
    r"|remove|rewrite|skip|make|do|mention|include|create|format|guess|install|respond|check|keep|return|start|end)"
)
_WHEN = r"(?:from now on|from here on|going forward|next time|in (?:the )?future)"
_PLEASE = r"(?:please |always |never |you (?:should|must|need to) |don't |do not )"
_ENGLISH = re.compile(
    r"^(?:(?:hey|hmm|wait|sorry|ok|okay|well|but|please|and),? )*(?:"
    r"(?:no|nope)[,.!:—–-]+ ?(?:(?:that|this|it)(?:'s| is) (?:not|wrong|incorrect)"
    r"|i (?:meant|said|asked|wanted)\b|not (?:that|this|like)\b|(?:please )?(?:use|do not|don't)\b"
    r"|you (?:should|need to|must|forgot|missed|misunderstood|have to)\b|it should\b)"
    r"|(?:that|this|it)(?:'s| is| was) (?:still |just |all |completely )?"
    r"(?:(?:wrong|incorrect|not (?:right|correct|true))(?= ?[,;:—–-]|$)|not what i (?:asked|meant|said|wanted)\b)"
    r"|your (?:last |previous )?(?:answer|result|code|output|summary|translation|calculation|query) "
    r"(?:is|was) (?:still )?(?:wrong|incorrect|not)\b"
    r"|you(?:'ve| have)? (?:got|have) (?:it|that|this|\w+ \w+) wrong\b"
    r"|you(?:'ve| have)? (?:completely |again )?(?:misunderstood|misread|ignored)\b"
    r"|i (?:already |just )?told you (?:not )?to\b"
    r"|i (?:already )?(?:asked (?:you )?(?:for|to)|said) .+(?:, not | instead of | and not )"
    r"|i meant (?!to\b|well\b|it\b|what\b)"
    r"|i (?:didn't|did not) (?:ask (?:you )?(?:for|to)|mean (?:that|the|this|for))\b"
    r"|(?:stop|quit) (?!by\b)\w+ing\b(?! (?:is|was|has|would)\b)"
    rf"|never {_DO}\b|(?:don't|do not) ever {_DO}\b"
    rf"|(?:don't|do not) {_DO}\b.*\b(?:again|any ?more|ever|unless i)\b"
    rf"|{_WHEN},? {_PLEASE}*{_DO}\b|{_WHEN},? {_PLEASE}|(?:always |only )?{_DO}\b.+\b{_WHEN}$"
    r"|(?:always |only )?use .+(?: instead of | rather than |,? (?:and )?not )"
    rf"|you (?:again )?(?:forgot to|missed (?:a|the|one|my)|skipped the|keep \w+ing the"
    rf"|should(?:n't| not)? have {_DONE})\b"
    r"|you (?:didn't|did not) (?:follow|read|use|answer|run|include|check|add|fix)\b"
    r"|(?:it|that|the \w+) should (?:be|have been|say|use|return) .+(?:\bnot\b|instead of|rather than)"
    r"|actually,? (?:it|that|this|the \w+)(?:'s| is| was| should be) .+,? not "
    r")",
    re.IGNORECASE,
)

_END = r"(?=[，,。.！!；;：:～~…\s]|$)"
_CHINESE = re.compile(
    r"^(?:(?:嗯|呃|喂|等等|等一下|抱歉|但是?|请|不[，,]|不是[，,！!])[，,\s]*)*(?:"
    rf"不对(?:的|吧|啊)?{_END}|不是这样(?:的)?{_END}|(?:又|还是|全)?(?:搞|弄|写|算|理解|翻译)?错了{_END}"
    rf"|你(?:又|完全|都|还是|全)?(?:搞|弄|理解|写|算|翻译|说|做|看|改|读|答)(?:得|的)?(?:不对|错了?){_END}"
    rf"|这(?:样|个|里|句|段|次)?(?:还是|又|也)?(?:不对{_END}|是错的|错了{_END}|不是我(?:要|想要|问|说)的)"
    r"|我(?:要|问|指|说|想要)的(?:是[^，,]{1,40}[，,]?\s*(?:而)?不是|不是(?!.*(?:问题|钱)))"
    r"|我(?:的)?意思(?:不)?是.{0,40}不是|我(?:没有?|不是|并没有?)(?:让|叫|要求)你|我没说要"
    r"|我(?:都|已经|早就)?(?:说过|讲过|强调过|告诉过你|跟你说过)了?[，,]?.{0,20}(?:不要|别|不能|要用|应该|必须|得用|用)"
    r"|(?:你)?(?:别|不要|不准|不许)(?:总是|老是|老|一直)?再(?!见|来|去|等|说|聊|犹豫)|你?(?:别|不要)(?:总是?|老是?|一直)(?:用|说|加|写|改|问|答|回答|道歉|重复)"
    r"|(?:以后|下次|今后|往后|从现在(?:开始|起))[，,]?(?:都|就)?(?:务必|不要|别(?!人|的|墅)|一律|记得|不许|不准|只能"
    r"|请(?!你|大家|客|吃|我|他|她|假)|(?:回答|写|提交|输出|翻译|命名|总结)[^，。]{0,4}(?:都|请|要|用|别|不要)|[你您](?:都|就)?(?:别|不要|应该|必须|先|直接|得|记得|用|要(?!是|来|去)))"
    r"|(?:应该|应当|要|得|改)?(?:改)?用(?!户|来|于|得).{1,30}(?:而不是|[，,](?:不要|别)用)"
    r"|(?:不要|别|不能|不该)用.{1,30}[，,]\s*(?:要|请|应该|都|得)?(?:用|换成|改用|改成)"
    r"|你(?:又|还是)?(?:忘了|忘记|漏了|漏掉|误解了?|怎么又|又(?:用|把|忘|写|改|加|删)|没有?按(?:我|照)"
    r"|没有?(?:用|加|改|看|回答|遵守)(?:我|了)?)"
    r"|应该是.{1,30}(?:而不是|[，,]不是(?![很太特十]))|(?!我)[^，,]{1,8}(?:写|算|翻译?|填)错了[，,]\s*(?:应该)?是.{1,30}不是"
    r")"
)
_REACTION = re.compile(
    r"^(?:no|nope)\b|\b(?:that|this|it)(?:'s| is) (?:still )?(?:wrong|incorrect|not (?:right|correct|true))\b"
    r"|不对|不是这样的?|你?(?:又|还是|全)?(?:搞|弄|写|算|理解|翻译)?错了|这(?:个|样)?(?:是错的|不对)",
    re.IGNORECASE,
)


def correction_in(text: str) -> str | None:
    """What the user says in correcting the assistant, with what belongs to it; `None` if they do not.

    Questions, suppositions, quotations, and what somebody else is said to have said are no corrections, nor is one that
    says nothing of how it should be.
    """
    looked_at = _NOT_THE_USERS.sub("\n", text[:_LOOKED_AT])
    sentences = [each for each in _SENTENCE.findall(looked_at) if each.strip()]
    for at, sentence in enumerate(sentences[:_LESSON_SENTENCES] if len(text) > _LONG else sentences):
        if _corrects(sentence):
            lesson = _lesson(sentences[at : at + _LESSON_SENTENCES])
            if lesson is not None:
                return lesson
    return None


def _corrects(sentence: str) -> bool:
    said = _QUOTED.sub("□", sentence).replace("’", "'").strip()
    if _QUESTION.search(said) or _SUPPOSED.search(said) or _REPORTED.search(said):
        return False
    bare = said.rstrip(".!。！ ")
    return _ENGLISH.match(bare) is not None or _CHINESE.match(bare) is not None


def _lesson(sentences: list[str]) -> str | None:
    """The correction, and what follows while that says little; `None` if nothing does."""
    kept = ""
    for sentence in sentences:
        if kept and _teaches(kept):
            break
        kept = f"{kept} {sentence.strip()}" if kept.isascii() else kept + sentence.strip()
    kept = " ".join(kept.split())[:_LESSON_CHARS]
    return kept if _teaches(kept) else None


def _teaches(text: str) -> bool:
    return _weight(_REACTION.sub("", text)) >= _SHORTEST


def _weight(text: str) -> int:
    return sum(1 if each.isascii() else 3 for each in text if each.isalnum())
