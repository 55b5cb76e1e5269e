"""Mutation testing: `make mutants`."""
