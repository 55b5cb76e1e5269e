# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter plugin `pve.fleet.image_places`: the templates that a version of an image needs."""

from __future__ import annotations

DOCUMENTATION = r"""
name: image_places
author:
  - The pve.fleet authors (@pve-fleet)
version_added: 1.0.0
short_description: Decide where templates of an image are missing
description:
  - Returns the templates that a version of an image needs, one for each node with a local storage
    and one for each shared storage, and the templates of older versions that are not kept.
  - It sends no request. The role P(pve.fleet.image#role) creates and removes the templates.
options:
  _input:
    description: The guests of that kind, as M(pve.fleet.vm_info) or M(pve.fleet.container_info)
      returns them. With their C(config), a template counts for the storage that it is on.
    type: list
    elements: dict
    required: true
  cluster:
    description: The cluster, as M(pve.fleet.cluster_info) returns it.
    type: dict
    required: true
  name:
    description: Name of the image.
    type: str
    required: true
  version:
    description: Version of the image.
    type: str
    required: true
  nodes:
    description: Nodes that need the image. An empty list means all nodes that are online.
    type: list
    elements: str
    default: []
  storages:
    description: Storages for the image, of which each node uses the first one that it has.
    type: list
    elements: str
    required: true
  kind:
    description: Kind of the templates, V(vm) or V(container).
    type: str
    default: vm
  keep:
    description: Number of versions that each node keeps. 0 keeps all.
    type: int
    default: 0
"""

EXAMPLES = r"""
- name: Read the cluster
  pve.fleet.cluster_info:
  register: seen

- name: Read its templates
  pve.fleet.vm_info:
    template: true
  register: templates

- name: Show the nodes that lack the image
  ansible.builtin.debug:
    msg: "{{ (templates.vms | pve.fleet.image_places(seen.cluster, 'debian-13', '2026.11.20',
      storages=['local-lvm'])).places | rejectattr('published') | map(attribute='node') }}"
"""

RETURN = r"""
_value:
  description: The templates that are needed and those that are not kept.
  type: dict
  contains:
    places:
      description:
        - The templates that are needed, with C(node), C(storage), C(serves) (the nodes that use
          it), C(candidate) (its name until it is published), C(published), and C(vmid) if it
          exists.
      type: list
      elements: dict
    prune:
      description: The templates of older versions, with C(vmid), C(node) and C(image).
      type: list
      elements: dict
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError

from ..module_utils._foundation.cluster.storages.image_places import places_of, prunable, wanted_of
from ..module_utils._foundation.core.errors import FleetError


def image_places(
    guests: Sequence[Mapping[str, Any]],
    cluster: Mapping[str, Any],
    name: str,
    version: str,
    **options: Any,
) -> dict[str, Any]:
    """Return the places of an image, and the templates that are not kept."""
    keep = int(options.get("keep") or 0)
    try:
        nodes, kind = options.get("nodes") or (), options.get("kind") or "vm"
        wanted = wanted_of(name, version, nodes, options["storages"], kind)
        places = places_of(wanted, cluster, guests)
    except FleetError as error:
        raise AnsibleFilterError(error.message) from error
    prune = prunable(name, keep, guests, places) if keep else []
    return {"places": [place.as_dict() for place in places], "prune": prune}


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"image_places": image_places}
