"""A machine's configuration: its checks, its changes, and hotplug."""
