"""Changes of a machine within a task: it starts, stops and moves. No API call lives here."""
