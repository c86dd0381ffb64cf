"""What must never become a lesson, and what may; and no text takes long to look through."""

import time

import pytest

from edge_agent.tools.secret_patterns import KINDS, secrets_in
from tests.conftest import Figure

HEX, WORD = "0123456789abcdef" * 4, "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3hJ5kL7nP9rS1uV3xY5"
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP"
SECRETS = {
    "private key": "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIE",
    "PuTTY private key": "PuTTY-User-Key-File-3: ssh-ed25519",
    "age secret key": f"AGE-SECRET-KEY-1{WORD.upper()}",
    "AWS access key": "AKIA" + "IOSFODNN7EXAMPLE",
    "AWS secret key": "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "GitHub token": f"ghp_{WORD[:36]}",
    "GitHub fine-grained token": f"github_pat_{WORD}",
    "GitLab token": f"glpat-{WORD[:20]}",
    "Slack token": "xoxb-" + "2345678901-abcdefghij",
    "Slack app token": "xapp-" + "1-A0123456789-abcdef",
    "Slack webhook": "https://hooks.slack.com/services/" + "T00000000/B00000000/abcdefgh",
    "Discord webhook": f"https://discord.com/api/webhooks/123456789012345678/{WORD}",
    "OpenAI key": f"sk-proj-{WORD}",
    "Anthropic key": f"sk-ant-api03-{WORD}",
    "secret key with sk-": f"sk-{WORD[:40]}",
    "OpenRouter key": f"sk-or-v1-{HEX}",
    "Google API key": f"AIza{WORD[:35]}",
    "Google OAuth secret": f"GOCSPX-{WORD[:28]}",
    "Google OAuth token": f"ya29.{WORD}",
    "Google service account": f'{{"private_key_id": "{HEX[:40]}"}}',
    "Stripe key": f"sk_live_{WORD[:24]}",
    "Stripe webhook secret": f"whsec_{WORD[:32]}",
    "Hugging Face token": f"hf_{LETTERS[:34]}",
    "Groq key": f"gsk_{WORD}",
    "xAI key": f"xai-{WORD}",
    "npm token": f"npm_{WORD[:36]}",
    "PyPI token": f"pypi-{WORD}{WORD}",
    "SendGrid key": f"SG.{WORD[:22]}.{WORD[:43]}",
    "Twilio key": f"SK{HEX[:32]}",
    "Mailgun key": f"key-{HEX[:32]}",
    "DigitalOcean token": f"dop_v1_{HEX}",
    "Shopify token": f"shpat_{HEX[:32]}",
    "Telegram bot token": f"123456789:AA{WORD[:33]}",
    "Linear key": f"lin_api_{WORD[:40]}",
    "Notion token": f"ntn_{WORD[:46]}",
    "Databricks token": f"dapi{HEX[:32]}",
    "Vault token": f"hvs.{WORD}",
    "Cloudflare token": f"CLOUDFLARE_API_TOKEN={WORD[:40]}",
    "Azure storage key": f"AccountKey={WORD}{WORD[:35]}==",
    "JSON web token": f"eyJ{WORD}.eyJ{WORD}.{WORD}",
    "authorization header": "Authorization: Bearer abcdef0123456789",
    "password in a URL": "postgres://admin:hunter2@db.example.com/x",
    "assigned secret": "db_password = hunter2hunter2",
}
HARMLESS = """The tool answers in cm.
Use sk-learn for the model; pip install scikit-learn.
Set OPENAI_API_KEY to your own key.
Send `Authorization: Bearer <token>` with each request.
Send the header Authorization: Bearer $TOKEN.
Set password=${DB_PASSWORD} in the environment.
api_key = os.environ["API_KEY"]
api_key: your-api-key-1
The commit 3f785a1b2c3d4e5f60718293a4b5c6d7e8f90a1b broke it.
sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0bd8d9e
The id is 123e4567-e89b-12d3-a456-426614174000.
Passwords are checked on the second page.
A token has at most 128 000 tokens of context.
The access token expires after an hour; refresh it.
Call GET /v1/tokens?limit=10 first.
The key of the dictionary is `name`.
Keys are sorted: key-value pairs come first.
The secret is to wait for the banner.
Use https://user@example.com/path without a password.
Visit https://docs.example.com/a:b@c.
git@github.com:owner/repo.git is the remote.
ssh://git@github.com/owner/repo is the same.
Ratio 16:9, time 12:30, verse 3:16.
Images must be JPEG, at most 2048x2048.
Skip row 1, it holds the header.
SG is the country code of Singapore.
AKIA is how such keys begin.
A JWT begins with eyJ.
The prefix ghp_ marks a personal token.
xoxb- tokens are for bots.
PEM files begin with BEGIN CERTIFICATE.
-----BEGIN CERTIFICATE-----
-----BEGIN PUBLIC KEY-----
Set max_tokens=4096 and temperature=0.2.
token_count = 123456789
The password field is called passwd.
password: <your password>
client_secret={{ secrets.CLIENT_SECRET }}
Base64 of hello is aGVsbG8=.
data:image/png;base64,iVBORw0KGgo is a picture.
UUIDs without hyphens have 32 characters.
SKU 12345678901234567890 is out of stock.
Use npm_config_registry for the mirror.
pypi-server is a small index.
hf_hub_download fetches a model.
The xai-library explains models.
Ask whsec for its documentation.
dop_v1_ is the prefix of DigitalOcean.
Bearer of good news: it works.
Größe und Länge stehen in Zeile 3.
日本語のメモ、形式はJPEG。
secret_key is read from the vault at start.""".splitlines()


@pytest.mark.parametrize("kind", KINDS)
def test_a_secret_is_found_by_its_kind(kind: str) -> None:
    assert kind in list(secrets_in(f"Use this: {SECRETS[kind]} and go on."))


@pytest.mark.parametrize("text", HARMLESS)
def test_a_harmless_text_passes(text: str) -> None:
    assert list(secrets_in(text)) == []


def test_a_secret_of_the_deployment_is_found_whatever_it_looks_like() -> None:
    assert list(secrets_in("say open sesame", ("open sesame",))) == ["secret of this deployment"]


def test_there_are_enough_of_both(figure: Figure) -> None:
    assert set(SECRETS) == set(KINDS)
    assert len(KINDS) >= 25
    assert len(HARMLESS) >= 50
    figure(f"{len(KINDS)} kinds of secrets refused, {len(HARMLESS)} harmless texts pass")


def test_no_text_takes_more_than_time_in_step_with_its_length(figure: Figure) -> None:
    """The worst each pattern meets: its own beginning, over and over, at twice the length of a lesson and then ten
    times as long. A pattern that tried every way through would not come back."""
    bad = [f"{start[:cut]}" * (60_000 // cut) for start in SECRETS.values() for cut in (4, len(start) - 1)]
    bad += ["a" * 60_000, "a-" * 30_000, "a:" * 30_000, "aws secret " * 6_000, "password" * 8_000, "x://a:" * 10_000]
    began = time.monotonic()
    for text in bad:
        list(secrets_in(text))
    figure(f"{len(bad)} hostile texts of 60 000 characters: {(time.monotonic() - began) / len(bad):.3f} s each")
