"""Documents laid out: as Markdown, as HTML, or as plain text."""
