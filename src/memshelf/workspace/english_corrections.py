"""Forms in which a user corrects an assistant in English, or says how it is to work from now on."""

from __future__ import annotations

from typing import Final

from memshelf.workspace.correction_forms import CorrectionForms

__all__ = ["ENGLISH"]


def _any(*forms: str) -> str:
    return "(?:" + "|".join(forms) + ")"


def _words(text: str) -> str:
    return _any(*text.split())


_VERBS = _words(  # what an assistant does for a user
    "use write add answer reply respond call ask assume guess explain mention include suggest recommend "
    r"commit push delete touch change edit rename refactor rewrite format translate summari[sz]e repeat "
    r"apologi[sz]e make do put run return start end sign skip remove create install send mock check keep "
    "show round cite quote list link wrap indent import catch hardcode invent leave prefer follow read "
    r"convert update uppercase lowercase capitali[sz]e test lint round verify confirm reformat generate"
)
_LASTING = _any(
    r"from (?:now|here) on", "going forward", "next time", r"in (?:the )?future", r"starting (?:now|next \w+)"
)
_PLEASE = r"(?:please |just |then )*"
_NOT = _any("don't", "do not", "never")
_IS = r"(?:'s|'m|'re| is| am| are| was)"
_WHO = _any("i", "it", "he", "she", "they", "this", "that")
_WAY = _words(
    "long short wordy verbose formal informal casual stiff vague generic complicated complex technical "
    "detailed dry terse chatty polite flowery abstract repetitive"
)
_OWN = (
    r"(?:answers?|repl(?:y|ies)|responses?|emails?|code|output|summar(?:y|ies)|messages?|tone|translations?|titles?"
    r"|headings?|notes|tests|commits|reports?|tables?|lists?|comments|names|dates|numbers|variables|functions)"
)

_COMFORT = (  # what people tell each other not to do, and what is not to be done just now
    r"(?:ever|worry|be (?!so\b)|forget|know|think|get|give|mind|rush|stop|let|hesitate|have|need|want|like|see|care"
    r"|feel|panic|lose|miss"
    r"|hurry|wait|bother|tell|look|go|come|leave|believe|remember|understand|say|try|cry|die|drink|eat|you|we|i|it)"
)
_ALL = r"(?:the|it|that|them|him|her|all|everything|anything|up|down)"

_CLAUSE = _any(  # may begin behind a comma as well
    # From now on
    rf"{_LASTING},? {_PLEASE}(?:always |only )?(?:{_NOT} |{_VERBS}\b|no\b|all\b|you (?:should|must|need to|can)\b)",
    r"from (?:now|here) on,? [\w ]+ only\b",
    rf"in (?:the )?future [\w ]{{1,24}}, {_PLEASE}(?:{_NOT} )?{_VERBS}\b",
    rf"{_PLEASE}(?:always|never|(?:don't|do not) ever) {_VERBS}\b",
    rf"(?!(?:you|he|she|it|they|the|this|that|but|maybe|there|what|things)\b)(?!.*\b(?:i|we|my|i'm|i'll"
    rf"|i've)\b)\w+ .+\b{_LASTING}$",
    rf"(?:(?:each|every) time|when(?:ever)?) you (?!have|are|can|get|feel|see|want|like|need)\w+\b[^,]*, {_PLEASE}"
    rf"(?:{_NOT} |always )?{_VERBS}\b",
    rf"(?:when(?:ever)? \w+ing|for (?:all|any|my|our|\w+s\b))[^,]*, {_PLEASE}(?:{_NOT} |always )?{_VERBS}\b",
    # Never, whatever the task
    rf"{_PLEASE}(?:don't|do not) (?!{_COMFORT}\b)\w+\b(?! {_ALL}\b)(?= \w)|(?:don't|do not) call me (?!when|if|before"
    rf"|until|back|now|at|on)",
    rf"{_PLEASE}(?:don't|do not) (?:guess|assume|apologi[sz]e|summari[sz]e)\b",
    rf"{_PLEASE}(?:don't|do not) {_VERBS}\b.*\b(?:again|any ?more|ever|unless i|without asking)\b",
    rf"{_PLEASE}(?:stop|quit) (?!by\b)\w+ing\b(?! (?:is|was|has|would)\b)",
    r"not (?:use|add|write|include)\b",
    r"(?:you (?:don't|do not) (?:need|have) to|(?:there's )?no need to) "
    r"(?:always |keep )?(?:apologi|repeat|explain|summari|thank|greet|ask|remind|tell)\w*",
    rf"{_PLEASE}no more (?!time|for|today|questions|than|thanks)\w+|enough with the\b",
    rf"{_PLEASE}(?:no|less|fewer) [\w -]{{3,40}}(?:,? please| in [\w ]+)$",
)
_SENTENCE = _any(
    # What is wrong, with more than that to it
    r"(?:no|nope)(?:[,.!:;]| ?[—–-]) ?(?:(?:that|this|it)(?:'s| is) (?:not|wrong|incorrect)(?! necessary)"
    r"|i (?:meant|said|asked|wanted)\b|not (?:that|this|like)\b|(?:please )?(?:use|do not|don't)\b"
    r"|in \w+$|(?:it's|it is|they're) (?:the|on|in|at|called|spelled|a|an)\b|the \w+"
    r"|you (?:should|need to|must|forgot|missed|misunderstood|have to)\b|it should\b)",
    r"no,? (?:no,? |it's not, |it isn't, )(?:the|it|i|use|that|\w+ (?:is|has|takes|was))\b",
    r"(?:that|this|it)(?:'s| is| was) (?:still |just |all |completely )?"
    r"(?:(?:wrong|incorrect|not (?:right|correct|true))(?= ?[,;:—–-]|$)|not (?:what|how) (?:i|we)\b|the wrong\b)",
    r"(?:that|this|it) (?:isn't|wasn't) (?:what|how) (?:i|we)\b|not (?:what i|like (?:that|this))\b",
    r"(?:wrong|incorrect)(?:$|[,:] | (?:\w+)(?:$|[,:] ))|(?:the )?other way (?:a?round)\b",
    rf"your (?:last |previous )?{_OWN} (?:is|was) (?:still )?(?:wrong|incorrect|not|too)\b",
    r"(?:the|your) (?:tone|format|style|length) (?:is|was) (?:off|wrong|too)\b",
    rf"(?:(?:that|this|it){_IS} )?(?:way |much |far |a bit |still )*too (?:{_WAY}|(?:many|much) [\w ]{{3,30}})(?=$"
    rf"|[,;:—–-])",
    r"you(?:'ve| have)? (?:got |have )(?:it|that|this|them|\w+ \w+) (?:wrong|backwards|reversed|mixed up)\b",
    r"you(?:'ve| have| again| completely| still| just)* (?:misunderst|misread|misspel|ignor|mixed|confus|left out"
    r"|swapped"
    r"|skipped|forgot (?:to|the|my)|missed (?:a|the|one|my)|keep (?:on )?\w+ing|were supposed to|never (?:\w+e|add"
    r"|ask|answer|check|put)\b"
    r"|should(?:n't| not|'ve| have)(?: have)? (?:used|been|done|put|kept|run|written|gone|taken|made|asked|\w+ed)\b)",
    r"you (?:didn't|did not) (?:follow|read|use|answer|run|include|check|add|fix)\b",
    r"you(?:'re| are) (?:still )?using the (?:old|wrong)\b|you still \w+ing\b",
    # What was meant, or said before
    r"i(?:'ve| have)? (?:already |just )?told you (?:already|before|\w+ times|to\b|not to\b|that\b|no\b|never\b|i)",
    r"i(?:'ve| have)? already told you\b|who (?:told|asked) you to\b",
    r"(?:like|as) i(?:'ve| have)? (?:already )?(?:said|told you|mentioned|wrote)(?: before| earlier| already)?,",
    r".*, (?:like |as )?i(?:'ve| have)? (?:already )?(?:said|told you) (?:that|so|this)? ?(?:before|already|earlier)$",
    r"how (?:many times|often) do i (?:have|need) to\b",
    r"i (?:already )?(?:asked (?:you )?(?:for|to)|said|wanted) .+(?:, ?(?:and )?not | instead of | and not "
    r"|, you gave )",
    r"i (?:already |only |never |specifically )?asked you (?:not )?to\b|i (?:only|never) (?:asked|wanted) (?:for|you"
    r"|a|the)\b",
    r"i (?:already )?said (?:no|don't|not|only|never) \w",
    r"i meant (?!to\b|well\b|it\b|what\b|every\b)",
    r"i (?:didn't|did not) (?:ask (?:you )?(?:for|to)|mean (?:that|the|this|for))\b",
    # One, and not the other
    rf"{_PLEASE}(?:always |only )?(?:(?:use|prefer|write) .+(?: over |,? (?:and )?not )|{_VERBS}\b.+(?: instead of "
    rf"| rather than ))",
    r"switch to .+, (?:drop|not|no more)\b",
    r"(?!(?:we|i) use\b|[^,]*\b(?:better|worse|good|great)\b|nope\b|no,|i think\b|maybe\b|perhaps\b|just\b|right\b"
    r"|\w*error\b)[^,]{2,60}, (?:and )?not (?!yet|now|sure|so|too|that|just|only|really|at all)[^,]{1,40}$",
    r"(?:it|that|the \w+) should (?:be|have been|say|use|return) .+(?:\bnot\b|instead of|rather than)",
    rf"(?!he\b|she\b){_WHO}(?:{_IS} not| isn't| aren't) (?!that\b|just\b|only\b|so\b|you\b"
    rf"|me\b)[^,]{{1,40}}, (?:but )?{_WHO}{_IS} "
    r"(?!just\b|only\b|more\b|me\b)[^,]{1,40}$",
    r"\S+ should be (?:translated|written|called|spelled|named) as\b",
    # Names, and how a user wants to be served
    r"(?-i:[Cc]all me [A-Z])|my name(?:'s| is) [^,]{1,30}, (?:without|with|not|no)\b|(?:it's|it is) (?:spelled"
    r"|pronounced)\b|that's not my \w+|remember[,:] (?:we|our|my|the)\b",
    r"i(?:'d| would) (?:rather|prefer(?: it if)?|like) you (?:to (?:always|never)|asked?|not|didn't|always|never)\b",
    rf"{_PLEASE}keep (?:(?:your|the|my) {_OWN}|it|them) (?:\w+ )?(?:short|brief|simple|concise|formal|casual|polite"
    rf"|under|below|to)\b",
    rf"(?:your |all )?(?:\w+ )?{_OWN} (?:should|must)(?:n't)? (?:always |never |not )?\w+",
    r"you (?!said|were|know|see|can|may)\w+ [^,]{1,40}, (?:i (?:need|want|asked|said|meant)|it's|we're|it is)\b",
    rf"{_PLEASE}just give me the \w+[,.] ?(?:no|not|without)\b",
    rf"{_PLEASE}(?:remember to|make sure (?:to|you)) always\b|{_PLEASE}remember to {_VERBS}\b.+\b(?:everywhere|always|"
    r"every time)\b",
    rf"in my \w+, (?:{_NOT}|always|use)\b",
)

ENGLISH: Final = CorrectionForms(
    leads=r"(?:hey|hmm+|wait|sorry|ok|okay|well|but|please|and|so|again|thanks|thank you|good|great|nice|one thing|also"
    r"|actually)[,:;.]? ",
    asks=r"(?:can|could|would|will) you (?:please )?(?=(?:stop|quit|not|never)\b)|why (?:do|are|did) (?=you (?:keep"
    r"|still|always|again)\b)",
    instructs=(f"^{_CLAUSE}", f"[,;:—–] ?(?:but |and |so )*{_CLAUSE}"),
    corrects=(f"^{_SENTENCE}",),
    none=r"^(?:why|what|how(?! many times do i| often do i)|is|are|was|do|does|did|can|could|would|should|which|where"
    r"|who|when (?!you\b))\b(?! not\b)"
    r"|(?<!even )\bif\b|^whether\b|\b(?:suppose|for example|novel|story|poem)\b"
    r"|\b(?:he|she|they|everyone|someone|somebody|people|my \w+|the \w+)(?: \w+)? "
    r"(?:said|says|told|tells|thinks?|claims?|asked|wants? us|wrote)\b|\byou(?:'re| are| were) right\b"
    r"|^(?:\w*error\b|(?:please )?(?:translate|draft|write (?:a|an|the)|compose|replace)\b)",
    once=r"\b(?:yet|today|tonight|tomorrow|this (?:time|one|once|\w+)|these|just once|for now|right now|until|that one"
    r"|the (?:first|second|third|last|next) \w+)\b",
    lasting=rf"\b{_LASTING}\b",
    reaction=r"^(?:no|nope|wrong)\b|\b(?:that|this|it)(?:'s| is) (?:still )?(?:wrong|incorrect|not (?:right|correct"
    r"|true))\b"
    rf"|^(?:(?:that|this|it){_IS} )?(?:way |much |far |a bit |still )*too {_WAY}",
    puts=rf"\b(?:please|again|any ?more|ever|{_LASTING})\b,?"
    r"|(?<!n't )(?<!n’t )(?<!not )(?<!never )\b(?:always|just)\b,?"  # "don't always" is not "don't"
    r"|^(?:and|but|no|ok(?:ay)?|so),? |,? ok(?:ay)?$",
    forbids=r"\b(?:don't|don’t|do not|dont|never|no|must not|mustn't|should not|shouldn't)\b",
    forbidden="don't",
)
