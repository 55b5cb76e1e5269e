"""Software-defined networks: their configuration, the running part, and the lock between them; no
packet flows (pve-network).
"""
