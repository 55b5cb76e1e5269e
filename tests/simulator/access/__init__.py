"""Logins, accounts and the access list."""
