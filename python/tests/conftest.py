# SPDX-License-Identifier: MPL-2.0
"""What all tests use."""

import pytest
from picture import rgba


@pytest.fixture(scope="session")
def picture():
    """RGB, 122 rows of 163 pixels."""
    image = rgba(163, 122)[..., :3].copy()
    image.flags.writeable = False
    return image
