"""The HTTP servers: the API and the control plane."""
