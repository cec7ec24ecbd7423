"""The wording of listings in messages."""


def counted(files: int) -> str:
    """Return a number of files as text."""
    return "1 file" if files == 1 else f"{files} files"
