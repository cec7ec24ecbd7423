"""`python -m tidegate.cli` is the command `tidegate`."""

from tidegate.cli.app import app

app(prog_name="tidegate")
