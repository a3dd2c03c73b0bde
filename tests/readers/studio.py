#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Looks at a studio as a browser does: studio.py ADDRESS PAGE

The page that it sends has to be the file PAGE. Prints width, height and number of regions of the first frame on the socket.
"""

import json
import socket
import sys
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

# Emulated studios take their time.
PATIENCE = 120


def exactly(stream, length):
    data = stream.read(length)
    if len(data) != length:
        sys.exit("the studio has closed the socket")
    return data


def messages(stream):
    """Opcode and content of each message; a server's are not masked."""
    opcode, content = 0, b""
    while True:
        first, length = exactly(stream, 2)
        if length >= 126:
            length = int.from_bytes(exactly(stream, 2 if length == 126 else 8), "big")
        # A message in parts has its opcode in the first.
        opcode = first & 15 or opcode
        content += exactly(stream, length)
        if first & 128:
            yield opcode, content
            content = b""


def first_frame(host):
    """The head of the first frame, which is the first binary message."""
    with socket.create_connection(host.split(":"), PATIENCE) as connection:
        ask = f"GET /socket HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        ask += "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: c3VwZXJwaXhlbC1zdHVkaQ==\r\n\r\n"
        connection.sendall(ask.encode())
        stream = connection.makefile("rb")
        status = stream.readline()
        if b" 101 " not in status:
            sys.exit(f"no socket: {status}")
        while stream.readline() != b"\r\n":
            pass
        message = next(content for opcode, content in messages(stream) if opcode == 2)
        length = int.from_bytes(message[:4], "little")
        return json.loads(message[4 : 4 + length])


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with urllib.request.urlopen(sys.argv[1], timeout=PATIENCE) as answer:
        if answer.read() != Path(sys.argv[2]).read_bytes():
            sys.exit("another page")
    side = first_frame(urlsplit(sys.argv[1]).netloc)["sides"][0]
    print(side["width"], side["height"], side["regions"])


if __name__ == "__main__":
    main()
