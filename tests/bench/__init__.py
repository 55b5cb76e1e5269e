"""Measures this collection beside community.proxmox on the simulated Proxmox VE: `make bench`."""
