#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Serves a folder to browsers of this machine and prints its address: serve.py FOLDER PORT (0 = any)"""

import functools
import http.server
import sys


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files, and says nothing of each."""

    def log_message(self, *_: object) -> None:
        pass

    def end_headers(self) -> None:
        # A page that was built anew must not meet files of the last one.
        self.send_header("Cache-Control", "no-cache")
        # Memory that threads share is for pages that others cannot reach into.
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()


def main() -> None:
    folder, port = sys.argv[1], int(sys.argv[2])
    try:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), functools.partial(Quiet, directory=folder))
    except OSError as error:
        sys.exit(f"error: port {port}: {error.strerror}; choose another with --port")
    # Browsers let pages of this name use the camera.
    print(f"http://localhost:{server.server_port}/", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
