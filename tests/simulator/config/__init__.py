"""A machine's configuration: its checks, its changes, what takes effect at once."""
