"""Foreign text in a log: nothing that ends a line or that a terminal obeys gets through as it is."""


def printable(text: str) -> str:
    """The text on one line: what is not printable is escaped, so that a line break shows as `\\n`."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escaped(character) for character in text)


def printable_json(document: str) -> str:
    """A JSON document on one line, and still the same document: such characters only stand in its texts."""
    if document.isprintable():
        return document
    return "".join(c if c.isprintable() else _unit_escapes(c) for c in document)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _unit_escapes(character: str) -> str:
    """As JSON writes it: a character beyond the first 65,536 is two."""
    units = character.encode("utf-16-be", errors="surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
