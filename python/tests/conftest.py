# SPDX-License-Identifier: MPL-2.0
"""Fixtures of all tests."""

import driver as drivers
import pytest
from picture import rgba


@pytest.fixture(scope="session")
def picture():
    """RGB, 122 rows of 163 pixels."""
    image = rgba(163, 122)[..., :3].copy()
    image.flags.writeable = False
    return image


@pytest.fixture(scope="session")
def driver():
    """A CUDA device."""
    return drivers.driver()


@pytest.fixture(params=drivers.KINDS)
def kind(request):
    """How arrays say where they are."""
    return drivers.KINDS[request.param]


@pytest.fixture
def lazy(monkeypatch):
    """The emulated device does its work when somebody waits for it."""
    monkeypatch.setenv("EMULATOR_LAZY", "1")
