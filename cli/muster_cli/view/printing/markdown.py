"""Foreign Markdown on a terminal. Imported where it is needed: it costs a quarter of a second."""

from rich.markdown import Markdown

from muster_cli.view.plain import clean


def markdown(text: str) -> Markdown:
    """Addresses are shown, so that nobody follows one that he does not see."""
    return Markdown(clean(text), hyperlinks=False)
