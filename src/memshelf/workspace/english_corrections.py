"""Forms in which a user corrects an assistant in English, or says how it is to work from now on."""

from __future__ import annotations

from typing import Final

from memshelf.workspace.correction_forms import CorrectionForms, Forms, any_of, any_word

__all__ = ["ENGLISH"]

_VERBS = any_word(  # what an assistant does for a user
    "use write add answer reply respond call ask assume guess explain mention include suggest recommend "
    r"commit push delete touch change edit rename refactor rewrite format translate summari[sz]e repeat "
    r"apologi[sz]e make do put run return start end sign skip remove create install send mock check keep "
    "show round cite quote list link wrap indent import catch hardcode invent leave prefer follow read "
    r"convert update uppercase lowercase capitali[sz]e test lint verify confirm reformat generate"
)
_OWN = any_word(  # what an assistant makes
    "answers? repl(?:y|ies) responses? emails? code output summar(?:y|ies) messages? tone translations? titles? "
    "headings? notes tests commits reports? tables? lists? comments names dates numbers variables functions"
)
_WAY = any_word(
    "long short wordy verbose formal informal casual stiff vague generic complicated complex technical "
    "detailed dry terse chatty polite flowery abstract repetitive"
)
_COMFORT = any_word(  # what people tell each other not to do, and what is not to be done just now
    "ever worry forget know think get give mind rush stop let hesitate have need want like see care feel panic lose "
    "miss hurry wait bother tell look go come leave believe remember understand say try cry die drink eat you we i it"
)
_ALL = any_word("the it that them him her all everything anything up down")
_LASTING = any_of(
    r"from (?:now|here) on", "going forward", "next time", r"in (?:the )?future", r"starting (?:now|next \w+)"
)
_PLEASE = "(?:please |just |then )*"
_DO_NOT = "(?:don't|do not)"
_NOT = "(?:don't|do not|never)"
_IS = "(?:'s|'m|'re| is| am| are| was)"
_WHO = any_word("i it he she they this that")
_HAVE = "(?:'ve| have)?"

_INSTRUCTS: Forms = (
    # From now on
    (
        "From now on always answer in German",
        rf"{_LASTING},? {_PLEASE}(?:always |only )?"
        rf"(?:{_NOT} |{_VERBS}\b|no\b|all\b|you (?:should|must|need to|can)\b)",
    ),
    ("from now on, metric units only", r"from (?:now|here) on,? [\w ]+ only\b"),
    (
        "In future reports, put the totals at the top",
        rf"in (?:the )?future [\w ]{{1,24}}, {_PLEASE}(?:{_NOT} )?{_VERBS}\b",
    ),
    ("Never push without asking me", rf"{_PLEASE}(?:always|never|{_DO_NOT} ever) {_VERBS}\b"),
    (
        "Answer in Chinese from now on",
        r"(?!(?:you|he|she|it|they|the|this|that|but|maybe|there|what|things)\b)"
        rf"(?!.*\b(?:i|we|my|i'm|i'll|i've)\b)\w+ .+\b{_LASTING}$",
    ),
    (
        "Every time you finish, run the linter",
        r"(?:(?:each|every) time|when(?:ever)?) you (?!have|are|can|get|feel|see|want|like|need)\w+\b[^,]*, "
        rf"{_PLEASE}(?:{_NOT} |always )?{_VERBS}\b",
    ),
    (
        "For translations, keep English technical terms as they are",
        rf"(?:when(?:ever)? \w+ing|for (?:all|any|my|our|\w+s\b))[^,]*, {_PLEASE}(?:{_NOT} |always )?{_VERBS}\b",
    ),
    # Never, whatever the task
    (
        "Don't add comments to the code",
        rf"{_PLEASE}{_DO_NOT} (?!(?:{_COMFORT}|be (?!so\b))\b)\w+\b(?! {_ALL}\b)(?= \w)",
    ),
    ("Don't guess; look it up", rf"{_PLEASE}{_DO_NOT} (?:guess|assume|apologi[sz]e|summari[sz]e)\b"),
    (
        "Please don't use it any more",
        rf"{_PLEASE}{_DO_NOT} {_VERBS}\b.*\b(?:again|any ?more|ever|unless i|without asking)\b",
    ),
    ("Stop apologizing all the time", rf"{_PLEASE}(?:stop|quit) (?!by\b)\w+ing\b(?! (?:is|was|has|would)\b)"),
    ("not use bullet points for everything", r"not (?:use|add|write|include)\b"),  # behind "could you"
    (
        "You don't need to apologize every time",
        r"(?:you (?:don't|do not) (?:need|have) to|(?:there's )?no need to) (?:always |keep )?"
        r"(?:apologi|repeat|explain|summari|thank|greet|ask|remind|tell)\w*",
    ),
    ("please no more apologies", rf"{_PLEASE}no more (?!time|for|today|questions|than|thanks)\w+"),
    ("Enough with the emojis", r"enough with the\b"),
    ("No comments in code, please", rf"{_PLEASE}(?:no|less|fewer) [\w -]{{3,40}}(?:,? please| in [\w ]+)$"),
)

_NO = any_of(
    r"(?:that|this|it)(?:'s| is) (?:not|wrong|incorrect)(?! necessary)",
    r"i (?:meant|said|asked|wanted)\b",
    r"not (?:that|this|like)\b",
    r"(?:please )?(?:use|do not|don't)\b",
    r"in \w+$",
    r"(?:it's|it is|they're) (?:the|on|in|at|called|spelled|a|an)\b",
    r"the \w+",
    r"you (?:should|need to|must|forgot|missed|misunderstood|have to)\b",
    r"it should\b",
)
_MISTAKES = any_of(
    r"misunderst|misread|misspel|ignor|mixed|confus|left out|swapped|skipped",
    r"forgot (?:to|the|my)",
    r"missed (?:a|the|one|my)",
    r"keep (?:on )?\w+ing",
    r"were supposed to",
    r"never (?:\w+e|add|ask|answer|check|put)\b",
    r"should(?:n't| not|'ve| have)(?: have)? (?:used|been|done|put|kept|run|written|gone|taken|made|asked|\w+ed)\b",
)

_CORRECTS: Forms = (
    # What is wrong, with more than that to it
    ("No, use the staging database", rf"(?:no|nope)(?:[,.!:;]| ?[—–-]) ?{_NO}"),
    (
        "no no, the other repo: memshelf-docs",
        r"no,? (?:no,? |it's not, |it isn't, )(?:the|it|i|use|that|\w+ (?:is|has|takes|was))\b",
    ),
    (
        "That's wrong, the deadline is Friday",
        r"(?:that|this|it)(?:'s| is| was) (?:still |just |all |completely )?"
        r"(?:(?:wrong|incorrect|not (?:right|correct|true))(?= ?[,;:—–-]|$)|not (?:what|how) (?:i|we)\b|the wrong\b)",
    ),
    ("That isn't what I asked", r"(?:that|this|it) (?:isn't|wasn't) (?:what|how) (?:i|we)\b"),
    ("Not like that, alphabetical order", r"not (?:what i|like (?:that|this))\b"),
    ("wrong port, it's 8443", r"(?:wrong|incorrect)(?:$|[,:] | (?:\w+)(?:$|[,:] ))"),
    ("other way round: left is input, right is output", r"(?:the )?other way (?:a?round)\b"),
    (
        "Your answer is wrong, 17 is prime",
        rf"your (?:last |previous )?{_OWN} (?:is|was) (?:still )?(?:wrong|incorrect|not|too)\b",
    ),
    (
        "The tone is off, our customers expect something warmer",
        r"(?:the|your) (?:tone|format|style|length) (?:is|was) (?:off|wrong|too)\b",
    ),
    (
        "This is too vague, give me numbers",
        rf"(?:(?:that|this|it){_IS} )?(?:way |much |far |a bit |still )*too "
        rf"(?:{_WAY}|(?:many|much) [\w ]{{3,30}})(?=$|[,;:—–-])",
    ),
    (
        "You've got the date wrong, it's the 14th",
        rf"you{_HAVE} (?:got |have )(?:it|that|this|them|\w+ \w+) (?:wrong|backwards|reversed|mixed up)\b",
    ),
    ("you forgot the legend again", rf"you(?:'ve| have| again| completely| still| just)* {_MISTAKES}"),
    (
        "You didn't follow the template",
        r"you (?:didn't|did not) (?:follow|read|use|answer|run|include|check|add|fix)\b",
    ),
    ("You're using the old API", r"you(?:'re| are) (?:still )?using the (?:old|wrong)\b"),
    ("you still answering in English", r"you still \w+ing\b"),  # behind "why are"
    # What was meant, or said before
    (
        "I told you not to touch the migrations",
        rf"i{_HAVE} (?:already |just )?told you (?:already|before|\w+ times|to\b|not to\b|that\b|no\b|never\b|i)",
    ),
    ("I already told you we don't ship on Fridays", rf"i{_HAVE} already told you\b"),
    ("told you to change the schema", r"(?:told|asked) you to\b"),  # behind "who"
    (
        "Like I said, I'm vegetarian",
        rf"(?:like|as) i{_HAVE} (?:already )?(?:said|told you|mentioned|wrote)(?: before| earlier| already)?,",
    ),
    (
        "Answers in Spanish, I've said that before",
        rf".*, (?:like |as )?i{_HAVE} (?:already )?(?:said|told you) (?:that|so|this)? ?(?:before|already|earlier)$",
    ),
    ("how many times do I have to say it: no bullet points", r"how (?:many times|often) do i (?:have|need) to\b"),
    (
        "I asked for a list, you gave me an essay",
        r"i (?:already )?(?:asked (?:you )?(?:for|to)|said|wanted) .+"
        r"(?:, ?(?:and )?not | instead of | and not |, you gave )",
    ),
    ("I asked you not to touch the config", r"i (?:already |only |never |specifically )?asked you (?:not )?to\b"),
    ("I never asked for a chart, just the numbers", r"i (?:only|never) (?:asked|wanted) (?:for|you|a|the)\b"),
    ("I said no sugar", r"i (?:already )?said (?:no|don't|not|only|never) \w"),
    ("I meant the other repository, the public one", r"i meant (?!to\b|well\b|it\b|what\b|every\b)"),
    (
        "I didn't ask you to refactor the parser",
        r"i (?:didn't|did not) (?:ask (?:you )?(?:for|to)|mean (?:that|the|this|for))\b",
    ),
    # One, and not the other
    (
        "Use pnpm instead of npm",
        rf"{_PLEASE}(?:always |only )?"
        rf"(?:(?:use|prefer|write) .+(?: over |,? (?:and )?not )|{_VERBS}\b.+(?: instead of | rather than ))",
    ),
    ("switch to pytest, drop unittest", r"switch to .+, (?:drop|not|no more)\b"),
    (
        "it's Sarah, not Sara",
        r"(?!(?:we|i) use\b|[^,]*\b(?:better|worse|good|great)\b|nope\b|no,|i think\b|maybe\b|perhaps\b|just\b"
        r"|right\b|\w*error\b)[^,]{2,60}, (?:and )?"
        r"not (?!yet|now|sure|so|too|that|just|only|really|at all)[^,]{1,40}$",
    ),
    (
        "The port should be 8443 instead of 443",
        r"(?:it|that|the \w+) should (?:be|have been|say|use|return) .+(?:\bnot\b|instead of|rather than)",
    ),
    (
        "it's not deleted, it's archived",
        rf"(?!he\b|she\b){_WHO}(?:{_IS} not| isn't| aren't) (?!that\b|just\b|only\b|so\b|you\b|me\b)[^,]{{1,40}}, "
        rf"(?:but )?{_WHO}{_IS} (?!just\b|only\b|more\b|me\b)[^,]{{1,40}}$",
    ),
    ('"agent" should be translated as "智能体"', r"\S+ should be (?:translated|written|called|spelled|named) as\b"),
    # Names, and how a user wants to be served
    ("Call me Max", r"(?-i:[Cc]all me [A-Z])"),
    ("My name is Jon, without the h", r"my name(?:'s| is) [^,]{1,30}, (?:without|with|not|no)\b"),
    ("It's spelled Kowalski with a K", r"(?:it's|it is) (?:spelled|pronounced)\b"),
    ("that's not my name", r"that's not my \w+"),
    ("Remember, we only support Chrome", r"remember[,:] (?:we|our|my|the)\b"),
    (
        "I'd rather you asked before installing packages",
        r"i(?:'d| would) (?:rather|prefer(?: it if)?|like) you "
        r"(?:to (?:always|never)|asked?|not|didn't|always|never)\b",
    ),
    (
        "Keep your answers short",
        rf"{_PLEASE}keep (?:(?:your|the|my) {_OWN}|it|them) (?:\w+ )?"
        r"(?:short|brief|simple|concise|formal|casual|polite|under|below|to)\b",
    ),
    (
        "titles shouldn't be longer than ten words",
        rf"(?!(?:the|this|that) )(?:your |all )?(?:\w+ )?{_OWN} (?:should|must)(?:n't)? (?:always |never |not )?\w+",
    ),
    (
        "You used British spelling again, we're American",
        r"you (?!said|were|know|see|can|may)\w+ [^,]{1,40}, "
        r"(?:i (?:need|want|asked|said|meant)|it's|we're|it is)\b",
    ),
    ("Just give me the answer, no explanations", rf"{_PLEASE}just give me the \w+[,.] ?(?:no|not|without)\b"),
    ("make sure you always include the units", rf"{_PLEASE}(?:remember to|make sure (?:to|you)) always\b"),
    (
        "Remember to use UTC everywhere",
        rf"{_PLEASE}remember to {_VERBS}\b.+\b(?:everywhere|always|every time)\b",
    ),
    ("In my code, never catch bare exceptions", rf"in my (?!opinion|view|experience|case)\w+, (?:{_NOT}|always|use)\b"),
)

ENGLISH: Final = CorrectionForms(
    clause="(?:^|[,;:—–] ?(?:but |and |so )*)",
    leads=r"(?:hey|hmm+|wait|sorry|ok|okay|well|but|please|and|so|again|thanks|thank you|good|great|nice|one thing|also"
    r"|actually)[,:;.]? ",
    asks=r"(?:can|could|would|will) you (?:please )?(?=(?:stop|quit|not|never)\b)"
    r"|why (?:do|are|did) (?=you (?:keep|still|always|again)\b)"
    r"|who (?=(?:told|asked) you to\b)",
    instructs=_INSTRUCTS,
    corrects=_CORRECTS,
    none=any_of(
        r"^(?:why|what|how(?! many times do i| often do i)|is|are|was|do|does|did|can|could|would|should|which|where"
        r"|who|when (?!you\b))\b(?! not\b)",
        r"(?<!even )\bif\b",
        r"^whether\b",
        r"\b(?:suppose|for example|novel|story|poem)\b",
        r"\b(?:he|she|they|everyone|someone|somebody|people|my \w+|the \w+)(?: \w+)? "
        r"(?:said|says|told|tells|thinks?|claims?|asked|wants? us|wrote)\b",
        r"\byou(?:'re| are| were) right\b",
        r"^(?:\w*error\b|(?:please )?(?:translate|draft|write (?:a|an|the)|compose|replace)\b)",
    ),
    once=r"\b(?:yet|today|tonight|tomorrow|this (?:time|one|once|\w+)|these|just once|for now|right now|until|that one"
    r"|the (?:first|second|third|last|next) \w+)\b",
    lasting=rf"\b{_LASTING}\b",
    reaction=any_of(
        r"^(?:no|nope|wrong)\b",
        r"\b(?:that|this|it)(?:'s| is) (?:still )?(?:wrong|incorrect|not (?:right|correct|true))\b",
        rf"^(?:(?:that|this|it){_IS} )?(?:way |much |far |a bit |still )*too {_WAY}",
    ),
    puts=any_of(
        rf"\b(?:please|again|any ?more|ever|{_LASTING})\b,?",
        r"(?<!n't )(?<!n’t )(?<!not )(?<!never )\b(?:always|just)\b,?",  # "don't always" is not "don't"
        r"^(?:and|but|no|ok(?:ay)?|so),? ",
        r",? ok(?:ay)?$",
    ),
    forbids=r"\b(?:don't|don’t|do not|dont|never|no|must not|mustn't|should not|shouldn't)\b",
    forbidden="don't",
)
