# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The message of an error."""

from __future__ import annotations

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.formatting import (
    printable_data,
)


def test_message_contains_no_escape_sequence() -> None:
    error = ValidationFailed(attempted="a\x1b[31m", answer="b\x9b0m\x07\r", next_step="c\x08")
    assert error.message == "a\ufffd[31m: b\ufffd0m\ufffd. c\ufffd."


def test_printable_data() -> None:
    """Tabs and line ends stay, so that a text of several lines is unchanged."""
    value = {"k\x1b": ["a\r\nb\tc\n", ("d\re", 7, None)]}
    assert printable_data(value) == {"k\ufffd": ["a\r\nb\tc\n", ("d\ufffde", 7, None)]}


def test_a_question_gets_no_full_stop() -> None:
    error = ValidationFailed(
        attempted="cpu was refused", answer="'hots' is unknown.", next_step="Did you mean 'host'?"
    )
    assert error.message == "cpu was refused: 'hots' is unknown. Did you mean 'host'?"


def test_a_sentence_begins_with_a_capital() -> None:
    error = ValidationFailed(attempted="container 'web' was refused", answer="it is one")
    assert error.message == "Container 'web' was refused: it is one."
    for name in ("containers[0] was refused", "memory '12X' was refused"):
        assert ValidationFailed(attempted=name).message == f"{name}."
