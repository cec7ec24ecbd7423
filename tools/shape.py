"""Print how large modules and functions are, and which modules have no unit test file."""

from __future__ import annotations

import ast
from pathlib import Path
from statistics import median, quantiles

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {
    "tidegate": ROOT / "include" / "tidegate",
    "tidegate_airflow": ROOT / "plugins" / "tidegate_airflow",
}
GOAL = {"module": (90, 180, 250), "function": (10, 28, 50)}
LISTED = 10


def lines_of(path: Path) -> int:
    """Count the lines of a module."""
    return len(path.read_text().splitlines())


def functions_of(path: Path) -> list[tuple[int, str]]:
    """Measure the functions of a module, nested ones too, in lines."""
    tree = ast.parse(path.read_text())
    return [
        (node.end_lineno - node.lineno + 1, f"{path.relative_to(ROOT)}:{node.lineno} {node.name}")
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno
    ]


def has_test(package: str, root: Path, module: Path) -> bool:
    """Say whether `tests/unit` mirrors the module; an `__init__` without code needs no test."""
    tree = ast.parse(module.read_text())
    if not any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in ast.walk(tree)):
        return True
    below = module.relative_to(root).parent
    folder = ROOT / "tests" / "unit" / (below if package == "tidegate" else Path(package) / below)
    name = module.parent.name if module.name == "__init__.py" else module.stem
    places = (folder / f"test_{name}.py", folder.parent / f"test_{folder.name}.py")
    return any(place.exists() for place in places)


def summary(name: str, sizes: list[int]) -> tuple[str, ...]:
    """Give median, 90th percentile and largest beside the goal."""
    ninth = quantiles(sizes, n=10)[-1] if len(sizes) > 1 else sizes[0]
    goal = " / ".join(str(number) for number in GOAL[name])
    return (f"{name}s", str(len(sizes)), f"{median(sizes):.0f} / {ninth:.0f} / {max(sizes)}", goal)


def main() -> None:
    """Print the tables."""
    modules = {
        path: (name, root) for name, root in PACKAGES.items() for path in sorted(root.rglob("*.py"))
    }
    functions = sorted((found for path in modules for found in functions_of(path)), reverse=True)
    largest = sorted(
        ((lines_of(path), str(path.relative_to(ROOT))) for path in modules), reverse=True
    )
    untested = [path for path, (name, root) in modules.items() if not has_test(name, root, path)]

    console = Console()
    table = Table("lines of", "count", "median / 90th / largest", "goal")
    table.add_row(*summary("module", [size for size, _ in largest]))
    table.add_row(*summary("function", [size for size, _ in functions]))
    console.print(table)
    for title, rows in (("Largest modules", largest), ("Largest functions", functions)):
        console.print(f"\n[bold]{title}")
        for size, place in rows[:LISTED]:
            console.print(f"{size:5}  {place}", highlight=False, soft_wrap=True)
    console.print(f"\n[bold]Modules without a unit test file: {len(untested)}")
    for path in untested:
        console.print(f"       {path.relative_to(ROOT)}", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
