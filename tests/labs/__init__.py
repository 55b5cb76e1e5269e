"""Clusters in a certain state, for the tests of several directories."""
