"""What an adapter needs of the network: one POST, answered by status, headers and bytes.

httpx_transport.py is the one over httpx2. The Worker may bring its own, and the AI binding's answers have this form
too."""

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

from edge_agent.core.errors import EdgeAgentError


class TransportError(EdgeAgentError):
    """No connection, or one that broke. Its message holds no header, no key and no query. `sent`: the request was on
    its way already, so that it may be counted."""

    def __init__(self, message: str, *, sent: bool = False) -> None:
        super().__init__(message)
        self.sent = sent


class Reply(Protocol):
    """An answer whose body is still under way. Header names are in lower case."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...

    def chunks(self) -> AsyncIterator[bytes]:
        """The body, content encodings undone, in pieces as they arrive; what arrived together should come together.
        Raises TransportError when the connection breaks before the end. May be cancelled at any await. Asked for
        once."""
        ...

    async def close(self) -> None:
        """Closes the connection if the body is not at its end: the provider sees it and stops. May be called again.
        Never raises."""
        ...


class Transport(Protocol):
    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """Returns when the headers have come; whatever the status says. Follows no redirect (a key is for one host) and
        sets no time limit. Raises TransportError. Cancelling it closes the connection."""
        ...
