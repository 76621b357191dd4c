"""Credentials are found whatever stands next to them, and ordinary sentences hold none."""

from __future__ import annotations

import logging
import random
import re
import string
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from memshelf import credentials
from memshelf.credentials import admit, check_policy, find_secrets, mask_secrets
from memshelf.errors import MemoryStoreError

_RANDOM = random.Random(20)
_HEX, _UPPER = "0123456789abcdef", string.ascii_uppercase + string.digits
_BASE32 = string.ascii_lowercase + "234567"


def _made(length: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    return "".join(_RANDOM.choice(alphabet) for _ in range(length))


_UUID = "-".join(_made(length, _HEX) for length in (8, 4, 4, 4, 12))
TOKENS = {  # made up here, so that no scanner of this repository takes them for real ones
    "openai": f"sk-proj-{_made(74)}T3BlbkFJ{_made(74)}",
    "openai, without its mark": f"sk-proj-Zk3v{_made(40)}",
    "openai, of a service account": f"sk-svcacct-Q7{_made(20)}-{_made(30)}_x",
    "memshelf, of a workspace": f"msk_{_made(48, _BASE32)}",
    "memshelf, of a session": f"mst_{_made(48, _BASE32)}",
    "an sk- key": f"sk-{_made(48)}",
    "deepseek": f"sk-{_made(32, _HEX)}",
    "zhipu": f"{_made(32, _HEX)}.{_made(16)}",
    "anthropic": f"sk-ant-api03-{_made(93)}AA",
    "aws": f"AKIA{_made(16, string.ascii_uppercase + '234567')}",
    "alibaba": f"LTAI{_made(20)}",
    "tencent": f"AKID{_made(32)}",
    "github": f"ghp_{_made(36)}",
    "gitlab": f"glpat-{_made(20)}",
    "slack": f"xoxb-{_made(12, string.digits)}-{_made(12, string.digits)}-{_made(24)}",
    "stripe": f"sk_live_{_made(24)}",
    "google": f"AIza{_made(35)}",
    "huggingface": f"hf_{_made(34, string.ascii_letters)}",
    "npm": f"npm_{_made(36)}",
    "sendgrid": f"SG.{_made(22)}.{_made(43)}",
    "age": f"AGE-SECRET-KEY-1{_made(58, 'QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L')}",
    "a JWT": f"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.{_made(43)}",
    "a private key": f"-----BEGIN RSA PRIVATE KEY-----\n{_made(64)}\n{_made(64)}\n-----END RSA PRIVATE KEY-----",
}
TOLD = {  # a sentence, and the credential in it
    "postgres://admin:{}@db.internal:5432/app": _made(14),
    "Authorization: Bearer {}": _made(40),
    "AccountKey={};EndpointSuffix=core.windows.net": f"{_made(86)}==",
    "https://hooks.slack.com/services/{}": f"T{_made(8, _UPPER)}/B{_made(8, _UPPER)}/{_made(24)}",
    "https://open.feishu.cn/open-apis/bot/v2/hook/{}": _UUID,
    "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key={}": _UUID,
    "https://oapi.dingtalk.com/robot/send?access_token={}": _made(64, _HEX),
    "password: {}": "Tr0ub4dor&3x!",
    "DB_PASSWORD={}": "hunter2horse99",
    'api_key="{}"': _made(32),
    "pwd: {}": "Zx9#kdo2Lq",
    "My password is {}": "Abc12345!x",
    "the API key is {}.": f"7{_made(31, _HEX)}",
    "密码：{}": "Abc12345x",
    "密码是{}": "Zx9#kdo2Lq",
    "我的密码就是 {}，别忘了": "hunter2025",
    "WiFi密码：{}。": "88888888",
    "口令为“{}”": "qwerty2026",
    "密码改成 {} 了": "P@ssw0rd",
    "API key是{}": f"7{_made(31, _HEX)}",
    "令牌＝{}": f"7{_made(23)}",
    "密钥: {}": f"7{_made(39)}",
}
AROUND = [
    "{}",
    "Please keep {} for me.",
    "我的是{}请保存",
    "（{}）",
    "「{}」，记住它。",
    "用户说：{}！",
    "\u3000{}\u3000",
    "日本語{}한국어",
]

ORDINARY = """\
The user forgot her password twice this week and prefers a password manager.
Password: must have at least 12 characters and one digit.
My password is too short, the site says.
The password is required, and it is case-sensitive.
The password is at least 12 characters long.
Reset your password: click the link in the email.
The API key is rotated every 90 days; ask Lena for the new one.
The API key is stored in the team's vault, not in the repository.
Secrets of good green tea: 80 degrees and two minutes.
Token count: 4096, budget 128000.
The token limit is 128000 tokens for this model.
token = tokenizer.next()
token = get_token_v2(request)
password = getpass.getpass("Password: ")
password = os.environ["DB_PASSWORD"]
password = config.db2_password
api_key = settings.OPENAI_API_KEY
client = OpenAI(api_key=os.getenv("OPENAI_API_KEY"))
def authenticate(user, password: str) -> Token:
self.secret = secret
key: value pairs are separated by a colon
The commit 3f786850e387550fdab836ed7e6dc881de23001b fixed it.
sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
uuid 550e8400-e29b-41d4-a716-446655440000 is the order id
See https://example.com/a/b?token_type=bearer&lang=en for the docs.
postgres://localhost:5432/app is the dev database
https://user@example.com/repo.git
sk-learn is the nickname of scikit-learn
task-management-system-for-our-little-team
risk-assessment-of-the-new-supplier-in-the-north
Authorization: Bearer <token>
Authorization: Bearer YOUR_TOKEN_HERE
password: ********
password=<your-password>
api_key: ${API_KEY}
The password policy (see section 4.2) requires rotation.
Use pwd to print the working directory: /home/user/project
pwd: /home/user2/project
The token bucket: capacity 100, refill 10/s
Her secret is that she sings.
The secret is that 3 spoons suffice.
The access key opens the back door of the office
Passphrase: a sentence of several words is better than one word
credentials = Credentials.from_service_account_file(path)
"password": null
const secret = crypto.randomBytes(32)
SECRET_KEY is read from the environment
SessionLog(session_id="my-session-001")
The branch is sk-proj-rename-all-the-fields-of-the-2026-report-template
OPENAI_API_KEY=sk-proj-...
MEMSHELF_KEY=msk_...
msk_kubeconfig_for_the_kafka_cluster_in_the_north_of_the_country
mem_01JABCDEFGHJKMNPQRSTVWXYZ0
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4
import { useToken } from '@/hooks/use-token-refresh-on-mount'
API: key points of the design
password: str = Field(min_length=8)
if token == expected_token:
token: Annotated[str, Header()]
The secret key to success: practice
The bearer of this letter is a friend
Call +49 170 1234567 or write to lena@example.com before 2026-11-30.
The release is v2.14.0-rc.3+build.20261130, tagged on Friday.
密码忘记了，需要重置。
用户的密码是三个月换一次。
密码：请联系管理员获取
密码是必填项，长度至少八位。
密码：8-16位，包含字母和数字
密码是SHA256哈希后存储的
密码为UTF-8编码的字符串
密钥是RSA2048位的
密钥轮换周期为90天
密钥：https://example.com/docs/keys-2026
令牌数量：4096
令牌是一次性的，5分钟后失效
token数：128000，预算充足
请把 API key 放到环境变量里，不要写在代码里。
api_key：从控制台复制
订单号是20240315001234567890
身份证后四位是1234，车牌浙A12345
会议密码：无
他的口令是“天王盖地虎”
口令：芝麻开门
WiFi 密码贴在冰箱上
secret: 老板喜欢喝绿茶
这个秘密：周末去西湖
用户喜欢绿茶，每天早上七点半起床，周五不部署。
私钥保存在硬件密钥里，由小王保管。
凭证：报销单2026-11号
他住在杭州市西湖区文三路478号，电话0571-88886666。
"""


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("name", TOKENS)
def test_a_token_is_masked_whatever_stands_next_to_it(name, around):
    assert "[secret: " in (masked := mask_secrets(around.format(TOKENS[name])))
    start, end = around.split("{}")
    assert masked.startswith(start)
    assert masked.endswith(end)
    assert max(TOKENS[name].split(), key=len) not in masked


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("sentence", TOLD)
def test_what_a_sentence_calls_a_credential_is_masked_and_the_sentence_stays(sentence, around):
    text = around.format(sentence.format(TOLD[sentence]))
    masked = mask_secrets(text)
    assert TOLD[sentence] not in masked
    before, after = around.format(sentence).split("{}")
    assert masked.startswith(before)
    assert masked.endswith((after, "]"))  # of a sentence that ends with an exclamation mark, that may go too


@pytest.mark.parametrize("name", sorted(TOKENS.keys() - {"a private key"}))
@pytest.mark.parametrize("around", ["_{}_", "__{}__", "see ___{}___, please", "密钥_{}_在此", "(_{}_)"])
def test_a_token_that_markdown_emphasises_is_masked(name, around):
    masked = mask_secrets(around.format(TOKENS[name]))
    before, after = around.split("{}")
    assert masked.startswith(before)
    assert masked.endswith(after)
    assert TOKENS[name] not in masked


def test_ordinary_sentences_hold_no_credentials():
    lines = ORDINARY.splitlines()
    assert len(lines) > 85
    assert [(line, find_secrets(line)) for line in lines if find_secrets(line)] == []
    assert find_secrets(ORDINARY) == []


def test_a_masked_text_stays_as_it_is():
    text = "\n".join([*TOKENS.values(), *(sentence.format(secret) for sentence, secret in TOLD.items())])
    masked = mask_secrets(text)
    assert masked.count("[secret: ") >= len(TOKENS) + len(TOLD)
    assert mask_secrets(masked) == masked


def test_a_placeholder_is_no_credential_whatever_stands_before_it():
    for text in (
        "password=[secret: key]",
        "密码：[secret: aws_access_key_id]",
        "https://x/?access_token=y[secret: jwt] z",
    ):
        assert mask_secrets(text) == text


def test_what_is_glued_to_a_credential_is_masked_with_it():
    assert mask_secrets(TOKENS["npm"] + TOKENS["a private key"]) == "[secret: npm_access_token][secret: private_key]"


def test_random_pieces_put_together_are_masked_for_good():
    chance = random.Random(3)
    pieces = [*TOKENS.values(), *(sentence.format(secret) for sentence, secret in TOLD.items()), *ORDINARY.splitlines()]
    pieces += [
        "password",
        "密码是",
        ":",
        "：",
        "=",
        " ",
        "\n",
        '"',
        "[secret: key]",
        "[secret:",
        "\u200b",
        "\ud800",
        "İ",
        "@",
        "！",
    ]
    for _ in range(1_000):
        text = "".join(chance.choice(pieces) for _ in range(chance.randint(1, 6)))
        found = find_secrets(text)
        assert all(one.end <= other.start for one, other in pairwise(found))
        masked = mask_secrets(text)
        assert mask_secrets(masked) == masked


def _without_shortcuts(text, monkeypatch):
    """What is found when every rule looks at the whole text, whether or not something rules it out beforehand."""
    zhipu = ("zhipu_api_key", re.compile(rf"([0-9a-f]{{32}}\.[A-Za-z0-9]{{16}}){credentials._AFTER}"), False)
    with monkeypatch.context() as patched:
        patched.setattr(credentials, "_STEMS", ("",))
        patched.setattr(credentials, "_NARROW", {})
        patched.setattr(
            credentials, "_spaced", lambda wide: credentials._NOT_ASCII.sub(lambda run: " " * len(run[0]), wide)
        )
        patched.setattr(credentials, "_ZHIPU_TAIL", re.compile("(?!)"))
        patched.setattr(credentials, "_FINDERS", [*credentials._FINDERS, zhipu])
        return find_secrets(text)


def test_no_shortcut_hides_a_credential(monkeypatch):
    pieces = [*TOKENS.values(), *(sentence.format(value) for sentence, value in TOLD.items())]
    pieces += [
        *"?\0\u200b\ufeff\u0130\u0131\u017f\u212a！．＿_-*.。 \n\u3000\ud800é😀\x85",
        "密码是",
        "PWD: ",
        "Api-Key: ",
        "令牌",
    ]
    pieces += [
        "0" * 31,
        "0123456789abcdef" * 2,
        "." + "a" * 16,
        "." + "A" * 15,
        "０１２３４５６７８９ａｂｃｄｅｆ" * 2,
        "eyJ",
    ]
    rng, with_secrets = random.Random(7), 0
    for _ in range(4_000):
        chosen = [rng.choice(pieces) for _ in range(rng.randrange(1, 9))]
        text = "".join(each if rng.random() < 0.8 else each[rng.randrange(len(each) + 1) :] for each in chosen)
        found = find_secrets(text)
        assert found == _without_shortcuts(text, monkeypatch), ascii(text)
        with_secrets += bool(found)
    assert 1_000 < with_secrets < 3_900  # both kinds of texts were tried


def test_places_are_counted_in_characters():
    token = TOKENS["github"]
    text = f"👩‍👩‍👧 密钥\ud800：{token}。"
    (found,) = find_secrets(text)
    assert text[found.start : found.end] == token
    assert found.kind == "github_token"


def test_a_token_written_in_full_width_letters_is_found():
    wide = "".join(chr(ord(each) - ord("!") + ord("！")) for each in TOKENS["github"])
    assert mask_secrets(f"密钥：{wide}。") == "密钥：[secret: github_token]。"


@pytest.mark.parametrize("beside", ["", "\0", "\u200b"], ids=["alone", "beside NUL", "beside an invisible character"])
def test_characters_beyond_ascii_and_question_marks_hide_no_token(beside):
    token = TOKENS["github"]
    text = f"真的？{token}，?{token}?{beside}é{token}🎉"
    assert [(each.start, each.end) for each in find_secrets(text)] == [
        (at, at + len(token)) for at in range(len(text)) if text.startswith(token, at)
    ]


def test_every_word_for_a_credential_has_one_of_the_stems_that_are_looked_for_first():
    assert all(
        any(stem in keyword for stem in credentials._STEMS) for keyword in credentials._PASSWORDS + credentials._KEYS
    )


def test_a_token_broken_by_invisible_characters_is_found():
    token = TOKENS["github"]
    assert mask_secrets(f"密钥{token[:12]}\u200b{token[12:]}") == "密钥[secret: github_token]"


def test_what_is_not_a_whole_token_is_left_alone():
    for text in ("", "x" + TOKENS["deepseek"], TOKENS["deepseek"] + "f", "LTAI", "sk-", "密码是", "password is"):
        assert mask_secrets(text) == text


@pytest.mark.parametrize(
    "unit", ["eyJ", "eyJhbGciOi", "密码是", "password is ", "LTAI", "a", "密", "0", "！", "ab。", "密码是Abc12345x ",
             "sk-proj-", "sk-proj-A1", "msk_",
             "://", "sk-", '"', "-----BEGIN PRIVATE KEY-----\n", "?token=/", "AccountKey=/"],
)  # fmt: skip
def test_a_hostile_text_of_100_kilobytes_costs_little(unit):
    text = unit * (100_000 // len(unit))
    find_secrets(text[:1000])
    start = time.process_time()
    find_secrets(text)
    assert time.process_time() - start < 1  # what grows with the square of it takes several


def test_an_ordinary_text_of_2000_characters_takes_under_a_millisecond():
    for text in ("The user likes green tea. " * 77, "用户喜欢绿茶，周五不部署。" * 154):
        find_secrets(text)
        times = []
        for _ in range(20):
            start = time.perf_counter()
            find_secrets(text[:2000])
            times.append(time.perf_counter() - start)
        assert min(times) < 0.001


def test_threads_may_look_at_the_same_time():
    texts = [around.format(token) for around in AROUND for token in TOKENS.values()] * 5
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(mask_secrets, texts)) == [mask_secrets(text) for text in texts]


# Policies


def test_the_policy_decides_what_is_kept(caplog):
    caplog.set_level(logging.DEBUG, "memshelf")
    text = f"密钥：{TOKENS['github']}"
    assert admit(text, "off", subject="A record") == text
    assert caplog.messages == []
    assert admit(text, "warn", subject="A record") == text
    assert caplog.messages == ["A record seems to hold a credential (github_token); it is kept as it is"]
    assert admit(text, "mask", subject="A record") == "密钥：[secret: github_token]"
    with pytest.raises(MemoryStoreError) as refusal:
        admit(text, "refuse", subject="A record")
    assert refusal.value.code == "invalid_text"
    assert "github_token" in refusal.value.message
    assert TOKENS["github"] not in refusal.value.message + caplog.text


def test_a_text_without_credentials_passes_every_policy(caplog):
    for policy in ("off", "warn", "mask", "refuse"):
        assert admit("用户喜欢绿茶", policy, subject="A record") == "用户喜欢绿茶"
    assert caplog.messages == []


def test_a_policy_that_does_not_exist_is_refused():
    assert check_policy("mask") == "mask"
    with pytest.raises(ValueError, match="off, warn, mask, refuse"):
        check_policy("hide")
