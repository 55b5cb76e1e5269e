"""A stateful, strict simulator of the Proxmox VE API for tests."""
