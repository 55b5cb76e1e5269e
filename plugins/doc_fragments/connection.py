# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from connection.yml: do not edit.
"""The connection, shared by modules, the inventory plugin and lookups."""


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  host:
    description:
      - Host name, address or URL of any node, with or without a port and C(/api2/json).
      - Environment variables E(PROXMOX_HOST), E(PROXMOX_URL), E(PROXMOX_ENDPOINT), E(PVE_ENDPOINT).
    type: str
    aliases: [api_host, endpoint, url]
  port:
    description:
      - The port of the API, V(8006) by default. It overrides a port in O(host) of the site or
        environment, and must not contradict a port in O(host) of the same source.
      - Environment variable E(PROXMOX_PORT).
    type: int
  user:
    description:
      - The user with its realm, for example V(root@pam).
      - Environment variables E(PROXMOX_USER), E(PROXMOX_USERNAME), E(PVE_USERNAME).
    type: str
    aliases: [api_user]
  password:
    description:
      - The password of O(user). An API token is faster and can be revoked.
      - Environment variables E(PROXMOX_PASSWORD), E(PVE_PASSWORD).
    type: str
    aliases: [api_password]
  token_id:
    description:
      - The API token, as V(user@realm!id) or only its ID, which is then appended to O(user).
      - It takes precedence over a password of the same source.
      - Environment variables E(PROXMOX_TOKEN_ID), E(PVE_TOKEN_ID).
    type: str
    aliases: [api_token_id]
  token_secret:
    description:
      - The secret of the API token.
      - Environment variables E(PROXMOX_TOKEN_SECRET), E(PVE_TOKEN_SECRET).
    type: str
    aliases: [api_token_secret]
  validate_certs:
    description:
      - Whether the certificate of the API must be signed by a trusted CA and contain the name of
        O(host), V(true) by default.
      - V(false) causes a warning. Set O(ca_path) instead.
      - Environment variables E(PROXMOX_VALIDATE_CERTS), and with the opposite meaning
        E(PVE_INSECURE_SKIP_VERIFY).
    type: bool
  ca_path:
    description:
      - 'The CA to trust: a PEM file, such as C(/etc/pve/pve-root-ca.pem) of a node, a directory of
        hashed PEM files, or the PEM text itself.'
      - By default, the CAs of the system are trusted. E(REQUESTS_CA_BUNDLE) and E(CURL_CA_BUNDLE)
        have no effect.
      - Environment variables E(PROXMOX_CA_PATH), E(PVE_CA_BUNDLE).
    type: str
    aliases: [ca_bundle]
  client_cert:
    description:
      - A client certificate for a proxy in front of the API, as a path to a PEM file.
      - Environment variable E(PROXMOX_CLIENT_CERT).
    type: path
  client_key:
    description:
      - The key of O(client_cert), if that file has none.
      - Environment variable E(PROXMOX_CLIENT_KEY).
    type: path
  timeout:
    description:
      - Seconds to wait for the whole response to one request, V(30) by default. For a connection,
        the wait is at most 10 seconds.
      - Environment variable E(PROXMOX_TIMEOUT).
    type: float
  retries:
    description:
      - Number of attempts if the network or a proxy fails. By default, O(retry_timeout) limits
        them.
      - Environment variable E(PROXMOX_RETRIES).
    type: int
  retry_timeout:
    description:
      - Maximum time in seconds for retries if the network, a proxy or Proxmox VE fails, V(30) by
        default.
      - Environment variable E(PROXMOX_RETRY_TIMEOUT).
    type: float
  lock_timeout:
    description:
      - Maximum time in seconds for retries if a lock is held, V(60) by default.
      - Environment variable E(PROXMOX_LOCK_TIMEOUT).
    type: float
  max_answer_size:
    description:
      - Maximum size of one response, decompressed, V(128M) by default. A number without a unit is
        in MiB.
      - Environment variable E(PROXMOX_MAX_ANSWER_SIZE).
    type: str
  require_tenant:
    description:
      - Whether a task that writes must have a tenant, unless it is administrative, see the guide on
        security. It applies if the task, the site or the environment sets it to V(true). The
        default is V(false).
      - Environment variable E(PROXMOX_REQUIRE_TENANT).
    type: bool
  site:
    description:
      - The name of the site to use, from O(sites) or O(sites_file), instead of O(host).
      - By default, the site that is marked as the default is used, or the site named V(default), or
        the only site.
      - Environment variables E(PROXMOX_SITE), E(PROXMOX_DEFAULT_CLUSTER). The latter is ignored if
        no sites are defined.
    type: str
  sites:
    description:
      - Several clusters, each with a name and the options of the connection. An option of the task
        overrides that of the site, which overrides the environment.
    type: list
    elements: dict
    suboptions:
      name:
        description: The name of the site.
        type: str
        required: true
      default:
        description: Whether the site is used if no site is named.
        type: bool
      host:
        description: See O(host).
        type: str
        aliases: [api_host, endpoint, url]
      port:
        description: See O(port).
        type: int
      user:
        description: See O(user).
        type: str
        aliases: [api_user]
      password:
        description: See O(password).
        type: str
        aliases: [api_password]
      token_id:
        description: See O(token_id).
        type: str
        aliases: [api_token_id]
      token_secret:
        description: See O(token_secret).
        type: str
        aliases: [api_token_secret]
      validate_certs:
        description: See O(validate_certs).
        type: bool
      ca_path:
        description: See O(ca_path).
        type: str
        aliases: [ca_bundle]
      client_cert:
        description: See O(client_cert).
        type: path
      client_key:
        description: See O(client_key).
        type: path
      timeout:
        description: See O(timeout).
        type: float
      retries:
        description: See O(retries).
        type: int
      retry_timeout:
        description: See O(retry_timeout).
        type: float
      lock_timeout:
        description: See O(lock_timeout).
        type: float
      max_answer_size:
        description: See O(max_answer_size).
        type: str
      require_tenant:
        description: See O(require_tenant).
        type: bool
      node:
        description:
          - The node to use on this site if nothing else names or selects one.
          - Without a site, the environment variable E(PROXMOX_NODE) sets it, or
            E(PVE_NODE_SELECTOR) with preferred nodes, separated by commas.
        type: str
        aliases: [default_node]
      nodes:
        description: The nodes for VMs. By default, all nodes. A VM on another node stays there.
        type: list
        elements: str
      storages:
        description: The storages for new disks, images and clones. By default, all storages.
        type: list
        elements: str
      bridges:
        description: The bridges and VNets of network cards. By default, all of them.
        type: list
        elements: str
      max_vms_per_node:
        description: Maximum number of VMs on a node, as one number or as a dictionary by node, for
          tasks that do not set it in C(placement).
        type: raw
      fingerprint:
        description: SHA-256 fingerprint that the certificate of O(host) must have, instead of a CA.
        type: str
      other_hosts:
        description: Other nodes, each used if the last one cannot be reached.
        type: list
        elements: str
      labels:
        description: Labels, each a text or a number, such as region and price.
        type: dict
      state:
        description:
          - With V(draining), it gets no new guest; its guests are managed and removed. V(active) by
            default.
          - With V(closed), nothing is written there, and readings of all sites leave it out.
        type: str
        choices: [active, draining, closed]
  sites_file:
    description:
      - A YAML file with the list of O(sites), or with C(sites_from), see
        C(docs/several-clusters.md).
      - Environment variable E(PROXMOX_SITES_FILE).
    type: path
requirements:
  - python >= 3.10
  - proxmoxer >= 2.2.0
  - requests >= 2.28.0
  - PyYAML >= 6.0
notes:
  - If an option has several environment variables, the first one that is set is used, in the listed
    order, and the others are ignored.
  - An empty option or environment variable of the connection counts as not set.
  - If both a token and a password are set in the same source, the token is used.
  - Proxies and C(.netrc) from the environment are not used.
"""

    PLUGIN = r"""
options:
  host: {ini: [{section: inventory_proxmox, key: host}]}
  port: {ini: [{section: inventory_proxmox, key: port}]}
  user: {ini: [{section: inventory_proxmox, key: user}]}
  password: {ini: [{section: inventory_proxmox, key: password}]}
  token_id: {ini: [{section: inventory_proxmox, key: token_id}]}
  token_secret: {ini: [{section: inventory_proxmox, key: token_secret}]}
  validate_certs: {ini: [{section: inventory_proxmox, key: validate_certs}]}
  ca_path: {ini: [{section: inventory_proxmox, key: ca_path}]}
  client_cert: {ini: [{section: inventory_proxmox, key: client_cert}]}
  client_key: {ini: [{section: inventory_proxmox, key: client_key}]}
  timeout: {ini: [{section: inventory_proxmox, key: timeout}]}
  retries: {ini: [{section: inventory_proxmox, key: retries}]}
  retry_timeout: {ini: [{section: inventory_proxmox, key: retry_timeout}]}
  lock_timeout: {ini: [{section: inventory_proxmox, key: lock_timeout}]}
  max_answer_size: {ini: [{section: inventory_proxmox, key: max_answer_size}]}
  require_tenant: {ini: [{section: inventory_proxmox, key: require_tenant}]}
  site: {ini: [{section: inventory_proxmox, key: site}]}
  sites_file: {ini: [{section: inventory_proxmox, key: sites_file}]}
"""

    VARIABLES = r"""
options:
  host: {vars: [{name: ansible_pve_host}]}
  port: {vars: [{name: ansible_pve_port}]}
  user: {vars: [{name: ansible_pve_user}]}
  password: {vars: [{name: ansible_pve_password}]}
  token_id: {vars: [{name: ansible_pve_token_id}]}
  token_secret: {vars: [{name: ansible_pve_token_secret}]}
  validate_certs: {vars: [{name: ansible_pve_validate_certs}]}
  ca_path: {vars: [{name: ansible_pve_ca_path}]}
  client_cert: {vars: [{name: ansible_pve_client_cert}]}
  client_key: {vars: [{name: ansible_pve_client_key}]}
  timeout: {vars: [{name: ansible_pve_timeout}]}
  retries: {vars: [{name: ansible_pve_retries}]}
  retry_timeout: {vars: [{name: ansible_pve_retry_timeout}]}
  lock_timeout: {vars: [{name: ansible_pve_lock_timeout}]}
  max_answer_size: {vars: [{name: ansible_pve_max_answer_size}]}
  require_tenant: {vars: [{name: ansible_pve_require_tenant}]}
  site: {vars: [{name: ansible_pve_site}]}
  sites: {vars: [{name: ansible_pve_sites}]}
  sites_file: {vars: [{name: ansible_pve_sites_file}]}
"""
