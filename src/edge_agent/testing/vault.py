"""A `Vault` without a platform: it tells who sealed what, and hides nothing."""

import base64
import hmac


class OpenVault:
    """For tests: what is sealed is signed, and readable by anyone."""

    def __init__(self, key: bytes = b"k") -> None:
        self._key = key

    async def seal(self, name: str, text: str) -> str:
        return base64.b64encode(self._mac(name, text) + text.encode()).decode()

    async def open(self, name: str, sealed: str) -> str:
        data = base64.b64decode(sealed)
        text = data[32:].decode()
        if not hmac.compare_digest(data[:32], self._mac(name, text)):
            raise ValueError(f"{name} was sealed by another key, or was changed")
        return text

    async def sign(self, private_key: str, algorithm: str, data: bytes) -> bytes:
        return hmac.digest(private_key.encode(), algorithm.encode() + data, "sha256")

    def _mac(self, name: str, text: str) -> bytes:
        return hmac.digest(self._key, f"{name}\n{text}".encode(), "sha256")
