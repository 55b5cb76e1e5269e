"""Property-string formats that the API document names without spelling them out."""

from __future__ import annotations

from typing import Any

Prop = dict[str, Any]

_BASE64ISH = {"type": "string", "pattern": r"[A-Za-z0-9+\/]+={0,2}", "optional": 1}
_VOLUME = {"type": "string", "format": "pve-volume-id", "optional": 1}
_FLAG = {"type": "boolean", "optional": 1}
_TEXT = {"type": "string", "optional": 1}
_INT = {"type": "integer", "optional": 1}
_COUNT = {"type": "integer", "optional": 1, "minimum": 0}
_PCI = r"(?:[0-9a-fA-F]{4,}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?"
_CPU_FLAG = r"[+-][a-zA-Z0-9\-_.]+"

SUPPORTED_CPU_FLAGS = (
    "aes",
    "amd-no-ssb",
    "amd-ssbd",
    "hv-evmcs",
    "hv-tlbflush",
    "ibpb",
    "md-clear",
    "nested-virt",
    "pcid",
    "pdpe1gb",
    "spec-ctrl",
    "ssbd",
    "virt-ssbd",
)

BOOT: dict[str, Prop] = {
    "legacy": {"type": "string", "optional": 1, "default_key": 1, "pattern": "[acdn]{1,4}"},
    "order": {"type": "string", "optional": 1, "format": "pve-qm-bootdev-list"},
}
CPU: dict[str, Prop] = {
    "cputype": {"type": "string", "optional": 1, "default_key": 1},
    "reported-model": _TEXT,
    "hidden": _FLAG,
    "hv-vendor-id": {"type": "string", "optional": 1, "pattern": "[a-zA-Z0-9]{1,12}"},
    "flags": {"type": "string", "optional": 1, "pattern": f"{_CPU_FLAG}(?:;{_CPU_FLAG})*"},
    "guest-phys-bits": {"type": "integer", "optional": 1, "minimum": 32, "maximum": 64},
    "phys-bits": {"type": "string", "optional": 1, "format": "pve-phys-bits"},
    "level": {"type": "integer", "optional": 1, "minimum": 0, "maximum": 4294967295},
}
IPCONFIG: dict[str, Prop] = {
    "ip": {"type": "string", "optional": 1, "format": "pve-ipv4-config"},
    "gw": {"type": "string", "optional": 1, "format": "ipv4", "requires": "ip"},
    "ip6": {"type": "string", "optional": 1, "format": "pve-ipv6-config"},
    "gw6": {"type": "string", "optional": 1, "format": "ipv6", "requires": "ip6"},
}
HOSTPCI: dict[str, Prop] = {
    "host": {"type": "string", "optional": 1, "default_key": 1, "pattern": f"{_PCI}(?:;{_PCI})*"},
    "mapping": {"type": "string", "optional": 1, "format": "pve-configid"},
    "rombar": _FLAG,
    "romfile": {"type": "string", "optional": 1, "pattern": "[^,;]+"},
    "pcie": _FLAG,
    "x-vga": _FLAG,
    "legacy-igd": _FLAG,
    "mdev": {"type": "string", "optional": 1, "pattern": "[^/\\.:]+"},
    "vendor-id": {"type": "string", "optional": 1, "pattern": "0x[0-9a-fA-F]{4}"},
    "device-id": {"type": "string", "optional": 1, "pattern": "0x[0-9a-fA-F]{4}"},
    "sub-vendor-id": {"type": "string", "optional": 1, "pattern": "0x[0-9a-fA-F]{4}"},
    "sub-device-id": {"type": "string", "optional": 1, "pattern": "0x[0-9a-fA-F]{4}"},
    "driver": _TEXT,
}

HASHES: dict[str, dict[str, Prop]] = {
    "pve-qm-boot": BOOT,
    "pve-vm-cpu-conf": CPU,
    "pve-qm-ipconfig": IPCONFIG,
    "pve-qm-hostpci": HOSTPCI,
    "pve-qm-cicustom": {"meta": _VOLUME, "network": _VOLUME, "user": _VOLUME, "vendor": _VOLUME},
    "pve-qm-smbios1": {
        "uuid": {
            "type": "string",
            "pattern": "[a-fA-F0-9]{8}(?:-[a-fA-F0-9]{4}){3}-[a-fA-F0-9]{12}",
            "optional": 1,
        },
        "version": _BASE64ISH,
        "serial": _BASE64ISH,
        "manufacturer": _BASE64ISH,
        "product": _BASE64ISH,
        "sku": _BASE64ISH,
        "family": _BASE64ISH,
        "base64": _FLAG,
    },
    "pve-qm-rng": {
        "source": {
            "type": "string",
            "enum": ["/dev/urandom", "/dev/random", "/dev/hwrng"],
            "default_key": 1,
        },
        "max_bytes": _INT,
        "period": _INT,
    },
    "pve-qm-watchdog": {
        "model": {"type": "string", "enum": ["i6300esb", "ib700"], "default_key": 1, "optional": 1},
        "action": {
            "type": "string",
            "enum": ["reset", "shutdown", "poweroff", "pause", "debug", "none"],
            "optional": 1,
        },
    },
    "pve-qm-usb": {
        "host": {"type": "string", "optional": 1, "default_key": 1},
        "mapping": {"type": "string", "optional": 1, "format": "pve-configid"},
        "usb3": _FLAG,
    },
    "pve-qemu-sev-fmt": {
        "type": {"type": "string", "default_key": 1, "enum": ["std", "es", "snp"]},
        "no-debug": _FLAG,
        "no-key-sharing": _FLAG,
        "kernel-hashes": _FLAG,
        "allow-smt": _FLAG,
    },
    "pve-qemu-tdx-fmt": {
        "type": {"type": "string", "default_key": 1, "enum": ["tdx"]},
        "attestation": _FLAG,
        "vsock-cid": _INT,
        "vsock-port": _INT,
    },
    "prune-backups": {
        "keep-all": _FLAG,
        "keep-last": _COUNT,
        "keep-hourly": _COUNT,
        "keep-daily": _COUNT,
        "keep-weekly": _COUNT,
        "keep-monthly": _COUNT,
        "keep-yearly": _COUNT,
    },
    "pve-sdn-dhcp-range": {
        "start-address": {"type": "string", "format": "ip"},
        "end-address": {"type": "string", "format": "ip"},
    },
    "backup-fleecing": {
        "enabled": {"type": "boolean", "optional": 1, "default_key": 1},
        "storage": {"type": "string", "format": "pve-storage-id", "optional": 1},
    },
    "backup-performance": {
        "max-workers": {"type": "integer", "minimum": 1, "maximum": 256, "optional": 1},
        "pbs-entries-max": {"type": "integer", "minimum": 1, "optional": 1},
    },
    "proxmox-remote": {
        "host": {"type": "string"},
        "port": _INT,
        "apitoken": {"type": "string"},
        "fingerprint": {
            "type": "string",
            "optional": 1,
            "pattern": "([A-Fa-f0-9]{2}:){31}[A-Fa-f0-9]{2}",
        },
    },
    # pve-common: JSONSchema.pm
    "pve-node-location": {
        "latitude": {"type": "number", "minimum": -90, "maximum": 90},
        "longitude": {"type": "number", "minimum": -180, "maximum": 180},
        "name": {"type": "string", "maxLength": 128, "optional": 1},
    },
    "realm-sync-options": {
        "scope": {"type": "string", "enum": ["users", "groups", "both"], "optional": 1},
        "remove-vanished": {
            "type": "string",
            "pattern": "(?:(?:(?:acl|properties|entry);)*(?:acl|properties|entry))|none",
            "optional": 1,
        },
        "full": _FLAG,
        "enable-new": _FLAG,
        "purge": _FLAG,
    },
    # pve-manager: NodeConfig.pm, $acme_domain_desc
    "acmedomain": {
        "domain": {"type": "string", "format": "pve-acme-domain", "default_key": 1},
        "plugin": {"type": "string", "format": "pve-configid", "optional": 1},
        "alias": {"type": "string", "format": "pve-acme-alias", "optional": 1},
    },
    # pve-access-control: Auth/Plugin.pm
    "pve-tfa-config": {
        "type": {"type": "string", "enum": ["yubico", "oath"]},
        "id": _TEXT,
        "key": _TEXT,
        "url": _TEXT,
        "digits": {"type": "integer", "minimum": 6, "maximum": 8, "optional": 1},
        "step": {"type": "integer", "minimum": 10, "optional": 1},
    },
    "bwlimit": {
        name: {"type": "number", "minimum": 0, "optional": 1}
        for name in ("default", "restore", "migration", "clone", "move")
    },
}
