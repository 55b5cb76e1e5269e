# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Estates with containers, run by ansible-playbook against the simulated Proxmox VE."""

from __future__ import annotations

import yaml

from tests.demo.lab import Lab
from tests.plays.provision_helpers import DEPROVISION, PROVISION, Player, diffs, writes

ESTATE = """
tenants:
  acme:
    quota: {vms: 3}
    tags: [prod]
provision_classes:
  small: {cores: 1, memory: 1G}
provision_networks:
  back: {bridge: vmbr0}
provision_storage_classes:
  fast: ceph
provision_defaults:
  tenant: acme
  class: small
  source: debian-13
  default_storage: ceph
provision_vms:
  - {name: db1}
provision_containers:
  - {name: web1, source: debian-13-standard, nics: [{network: back, ip: dhcp}]}
  - {name: web2, source: debian-13-standard, rootfs: {storage_class: fast, size: 4G}}
"""


def test_life_of_an_estate_with_containers(player: Player, lab: Lab) -> None:
    file = player.directory / "estate.yml"
    file.write_text(ESTATE, encoding="utf-8")
    said = ("-e", "@estate.yml", "--diff")
    mark = lab.mark()
    predicted = player.play(PROVISION, *said, "--check").expect()
    assert writes(lab, mark) == []
    first = player.play(PROVISION, *said).expect()
    assert diffs(predicted.output) == diffs(first.output)
    assert "Done: 3 created" in first.output
    assert "acme/web1" in first.output
    mark = lab.mark()
    assert player.play(PROVISION, *said).expect().changed == 0
    assert writes(lab, mark) == []

    estate = yaml.safe_load(ESTATE)
    estate["provision_containers"].pop()
    file.write_text(yaml.safe_dump(estate), encoding="utf-8")
    prune = (*said, "-e", "provision_prune=true provision_tenants=acme")
    pruned = player.play(PROVISION, *prune).expect()
    assert "- acme/web2  running on" in pruned.output
    gone = player.play(DEPROVISION, *said, "-e", "provision_tenants=acme").expect()
    assert "Done: 2 removed" in gone.output
    assert player.play(DEPROVISION, *said, "-e", "provision_tenants=acme").expect().changed == 0


def test_containers_without_a_value_are_refused(player: Player, lab: Lab) -> None:
    mark = lab.mark()
    refused = player.play(PROVISION, "-e", '{"provision_containers": null, "provision_vms": []}')
    assert refused.status
    assert "provision_containers is defined but has no value" in refused.output
    assert lab.requests_since(mark) == []
