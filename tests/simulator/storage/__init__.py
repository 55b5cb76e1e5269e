"""Storages: their definitions, contents and uploads."""
