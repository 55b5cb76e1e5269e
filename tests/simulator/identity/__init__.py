"""The identity of nodes: certificates and subscriptions."""
