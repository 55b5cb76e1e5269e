"""The API's schema, and the forms of values: what a request may say at all."""
