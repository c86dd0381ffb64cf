"""One HTTP/1.1 connection of a scripted server, which says when its client has gone."""

import asyncio
from collections.abc import Mapping

Request = tuple[str, str, dict[str, str], bytes]  # method, path, headers, body


class ClientGone(Exception):
    """The client closed its side."""


class Connection:
    """As much of one as a model needs."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def request(self) -> Request | None:
        """Method, path, headers in lower case, body; None when the client is done."""
        try:
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        first, *lines = head.strip().split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        method, path, _ = first.split(" ", 2)
        return method, path, headers, await self.reader.readexactly(int(headers.get("content-length", 0)))

    async def answer(self, status: int, body: bytes, kind: str = "application/json", **more: str) -> None:
        self._head(status, {"content-type": kind, "content-length": str(len(body)), **more})
        self.writer.write(body)
        await self._drain()

    def begin(self, **more: str) -> None:
        self._head(200, {"content-type": "text/event-stream; charset=utf-8", "transfer-encoding": "chunked", **more})

    async def send(self, text: str) -> None:
        data = text.encode()
        self.writer.write(b"%x\r\n%s\r\n" % (len(data), data))
        await self._drain()

    async def end(self) -> None:
        self.writer.write(b"0\r\n\r\n")
        await self._drain()

    async def until_closed(self, seconds: float | None = None) -> None:
        """Waits; raises ClientGone as soon as the client closes. A client that waits for an answer sends nothing."""
        try:
            if await asyncio.wait_for(self.reader.read(1), seconds) == b"":
                raise ClientGone
        except TimeoutError:
            return
        except ConnectionError:
            raise ClientGone from None

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        self.writer.write(f"HTTP/1.1 {status} Scripted\r\n{lines}\r\n".encode())

    async def _drain(self) -> None:
        if self.reader.at_eof() or self.writer.is_closing():
            raise ClientGone
        try:
            await self.writer.drain()
        except ConnectionError:
            raise ClientGone from None
