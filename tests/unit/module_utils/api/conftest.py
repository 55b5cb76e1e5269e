# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server that answers from a list."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.certificates import Authority
from tests.scripted import Scripted, serving


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> tuple[Authority, Authority]:
    """The CA of the server, and another one."""
    directory = tmp_path_factory.mktemp("tls")
    return Authority(directory), Authority(directory, "other CA")


@pytest.fixture
def script(certificates: tuple[Authority, Authority]) -> Iterator[Scripted]:
    """A server on 127.0.0.1 that answers `{"data": null}` until it gets other replies."""
    ca, _other = certificates
    with serving(ca.file, [ca.issue("server")]) as script:
        yield script
