#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Writes Debian's copyright file: copyright.py LICENSES, where packaging/bill.py wrote the licenses of the linked libraries."""

import re
import sys
from pathlib import Path

HEAD = """\
superpixel, a GStreamer plugin for superpixel segmentation of video.

Copyright: the superpixel contributors.

License: Mozilla Public License, version 2.0; on Debian systems see /usr/share/common-licenses/MPL-2.0. The plugin holds the
libraries below, each under the license that is named with it. Where a license is the Apache License, version 2.0, its text is in
/usr/share/common-licenses/Apache-2.0.

"""
APACHE = re.compile(r"\n*[^\n]*Apache License\s+Version 2\.0, January 2004.*?END OF TERMS AND CONDITIONS", re.S)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    text = Path(sys.argv[1]).read_text()
    # Debian has this text once for all packages.
    print(HEAD + APACHE.sub("\nApache License, Version 2.0: see /usr/share/common-licenses/Apache-2.0", text))


if __name__ == "__main__":
    main()
