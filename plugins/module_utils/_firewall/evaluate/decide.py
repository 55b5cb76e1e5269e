# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The decision of a list of rules about a packet (pure)."""

from __future__ import annotations

from collections.abc import Sequence

from .match import is_match
from .model import ACCEPT, DROP, UNKNOWN, Link, Packet, Verdict


def decide(links: Sequence[Link], packet: Packet) -> Verdict:
    """Return the decision of the first rule that matches; an empty list accepts.

    The verdict is UNKNOWN if an earlier rule may match and would decide differently.
    """
    doubtful: list[Link] = []
    for link in links:
        answer = is_match(link, packet)
        if answer is None:
            doubtful.append(link)
        if not answer:
            continue
        for one in doubtful:
            if one.rule.accepts != link.rule.accepts:
                return Verdict(UNKNOWN, one)
        return Verdict(ACCEPT if link.rule.accepts else DROP, link)
    return Verdict(ACCEPT)
