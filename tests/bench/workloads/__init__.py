"""The work that is measured, one function for each part."""
