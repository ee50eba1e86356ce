"""Numbers with their nouns."""


def quantity(number: int, noun: str) -> str:
    """Return a number of things in words: `1 thread`, `2 threads`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
