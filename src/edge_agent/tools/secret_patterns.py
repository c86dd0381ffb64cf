"""What keys, tokens and passwords look like, by kind. Every repetition is bounded, and none stands inside another."""

import re
from collections.abc import Iterator, Mapping, Sequence

# Sources: the formats that the issuers document for scanners.
KINDS: Mapping[str, str] = {
    "private key": r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----",
    "PuTTY private key": r"PuTTY-User-Key-File-\d",
    "age secret key": r"AGE-SECRET-KEY-1[0-9A-Z]{20,80}",
    "AWS access key": r"\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b",
    "AWS secret key": r"(?i)aws.{0,30}?secret.{0,30}?[=:]\s{0,5}[\"']?[A-Za-z0-9/+]{40}\b",
    "GitHub token": r"\bgh[pousr]_[A-Za-z0-9]{30,255}\b",
    "GitHub fine-grained token": r"\bgithub_pat_[A-Za-z0-9_]{30,255}\b",
    "GitLab token": r"\bgl(?:pat|dt|rt|ptt|ft|agent|soat|imt)-[A-Za-z0-9_-]{20,200}",
    "Slack token": r"\bxox[abeoprs]-[A-Za-z0-9-]{10,250}",
    "Slack app token": r"\bxapp-\d-[A-Za-z0-9-]{10,250}",
    "Slack webhook": r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/]{20,200}",
    "Discord webhook": r"discord(?:app)?\.com/api/webhooks/\d{10,25}/[A-Za-z0-9_-]{20,200}",
    "OpenAI key": r"\bsk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,250}",
    "Anthropic key": r"\bsk-ant-[A-Za-z0-9_-]{20,250}",
    "secret key with sk-": r"\bsk-[A-Za-z0-9]{20,250}\b",
    "OpenRouter key": r"\bsk-or-[A-Za-z0-9_-]{20,250}",
    "Google API key": r"\bAIza[0-9A-Za-z_-]{35}",
    "Google OAuth secret": r"\bGOCSPX-[A-Za-z0-9_-]{20,60}",
    "Google OAuth token": r"\bya29\.[A-Za-z0-9_-]{20,500}",
    "Google service account": r"\"private_key_id\"\s{0,5}:\s{0,5}\"[0-9a-f]{40}\"",
    "Stripe key": r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{10,200}",
    "Stripe webhook secret": r"\bwhsec_[A-Za-z0-9+/=]{20,200}",
    "Hugging Face token": r"\bhf_[A-Za-z]{30,60}\b",
    "Groq key": r"\bgsk_[A-Za-z0-9]{30,100}\b",
    "xAI key": r"\bxai-[A-Za-z0-9]{40,120}\b",
    "npm token": r"\bnpm_[A-Za-z0-9]{36}\b",
    "PyPI token": r"\bpypi-[A-Za-z0-9_-]{50,300}",
    "SendGrid key": r"\bSG\.[A-Za-z0-9_-]{16,40}\.[A-Za-z0-9_-]{16,80}",
    "Twilio key": r"\bSK[0-9a-f]{32}\b",
    "Mailgun key": r"\bkey-[0-9a-f]{32}\b",
    "DigitalOcean token": r"\bdo[opr]_v1_[0-9a-f]{64}\b",
    "Shopify token": r"\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}\b",
    "Telegram bot token": r"\b\d{8,10}:AA[A-Za-z0-9_-]{33}",
    "Linear key": r"\blin_api_[A-Za-z0-9]{30,60}\b",
    "Notion token": r"\b(?:ntn_|secret_)[A-Za-z0-9]{40,60}\b",
    "Databricks token": r"\bdapi[0-9a-f]{32}\b",
    "Vault token": r"\bhv[sbr]\.[A-Za-z0-9_-]{20,200}",
    "Cloudflare token": r"(?i)cloudflare.{0,30}?(?:token|key).{0,10}?[=:]\s{0,5}[\"']?[A-Za-z0-9_-]{37,40}\b",
    "Azure storage key": r"(?i)AccountKey=[A-Za-z0-9+/]{60,100}={0,2}",
    "JSON web token": r"\beyJ[A-Za-z0-9_-]{8,2000}\.eyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{8,1000}",
    "authorization header": r"(?i)\b(?:authorization|proxy-authorization)\s{0,5}[:=]\s{0,5}[\"']?"
    r"(?:bearer|basic|token)\s{1,5}(?![<{$\[*x])[A-Za-z0-9._~+/=-]{12,2000}",
    "password in a URL": r"(?i)\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@<>{}$*]{1,100}:(?![<{$*])[^\s/:@<>{}$*]{3,200}@",
    "assigned secret": r"(?i)\b(?:[a-z0-9]{1,20}[_-]){0,4}"
    r"(?:password|passwd|passphrase|api[_-]?key|access[_-]?key|secret[_-]?key|client[_-]?secret|auth[_-]?token|"
    r"access[_-]?token|refresh[_-]?token)[\"']?\s{0,5}[:=]\s{0,5}[\"']?"
    r"(?=[^\s\"']{0,60}\d)(?![<{$\[*(]|your|xxx|example|os\.|process\.|env\b)[^\s\"'<>{}()]{8,200}",
}
_COMPILED = {kind: re.compile(pattern) for kind, pattern in KINDS.items()}


def secrets_in(text: str, declared: Sequence[str] = ()) -> Iterator[str]:
    """The kinds of secrets a text holds; `declared`: values of the deployment that count as well."""
    yield from (kind for kind, pattern in _COMPILED.items() if pattern.search(text))
    if any(value in text for value in declared):
        yield "secret of this deployment"
