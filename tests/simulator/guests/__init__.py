"""The calls of virtual machines, beside their configuration."""
