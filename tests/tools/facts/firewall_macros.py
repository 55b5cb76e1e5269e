# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes the table of the firewall's macros from src/PVE/Firewall.pm of pve-firewall.

python -m tests.tools.facts.firewall_macros Firewall.pm
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

TARGET = Path(__file__).parents[3] / "plugins/module_utils/_tenants/firewall/evaluate/macros.py"
_HEADER = '''# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The macros of the firewall: protocol, destination and source ports of each of their rules.

Written by tests/tools/facts/firewall_macros.py from Firewall.pm of pve-firewall 6.0.4: do not edit.
"""

from __future__ import annotations

from collections.abc import Mapping

Template = tuple[str, str, str]
'''
_MACRO = re.compile(r"^    '(?P<name>\w+)' => \[(?P<body>.*?)^    \],", re.M | re.S)
_RULE = re.compile(r"\{([^}]*)\}", re.S)
_PAIR = re.compile(r"(\w+) => '?([^',\s]+)'?")


def macros_of(source: str, variable: str) -> dict[str, list[tuple[str, str, str]]]:
    """Return the rules of each macro of one of the tables."""
    begin = source.index(f"my ${variable} = {{")
    table = source[begin : source.index("\n};\n", begin) + 1]
    found = {}
    for macro in _MACRO.finditer(table):
        rules = []
        for body in _RULE.findall(macro["body"]):
            pairs = dict(_PAIR.findall(body))
            known = {"action": "PARAM", "source": "SOURCE", "dest": "DEST"}
            extra = pairs.keys() - {"proto", "dport", "sport"}
            if any(pairs[key] != known.get(key) for key in extra):
                raise ValueError(f"{macro['name']} has {pairs}")
            rules.append((pairs.get("proto", ""), pairs.get("dport", ""), pairs.get("sport", "")))
        found[macro["name"]] = rules
    return found


def text_of(source: str) -> str:
    """Return the file with both tables."""
    lines = [_HEADER]
    for name, variable in (("MACROS", "pve_fw_macros"), ("MACROS_IPV6", "pve_ipv6fw_macros")):
        lines.append(f"{name}: Mapping[str, tuple[Template, ...]] = {{")
        for macro, rules in macros_of(source, variable).items():
            if len(rules) == 1:
                row = ", ".join(f'"{value}"' for value in rules[0])
                lines.append(f'    "{macro}": (({row}),),')
                continue
            lines.append(f'    "{macro}": (')
            for rule in rules:
                row = ", ".join(f'"{value}"' for value in rule)
                lines.append(f"        ({row}),")
            lines.append("    ),")
        lines.append("}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text_of(Path(sys.argv[1]).read_text(encoding="utf-8")), encoding="utf-8")
