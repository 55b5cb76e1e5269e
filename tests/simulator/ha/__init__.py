"""The HA manager: its resources, rules and status."""
