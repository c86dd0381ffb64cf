"""Encryption and signatures by the platform's WebCrypto."""

import base64
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import js
from pyodide.ffi import JsException, to_js

from edge_agent.cloudflare.javascript import js_object
from edge_agent.http.run_tokens import hkdf

_INFO = b"edge-agent credentials v1"
_IV = 12  # bytes
_ALGORITHMS: Mapping[str, Mapping[str, str]] = {
    "ES256": {"name": "ECDSA", "namedCurve": "P-256", "hash": "SHA-256"},
    "RS256": {"name": "RSASSA-PKCS1-v1_5", "hash": "SHA-256"},
}


class WebCryptoVault:
    """AES-256-GCM with a fresh nonce for each text, whose name is authenticated with it. `key`: that of run tokens,
    from which this one is derived."""

    def __init__(self, key: Callable[[], Awaitable[bytes]]) -> None:
        self._key = key

    async def seal(self, name: str, text: str) -> str:
        iv = js.crypto.getRandomValues(js.Uint8Array.new(_IV)).to_bytes()
        sealed = await js.crypto.subtle.encrypt(_gcm(iv, name), await self._aes(), to_js(text.encode()))
        return base64.b64encode(iv + sealed.to_bytes()).decode()

    async def open(self, name: str, sealed: str) -> str:
        data = base64.b64decode(sealed)
        try:
            opened = await js.crypto.subtle.decrypt(_gcm(data[:_IV], name), await self._aes(), to_js(data[_IV:]))
        except JsException as error:
            raise ValueError(f"{name} was sealed by another key, or was changed") from error
        return opened.to_bytes().decode()

    async def _aes(self) -> Any:
        material = to_js(hkdf(await self._key(), _INFO))
        return await js.crypto.subtle.importKey("raw", material, "AES-GCM", False, to_js(["encrypt", "decrypt"]))  # noqa: FBT003

    async def sign(self, private_key: str, algorithm: str, data: bytes) -> bytes:
        how = js_object(_ALGORITHMS[algorithm])
        der = base64.b64decode(re.sub(r"-----[^-]+-----|\\n|\s", "", private_key))
        try:
            key = await js.crypto.subtle.importKey("pkcs8", to_js(der), how, False, to_js(["sign"]))  # noqa: FBT003
            signature = await js.crypto.subtle.sign(how, key, to_js(data))
        except JsException as error:
            raise ValueError(f"the private key is no {algorithm} key in PKCS #8") from error
        return signature.to_bytes()


def _gcm(iv: bytes, name: str) -> Any:
    return js_object({"name": "AES-GCM", "iv": to_js(iv), "additionalData": to_js(name.encode())})
