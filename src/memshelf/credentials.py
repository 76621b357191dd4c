"""What looks like a credential in a text, and what to do about it before the text is kept.

The detector is redact-secret. Beside it stand a few forms that it does not know: those of Chinese platforms, the
service's own keys, some webhooks, and passwords that are told in a sentence.
"""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import redact_secret

from memshelf.arguments import checked_argument
from memshelf.errors import MemoryStoreError

__all__ = ["Secret", "SecretsPolicy", "admit", "check_policy", "find_secrets", "mask_secrets"]

SecretsPolicy: TypeAlias = Literal["off", "warn", "mask", "refuse"]
"""What becomes of a text that seems to hold a credential. `off`: nothing is looked for. `warn`: it is kept as it is,
and the log says so. `mask`: a placeholder is kept in the credential's place. `refuse`: nothing is kept."""

_LOG = logging.getLogger(__name__)

_WIDE = {ord("！") + at: chr(ord("!") + at) for at in range(94)} | {ord("\u3000"): " "}
_NARROW = {chr(wide): narrow for wide, narrow in _WIDE.items()}
_WIDE_RUN = re.compile("[！-～\u3000]+")
# To the detector, a letter next to a token is part of it, and a Chinese character is a letter. What is invisible stays:
# the detector sees through it.
_INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff"
_NOT_ASCII = re.compile(f"[^\x00-\x7f{_INVISIBLE}]+")
# An underscore is a letter too, also where Markdown emphasises with it.
_EMPHASIS = re.compile(r"(_(?<![\w-]_)_{0,2})([^\s_]\S{8,512}?)\1(?![\w-])", re.ASCII)
_INNER_JWT = re.compile("(?<=[A-Za-z0-9_-])eyJ")
_MANY = 32

_PLACEHOLDER = re.compile(r"\[secret: [a-z0-9_]+\]")
_PASSES = 3
"""What is glued to a credential is a whole word only when that is masked."""

_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
# Kind, what stands before the credential, the credential. A form that begins with no fixed text is bounded on both
# sides. Sources: the platforms' own documentation, and gitleaks' rules where it has one.
_FORMS = [
    ("alibaba_access_key_id", "", "LTAI[A-Za-z0-9]{12,26}"),
    ("tencent_secret_id", "", "AKID[A-Za-z0-9]{32}"),
    ("api_key", "", "sk-[0-9a-f]{32}"),  # DeepSeek, Alibaba's Model Studio
    # A name of words has no capital or no digit. The detector knows only those with OpenAI's mark in their middle.
    (
        "openai_api_key",
        "",
        "sk-(?:proj|svcacct|admin)-(?=[A-Za-z_-]{0,39}[0-9])(?=[a-z0-9_-]{0,39}[A-Z])[A-Za-z0-9_-]{40,}",
    ),
    ("memshelf_api_key", "", "ms[kt]_[a-z2-7]{48}"),
    ("age_secret_key", "", "AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    ("azure_storage_key", "AccountKey=", "[A-Za-z0-9+/]{86}=="),
    ("slack_webhook", "hooks.slack.com/services/", "T[A-Z0-9]{6,16}/B[A-Z0-9]{6,16}/[A-Za-z0-9]{20,32}"),
    ("discord_webhook", "/api/webhooks/", "[0-9]{16,20}/[A-Za-z0-9_-]{60,80}"),
    ("feishu_webhook", "/open-apis/bot/v2/hook/", _UUID),
    ("wecom_webhook", "qyapi.weixin.qq.com/cgi-bin/webhook/send?key=", _UUID),
    ("dingtalk_webhook", "oapi.dingtalk.com/robot/send?access_token=", "[0-9a-f]{64}"),
]
_AFTER = "(?![A-Za-z0-9_-])"
_FINDERS = [(kind, re.compile(f"{re.escape(before)}({form}){_AFTER}"), bool(before)) for kind, before, form in _FORMS]
# It begins with no fixed text, so the search is for what stands in its middle.
_ZHIPU_HEAD, _ZHIPU_TAIL = re.compile("[0-9a-f]{32}"), re.compile(rf"\.[A-Za-z0-9]{{16}}{_AFTER}")
_NAME = frozenset("-._0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")

# Literal alternatives, so that a text without any costs next to nothing.
_PASSWORDS = ("密码", "口令", "授权码", "password", "passphrase", "passwd", "passcode", "pwd")
_KEYS: tuple[str, ...] = ("密钥", "秘钥", "私钥", "令牌", "凭证", "secret", "token")
_KEYS += tuple(f"{what}{between}key" for what in ("api", "access", "secret") for between in ("", " ", "_", "-"))
_KEYWORD = re.compile("|".join(sorted(_PASSWORDS + _KEYS, key=len, reverse=True)))
_STEMS = ("pass", "pwd", "secret", "token", "key", "密码", "口令", "授权码", "钥", "令牌", "凭证")
"""Each keyword has one of them, and to find that there is none takes a tenth of the time."""

_TOLD = re.compile(
    r"[ \t]{0,2}(?:就?是|设?为|改成|改为|[:=]|(?i:is|was)(?=[ \t]))[ \t]{0,2}[\"'`“‘「『]?"
    r"(?P<value>[!#-&*-.0-9=?@A-Z^_a-z~]{6,256}+)(?![(\[]|:?/)"
)
_NAMED = re.compile("(?i:sha-?[0-9]|md5|aes|rsa|hmac|pbkdf|base64|utf-?|oauth|bcrypt|argon|ed25519|ecdsa|x509|iso)")
_NAMES = re.compile("[A-Za-z_][A-Za-z0-9]*(?:[-._]+[A-Za-z][A-Za-z0-9]*)+")  # words of prose or code, joined
_TRAILING = ".,?;:"  # the sentence's, not the credential's


@dataclass(frozen=True, slots=True)
class Secret:
    """What looks like a credential: its `kind`, and where it stands, counted in characters."""

    kind: str
    start: int
    end: int


def find_secrets(text: str) -> list[Secret]:
    """What looks like credentials in a text, in order, without overlaps. The time it takes grows with the length.

    Tokens of known forms, private keys, passwords in URLs, and what is called a password or a key, in English and
    Chinese. The neighbours of a credential do not hide it, be they Chinese characters or full-width signs. It is a net
    with holes: that nothing is found proves nothing.
    """
    wide = text if checked_argument("text", text, str).isascii() else _WIDE_RUN.sub(_narrowed, text)
    wide = _EMPHASIS.sub(lambda word: " " * len(word[1]) + word[2] + " " * len(word[1]), wide)
    ascii_text = _spaced(wide)
    found = sorted([*_detected(ascii_text), *_of_forms(ascii_text), *_told(wide)], key=lambda e: (e.start, -e.end))
    masked = deque(each.span() for each in _PLACEHOLDER.finditer(text))
    kept: list[Secret] = []
    for each in found:
        while masked and masked[0][1] <= each.start:
            masked.popleft()
        if (not kept or each.start >= kept[-1].end) and not (masked and masked[0][0] < each.end):
            kept.append(each)
    return kept


def mask_secrets(text: str) -> str:
    """The text with `[secret: kind]` in the place of each credential. A masked text stays as it is."""
    for _ in range(_PASSES):
        found = find_secrets(text)
        if not found:
            break
        parts, end = [], 0
        for each in found:
            parts += [text[end : each.start], f"[secret: {each.kind}]"]
            end = each.end
        text = "".join([*parts, text[end:]])
    return text


def admit(text: str, policy: SecretsPolicy, *, subject: str) -> str:
    """The text to keep under a policy. `invalid_text` if it is refused. `subject` begins the sentence that says so.

    Neither the log nor the refusal says what was found, only of which kinds.
    """
    if policy == "off":
        return text
    if policy == "mask":
        return mask_secrets(text)
    found = find_secrets(text)
    if not found:
        return text
    kinds = ", ".join(sorted({each.kind for each in found}))
    if policy == "refuse":
        raise MemoryStoreError(
            "invalid_text",
            f"{subject} seems to hold a credential ({kinds}), which memory does not keep; nothing changed. Leave it "
            "out, or name where it is kept.",
        )
    _LOG.warning("%s seems to hold a credential (%s); it is kept as it is", subject, kinds)
    return text


def check_policy(policy: object) -> SecretsPolicy:
    """The policy itself; `ValueError` for what is none."""
    for known in get_args(SecretsPolicy):
        if policy == known:
            return known  # type: ignore[no-any-return]  # `get_args` forgets the literals
    raise ValueError(f"A policy for secrets is one of {', '.join(get_args(SecretsPolicy))}, not {policy!r}.")


def _narrowed(run: re.Match[str]) -> str:
    return _NARROW.get(run[0]) or run[0].translate(_WIDE)  # most often it is one comma or full stop


def _spaced(text: str) -> str:
    """The text with a space in the place of each character beyond ASCII that is seen."""
    if text.isascii():
        return text
    if "\0" in text or any(each in text for each in _INVISIBLE):
        return _NOT_ASCII.sub(lambda run: " " * len(run[0]), text)
    # A codec is ten times as fast, and marks what it cannot write with "?".
    marked = text.replace("?", "\0").encode("ascii", "replace")
    return marked.replace(b"?", b" ").replace(b"\0", b"?").decode("ascii")


def _detected(text: str) -> Iterator[Secret]:
    if text.count("eyJ") > _MANY:  # the detector's time grows with the square of what could begin a JWT
        text = _INNER_JWT.sub("eyk", text)
    limits = redact_secret.WholeInputLimits(max_input_bytes=4 * len(text) + 1, max_findings=len(text) + 1)
    for each in redact_secret.scan(text, limits=limits):
        if not set(text[each.start : each.end]) <= {"*"}:
            yield Secret(each.type, each.start, each.end)


def _of_forms(text: str) -> Iterator[Secret]:
    for kind, form, introduced in _FINDERS:
        for each in form.finditer(text):
            start, end = each.span(1)
            if introduced or start == 0 or text[start - 1] not in _NAME:
                yield Secret(kind, start, end)
    for tail in _ZHIPU_TAIL.finditer(text):
        start = tail.start() - 32
        if _ZHIPU_HEAD.match(text, max(start, 0), tail.start()) and (start == 0 or text[start - 1] not in _NAME):
            yield Secret("zhipu_api_key", start, tail.end())


def _told(text: str) -> Iterator[Secret]:
    """What a sentence calls a password or a key: "the password is required" tells none."""
    lower = text.replace("İ", "i").lower()  # of all characters, only this one would grow
    if not any(stem in lower for stem in _STEMS):
        return
    for keyword in _KEYWORD.finditer(lower):
        told = _TOLD.match(text, keyword.end())
        if told is None:
            continue
        value = told["value"].rstrip(_TRAILING)
        if _plausible(value, password=keyword[0] in _PASSWORDS):
            yield Secret(
                "password" if keyword[0] in _PASSWORDS else "key", told.start("value"), told.start("value") + len(value)
            )


def _plausible(value: str, *, password: bool) -> bool:
    if _NAMED.match(value) or _NAMES.fullmatch(value) or not any(map(str.isalnum, value)):
        return False
    digits = any(map(str.isdecimal, value))
    if password:
        return (digits and len(value) >= 6) or (len(value) >= 8 and any(each in "!@#$%^&*" for each in value))
    return digits and len(value) >= 8 and not value.isdecimal()
