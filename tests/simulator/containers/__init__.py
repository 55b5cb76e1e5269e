"""Containers: their part of the API and its actions (pve-container)."""
