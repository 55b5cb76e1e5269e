# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The decision of a list of rules about a packet (pure)."""

from __future__ import annotations

from collections.abc import Sequence

from .match import is_match
from .model import ACCEPT, DROP, UNKNOWN, EvaluatedRule, Packet, PacketVerdict


def decide(links: Sequence[EvaluatedRule], packet: Packet) -> PacketVerdict:
    """Return the decision of the first rule that matches; an empty list accepts.

    The verdict is UNKNOWN if an earlier rule may match and would decide differently.
    """
    uncertain: list[EvaluatedRule] = []
    for link in links:
        answer = is_match(link, packet)
        if answer is None:
            uncertain.append(link)
        if not answer:
            continue
        for one in uncertain:
            if one.rule.accepts != link.rule.accepts:
                return PacketVerdict(UNKNOWN, one)
        return PacketVerdict(ACCEPT if link.rule.accepts else DROP, link)
    return PacketVerdict(ACCEPT)
