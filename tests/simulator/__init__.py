"""A simulated Proxmox VE API, see docs/simulator.md. The installed package is `pve_simulator`."""
