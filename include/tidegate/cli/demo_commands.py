"""Commands that show Tidegate at work: demo, ui."""

from importlib import import_module

import typer
from rich.console import Console

from tidegate.cli.output import FAILED, reporting

# The demo's modules are loaded only for these two commands.
_DRIVER = "tidegate.demo.driver"


def demo() -> None:
    """Publish a week of real flights through Airflow and Spark, with late rows and a blizzard."""
    with reporting(as_json=False):
        proved = import_module(_DRIVER).run_demo(Console())
        raise typer.Exit(0 if proved else FAILED)


def ui() -> None:
    """Start Airflow in the demo's folder and keep it running until Ctrl-C."""
    with reporting(as_json=False):
        import_module(_DRIVER).run_ui(Console())
