"""How listings are spoken of in messages."""


def counted(files: int) -> str:
    """Say how many files there are."""
    return "1 file" if files == 1 else f"{files} files"
