"""The few lines of the WebSocket protocol (RFC 6455) that a test needs to talk to a browser."""

import base64
import os
import socket
import struct
from urllib.parse import urlsplit

_TEXT, _CLOSE, _PING, _PONG = 1, 8, 9, 10


class WebSocket:
    """A client's connection for text messages. Every wait ends after `timeout_s` with `TimeoutError`."""

    def __init__(self, url: str, timeout_s: float) -> None:
        parts = urlsplit(url)
        self._socket = socket.create_connection((parts.hostname or "", parts.port or 80), timeout_s)
        self._buffer = b""
        key = base64.b64encode(os.urandom(16)).decode()
        self._socket.sendall(
            f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        while b"\r\n\r\n" not in self._buffer:
            self._receive()
        head, self._buffer = self._buffer.split(b"\r\n\r\n", 1)
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise ConnectionError(head.decode(errors="replace"))

    def send(self, message: str) -> None:
        """Send one text message, masked as clients must."""
        self._send_frame(_TEXT, message.encode())

    def receive(self) -> str:
        """The next text message."""
        text = b""
        while True:
            final, code, payload = self._frame()
            if code == _PING:
                self._send_frame(_PONG, payload)
            elif code == _CLOSE:
                raise ConnectionError("the browser closed the connection")
            elif code != _PONG:
                text += payload
                if final:
                    return text.decode()

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def _send_frame(self, code: int, payload: bytes) -> None:
        n, mask = len(payload), os.urandom(4)
        size = struct.pack("!B", 128 | n) if n < 126 else struct.pack("!BQ", 255, n)
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
        self._socket.sendall(bytes([128 | code]) + size + mask + masked)

    def _frame(self) -> tuple[bool, int, bytes]:
        first, second = self._take(2)
        size = second & 127
        if size == 126:
            (size,) = struct.unpack("!H", self._take(2))
        elif size == 127:
            (size,) = struct.unpack("!Q", self._take(8))
        return bool(first & 128), first & 15, self._take(size)

    def _take(self, n: int) -> bytes:
        while len(self._buffer) < n:
            self._receive()
        taken, self._buffer = self._buffer[:n], self._buffer[n:]
        return taken

    def _receive(self) -> None:
        data = self._socket.recv(1 << 16)
        if not data:
            raise ConnectionError("the browser hung up")
        self._buffer += data
