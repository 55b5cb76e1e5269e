"""The API's schema, and the forms of values: the valid requests."""
