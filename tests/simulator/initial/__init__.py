"""The cluster at the start: described by a file, or made up."""
