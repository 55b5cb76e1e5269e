"""A simulated Proxmox VE API, see docs/simulator.md.

Where it is installed, this package is `pve_simulator`.
"""
