"""What looks like a secret does not leave in an export."""

from typing import Any

import pytest

from ahpkit.cli.session_documents import HIDDEN, Redactor


def cleaned(value: Any, **environment: str) -> Any:
    return Redactor(environment).clean(value)


@pytest.mark.parametrize(
    "secret",
    [
        "sk-" + "abcd1234" * 4,
        "ghp_" + "A1b2" * 9,
        "github_pat_" + "A1b2" * 9,
        "AKIA" + "ABCD1234EFGH5678",
        "xoxb-" + "1234567890-abc",
        "hf_" + "abcDEF12" * 4,
        "whsec_" + "abcDEF12" * 4,
        "gsk_" + "abcDEF12" * 6,
        "dop_v1_" + "0123abcd" * 8,
        "xai-" + "abcDEF12" * 8,
        "hvs.CAES" + "abcDEF12" * 4,
        "123456789:AA" + "abcDEF12" * 4,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_keys_of_a_known_shape_are_removed(secret: str) -> None:
    assert cleaned(f"use {secret} now") == f"use {HIDDEN} now"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("password=hunter22", f"password={HIDDEN}"),
        ('{"api_key": "abcdef123"}', f'{{"api_key": "{HIDDEN}"}}'),
        ("AccountKey=abcDEF12==", f"AccountKey={HIDDEN}"),
        ("redis://:lovelace@db/1", f"redis://{HIDDEN}@db/1"),
        ("docker login -u ada -p lovelace", f"docker login -u ada -p {HIDDEN}"),
        ("openssl enc -pass pass:lovelace -in x", f"openssl enc -pass pass:{HIDDEN} -in x"),
        ("<db-password>lovelace</db-password>", f"<db-password>{HIDDEN}"),
        ("passphrase: lovelace", f"passphrase: {HIDDEN}"),
        ("DB_PASSWORD: 'long one'", f"DB_PASSWORD: '{HIDDEN}'"),
        ("Authorization: Bearer abc.def.ghi", f"Authorization: Bearer {HIDDEN}"),
        ("postgres://ada:lovelace@db/x", f"postgres://{HIDDEN}@db/x"),
        ('a "{\\"password\\": \\"hunter22\\"}"', f'a "{{\\"password\\": \\"{HIDDEN}\\"}}"'),
        ("Set-Cookie: sid=abc; Path=/\nnext", f"Set-Cookie: {HIDDEN}\nnext"),
        ("deploy --api-token abcdef1 --to live", f"deploy --api-token {HIDDEN} --to live"),
        ("curl -s -u ada:lovelace http://x", f"curl -s -u ada:{HIDDEN} http://x"),
        ("mysql -u ada -plovelace db", f"mysql -u ada -p{HIDDEN} db"),
        ("machine x login ada password lovelace", f"machine x login ada password {HIDDEN}"),
        ("https://x/blob?sv=1&sig=ab%2Fcd12", f"https://x/blob?sv=1&sig={HIDDEN}"),
        ({"password": "pw", "input": {"Cookie": "a=b"}}, {"password": HIDDEN, "input": {"Cookie": HIDDEN}}),
    ],
)
def test_values_that_are_named_as_secrets_are_removed(text: Any, clean: Any) -> None:
    assert cleaned(text) == clean


@pytest.mark.parametrize(
    "text",
    [
        "12 tokens were used",
        "the token bucket",
        "no secret here",
        "sk-short",
        "a: b",
        "docker run -p 8080:80 x",
        "<token> is the token of the host",
        "at 12:30:00",
        "docker run -u 1000:1000 x",
        "Cookie: a biscuit",
    ],
)
def test_words_about_secrets_stay(text: str) -> None:
    assert cleaned(text) == text


def test_values_of_this_environment_are_removed_wherever_they_are_and_counted() -> None:
    redactor = Redactor({"MY_TOKEN": "correct-horse", "EDITOR": "vim-is-great", "A_SECRET": "short"})
    document = {"a": ["say correct-horse twice: correct-horse"], "b": 7, "c": "vim-is-great short"}
    assert redactor.clean(document) == {
        "a": [f"say {HIDDEN} twice: {HIDDEN}"],
        "b": 7,
        "c": "vim-is-great short",
    }
    assert redactor.removed == 2
