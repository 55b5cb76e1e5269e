# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from plan.yml: do not edit.
"""The options of modules whose plan can be kept for an approval, and applied."""


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  plan_file:
    description:
      - In check mode, the file to which the plan of the task is written, for O(apply_plan). The
        plan of another task in the file, or of the same task at another site, stays. A second task
        of a module for one site is refused.
      - It contains each request, the values before and after, and the VMIDs and nodes of new
        guests. Secrets are replaced by a keyed hash. The guide C(docs/plans.md) describes the file.
      - Refused in a run that is not in check mode.
    type: path
  plan_run:
    description:
      - Tasks with the same value write their parts into one O(plan_file). Otherwise a task replaces
        the file. The playbooks of this collection set it to the run of Ansible.
    type: str
    default: ''
  apply_plan:
    description:
      - A file of O(plan_file). The task sends the requests of this plan and no others. A resource
        that is not as it was when the plan was made is refused, with the difference; the others are
        changed.
      - A plan that has expired, was edited, or has no part for this task and its site is refused
        before the first request.
    type: path
  plan_key:
    description:
      - The key of the hashes of secrets in a plan. It must be the same for O(plan_file) and
        O(apply_plan).
      - By default, the secret of the login is used, so the same login must plan and apply.
    type: str
  plan_days:
    description: The number of days after which the plan of O(plan_file) expires.
    type: int
    default: 7
  plan_commit:
    description: The version of the estate, such as a commit of Git, for people. The plan of
      O(plan_file) names it.
    type: str
    default: ''
  plan_signing_key:
    description: A file with an Ed25519 key (PEM without a password) that signs the plan of
      O(plan_file).
    type: path
  plan_trusted_key:
    description:
      - A file with the public key (PEM) for O(apply_plan). A plan that its key has not signed is
        refused before the first request.
    type: path
"""
