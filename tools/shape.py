"""Print how large modules and functions are, and which modules lack a unit test file."""

from __future__ import annotations

import ast
from fnmatch import fnmatchcase
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
REASONS = {
    "protocols, registries and shapes of values: nothing to run by themselves": (
        "tidegate/__init__",
        "tidegate/commit/policies/protocol",
        "tidegate/execute/protocol",
        "tidegate/physical/protocol",
        "tidegate/pipeline/__init__",
        "tidegate/read/removed",
        "tidegate/source/protocol",
        "tidegate/source/reading",
        "tidegate/source/slicing",
        "tidegate/source/timeline",
        "tidegate/source/files/folder_view",
        "tidegate/source/iceberg/columns/slice_details",
        "tidegate/source/hudi/slices/details",
        "tidegate/metastore/__init__",
        "tidegate/metastore/protocol",
        "tidegate/storage/protocol",
    ),
    "the verbs of every store, on real ones: tests/unit/storage/test_verbs.py": (
        "tidegate/storage/details",
        "tidegate/storage/placed",
        "tidegate/storage/s3",
        "tidegate/storage/s3_calls",
        "tidegate/storage/s3_files",
        "tidegate/storage/stores",
    ),
    "requests that fail, before a real store: tests/unit/storage/test_s3_faults.py": (
        "tidegate/storage/s3_client",
        "tidegate/storage/s3_input",
        "tidegate/storage/s3_writing",
    ),
    "walked through key by key in tests/unit/config/test_loading.py": ("tidegate/config/s3",),
    "giving up windows: tests/behaviour/test_abandon.py, tests/behaviour/test_abandon_deaths.py": (
        "tidegate/pipeline/load/abandoning",
        "tidegate/pipeline/state/abandoned",
    ),
    "listing partitions in a real metastore: tests/behaviour/test_metastore.py": (
        "tidegate/cli/relist_command",
        "tidegate/commit/policies/metastore",
        "tidegate/metastore/hive",
    ),
    "lake to lake, in real catalogs: tests/behaviour/test_iceberg_targets.py, "
    "tests/behaviour/test_iceberg_target_shape.py, tests/behaviour/test_iceberg_survival.py": (
        "tidegate/commit/policies/snapshot",
        "tidegate/metastore/iceberg/*",
    ),
    "calendars, alarms and approvals of real pipelines: tests/behaviour/test_completeness.py": (
        "tidegate/ledger/expected",
        "tidegate/pipeline/publish/expecting",
    ),
    "walked through key by key in tests/unit/config/test_completeness.py": (
        "tidegate/config/requirements",
    ),
    "what a message says of a changed file: tests/behaviour/test_rewritten_files.py": (
        "tidegate/pipeline/load/changed_files",
        "tidegate/pipeline/load/file_rows",
        "tidegate/pipeline/load/row_partitions",
    ),
    "numbers of another unit in real files: tests/behaviour/test_check.py": (
        "tidegate/pipeline/load/event_units",
    ),
    "what becomes of late rows: tests/behaviour/test_late_data.py": (
        "tidegate/pipeline/state/late_root",
    ),
    "erasing from published tables and from all that windows keep: tests/behaviour/test_erase.py": (
        "tidegate/pipeline/publish/erasing",
        "tidegate/pipeline/upkeep/erasing/*",
        "tidegate/pipeline/upkeep/came_back",
        "tidegate/stage/erased_in",
        "tidegate/stage/standing_rows",
    ),
    "what a commit looks at first: tests/unit/commit/test_publisher.py": (
        "tidegate/commit/commit_files",
    ),
    "what is sent and not completed: tests/behaviour/test_deferred_uploads.py": (
        "tidegate/pipeline/state/sent",
    ),
    "undoing: tests/behaviour/test_undo.py": ("tidegate/pipeline/publish/undoing",),
    "directories of former revisions: tests/behaviour/test_revision_folders.py": (
        "tidegate/pipeline/upkeep/former_revisions",
    ),
    "what a skipped commit removed: tests/behaviour/test_skipped_commits.py": (
        "tidegate/pipeline/state/passed_over",
    ),
    "small files joined in real tables: tests/behaviour/test_compaction.py": (
        "tidegate/cli/compact_command",
        "tidegate/pipeline/publish/compacting",
    ),
    "upserts merged by real files of a changing table: tests/behaviour/test_upsert.py": (
        "tidegate/pipeline/publish/assembling",
        "tidegate/pipeline/publish/units",
        "tidegate/stage/change_spill",
        "tidegate/stage/key_columns",
    ),
    "classes of errors: tests/unit/test_errors.py finds all of them": ("tidegate/errors/*",),
    "one call of a library or of the system each, nothing to decide": (
        "tidegate/cli/logs",
        "tidegate/pipeline/state/fingerprint",
        "tidegate/source/words",
        "tidegate/storage/calls",
    ),
    # ── Tried thoroughly by the unit tests of whoever calls them ──
    "formats of part files: tests/unit/physical/parts/test_every_format.py writes and reads all": (
        "tidegate/physical/parts/*",
    ),
    "kinds of sources: tests/unit/source/test_kinds.py walks their registries": (
        "tidegate/source/__init__",
        "tidegate/source/files/__init__",
        "tidegate/source/iceberg/__init__",
        "tidegate/source/hudi/__init__",
        "tidegate/config/sources/__init__",
        "tidegate/config/sources/every_kind",
    ),
    "sections of the pipeline file: tests/unit/config/test_loading.py makes every mistake in one; "
    "tests/unit/config/test_pipeline_config.py, tests/unit/config/test_source_config.py": (
        "tidegate/config/bounds",
        "tidegate/config/commit",
        "tidegate/config/complaints",
        "tidegate/config/environment",
        "tidegate/config/late_data",
        "tidegate/config/part_files",
        "tidegate/config/partition_keys",
        "tidegate/config/pipeline",
        "tidegate/config/reading",
        "tidegate/config/retention",
        "tidegate/config/schema",
        "tidegate/config/target",
        "tidegate/config/target_kinds",
        "tidegate/config/iceberg_target",
        "tidegate/config/sources/files",
        "tidegate/config/sources/text_files",
        "tidegate/config/sources/hudi",
        "tidegate/config/sources/iceberg/*",
    ),
    "columns by name: tests/unit/source/files/test_columns.py and the files beside it": (
        "tidegate/source/named_columns",
    ),
    "part of decoding Avro: tests/unit/physical/test_avro.py and the files beside it": (
        "tidegate/physical/avro_primitives",
    ),
    "parts of decoding manifests: tests/unit/source/iceberg/manifests/test_decode.py": (
        "tidegate/source/iceberg/manifests/avro_records",
        "tidegate/source/iceberg/manifests/entries",
    ),
    "parts of the index of deletes: tests/unit/source/iceberg/deletes/test_index.py": (
        "tidegate/source/iceberg/deletes/entries",
        "tidegate/source/iceberg/deletes/groups",
    ),
    "parts of loading deletes: tests/unit/source/iceberg/deletes/test_loading.py": (
        "tidegate/source/iceberg/deletes/keys",
    ),
    "part of field ids: tests/unit/source/iceberg/columns/test_field_ids.py": (
        "tidegate/source/iceberg/columns/name_mapping",
    ),
    "parts of reading states: tests/unit/source/iceberg/changes/test_states.py, "
    "tests/unit/source/iceberg/test_state_differences.py": (
        "tidegate/source/iceberg/changes/live_manifests",
        "tidegate/source/iceberg/changes/window_files",
    ),
    "part of the reader: tests/unit/source/iceberg/reading/test_reader.py": (
        "tidegate/source/iceberg/reading/pinned",
        "tidegate/source/iceberg/reading/slice_columns",
    ),
    "what a look at a folder sees: tests/unit/source/files/test_walk.py, "
    "tests/unit/source/files/test_store_folder.py": (
        "tidegate/source/files/disk_folder",
        "tidegate/source/files/looks",
    ),
    "parts of the source of plain files: tests/unit/source/files/test_source.py": (
        "tidegate/source/files/folder",
        "tidegate/source/files/kept",
        "tidegate/source/files/slicing",
        "tidegate/source/files/timeline",
    ),
    "cutting, by properties of whole plans: tests/unit/plan/test_splits.py": (
        "tidegate/plan/cuts",
    ),
    "parts of merging: tests/unit/read/test_merge.py": ("tidegate/read/alive",),
    "parts of projecting: tests/unit/source/test_projection.py": (
        "tidegate/source/column_kernels",
    ),
    "parts of a mounted file system: tests/unit/storage/test_local.py, "
    "tests/behaviour/test_storages.py": ("tidegate/storage/local_files",),
    "settling whole streams: tests/unit/read/test_settle.py, "
    "tests/unit/pipeline/load/test_change_stream.py": ("tidegate/read/changes",),
    "what a load refuses, found before it: tests/behaviour/test_check.py": (
        "tidegate/pipeline/load/rehearsal",
    ),
    "registry of policies: tests/unit/config/test_policies.py, tests/behaviour/test_policies.py": (
        "tidegate/commit/policies/__init__",
    ),
    "parts of copying whole files: tests/behaviour/test_whole_files.py, "
    "tests/behaviour/test_whole_iceberg_files.py, tests/behaviour/test_whole_files_random.py": (
        "tidegate/physical/whole_file",
        "tidegate/pipeline/load/copying",
        "tidegate/stage/usual_sizes",
    ),
    # ── Wiring: what it does, it does to tables, ledgers and files ──
    "Iceberg tables of engines, whole: tests/behaviour/test_golden_tables.py, "
    "tests/behaviour/test_golden_changes.py, tests/behaviour/test_catalogs.py": (
        "tidegate/source/iceberg/access",
        "tidegate/source/iceberg/slicing",
        "tidegate/source/iceberg/snapshots",
        "tidegate/source/iceberg/source",
        "tidegate/source/iceberg/table/tagging",
    ),
    "Hudi tables of engines, whole: tests/behaviour/test_hudi_golden.py, "
    "tests/behaviour/test_hudi_pipelines.py, tests/behaviour/test_hudi_cdc.py": (
        "tidegate/source/hudi/access",
        "tidegate/source/hudi/files",
        "tidegate/source/hudi/foreseen",
        "tidegate/source/hudi/hints",
        "tidegate/source/hudi/instants",
        "tidegate/source/hudi/pieces",
        "tidegate/source/hudi/pinning",
        "tidegate/source/hudi/slicing",
        "tidegate/source/hudi/source",
        "tidegate/source/hudi/merge/*",
        "tidegate/source/hudi/reading/*",
        "tidegate/source/hudi/slices/listing",
        "tidegate/source/hudi/table/avro",
        "tidegate/source/hudi/table/columns",
        "tidegate/source/hudi/timeline/loaded",
    ),
    "files of whole Hudi tables that are gone or cut: tests/behaviour/test_hudi_lost_files.py": (
        "tidegate/source/hudi/slices/named_files",
    ),
    "a server that processes share: tests/behaviour/test_embedded_postgres.py": (
        "tidegate/ledger/embedded/*",
    ),
    "the ledger on both databases: tests/behaviour/test_ledgers.py": (
        "tidegate/ledger/announcing",
        "tidegate/ledger/clock",
        "tidegate/ledger/contributions",
        "tidegate/ledger/deciding",
        "tidegate/ledger/known_partitions",
        "tidegate/ledger/lapsing",
        "tidegate/ledger/ledger",
        "tidegate/ledger/letting_go",
        "tidegate/ledger/numbers",
        "tidegate/ledger/partitions",
        "tidegate/ledger/pipelines",
        "tidegate/ledger/plans",
        "tidegate/ledger/publications",
        "tidegate/ledger/recording",
        "tidegate/ledger/restoring",
        "tidegate/ledger/rows",
        "tidegate/ledger/schema",
        "tidegate/ledger/setting_aside",
        "tidegate/ledger/taken_windows",
        "tidegate/ledger/window_rows",
        "tidegate/ledger/windows",
    ),
    "migrations: tests/unit/ledger/test_connect.py upgrades through all of them": (
        "tidegate/ledger/migrating",
        "tidegate/ledger/migrations/versions/*",
    ),
    "Great Expectations, in pandas and Spark: tests/behaviour/test_gate.py": (
        "tidegate/gate/library",
    ),
    "Spark itself: tests/spark, tests/behaviour/test_executors.py": (
        "tidegate/execute/catalog",
        "tidegate/execute/frames",
        "tidegate/execute/session",
        "tidegate/execute/spark",
        "tidegate/pipeline/executors",
    ),
    "loads, commits and upkeep of whole pipelines: tests/behaviour, tests/crash, tests/race": (
        "tidegate/pipeline/control",
        "tidegate/pipeline/load_steps",
        "tidegate/pipeline/partition_preview",
        "tidegate/pipeline/parts",
        "tidegate/pipeline/pipeline",
        "tidegate/pipeline/publish_steps",
        "tidegate/pipeline/load/announce",
        "tidegate/pipeline/load/brought",
        "tidegate/pipeline/load/drafting",
        "tidegate/pipeline/load/loader",
        "tidegate/pipeline/load/pins",
        "tidegate/pipeline/load/scanning",
        "tidegate/pipeline/load/staging",
        "tidegate/pipeline/load/taker",
        "tidegate/pipeline/publish/commit_plans",
        "tidegate/pipeline/publish/committer",
        "tidegate/pipeline/publish/under_claim",
        "tidegate/pipeline/publish/content",
        "tidegate/pipeline/publish/deciding",
        "tidegate/pipeline/publish/finishing",
        "tidegate/pipeline/state/behind",
        "tidegate/pipeline/state/delta_table",
        "tidegate/pipeline/state/reading",
        "tidegate/pipeline/state/work",
        "tidegate/pipeline/upkeep/fsck/*",
        "tidegate/pipeline/upkeep/lost_announces",
        "tidegate/pipeline/upkeep/lost_plans",
        "tidegate/pipeline/upkeep/past",
        "tidegate/pipeline/upkeep/report",
        "tidegate/pipeline/upkeep/repeating",
        "tidegate/pipeline/upkeep/restore",
        "tidegate/pipeline/upkeep/sweeping",
    ),
    "loads that failed: tests/behaviour/test_failed_load.py": (
        "tidegate/pipeline/state/load_failure",
        "tidegate/pipeline/state/vanished",
    ),
    "the name of a first file: tests/behaviour/test_command_line.py": ("tidegate/cli/known_name",),
    "targets of several files: tests/behaviour/test_check.py": ("tidegate/cli/target_checks",),
    "revisions that are compared: tests/behaviour/test_diff.py": (
        "tidegate/pipeline/upkeep/differing",
        "tidegate/pipeline/upkeep/revision_files",
    ),
    "beginning again, as its user sees it: tests/behaviour/test_reset.py": (
        "tidegate/pipeline/upkeep/resetting",
    ),
    "copied folders: tests/behaviour/test_copied.py": ("tidegate/pipeline/state/copied",),
    "a pipeline's end: tests/behaviour/test_retire.py": (
        "tidegate/pipeline/upkeep/retiring",
        "tidegate/target/retired",
    ),
    "a retired pipeline in the ledger: tests/behaviour/test_retire_restored.py": (
        "tidegate/pipeline/state/left",
    ),
    "directories that were moved: tests/behaviour/test_moved.py": (
        "tidegate/pipeline/state/moved",
        "tidegate/pipeline/state/places",
    ),
    "commands, as they are typed: tests/behaviour/test_command_line.py, "
    "tests/behaviour/test_printed_commands.py": (
        "tidegate/cli/app",
        "tidegate/cli/*_commands",
        "tidegate/cli/loading",
        "tidegate/cli/pipeline_checks",
    ),
    "the demo, from its command to its answer: tests/e2e/test_demo.py": (
        "tidegate/demo/driver",
        "tidegate/demo/expected",
    ),
    "Airflow's side, inside of Airflow: tests/airflow": ("tidegate_airflow/*",),
}
"""Why a module needs no unit test file → modules, without `.py`; `*` stands for any part of a path.

The rule is in CONTRIBUTING.md, "Unit tests"; `tests/unit/test_shape.py` keeps it.
"""


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


def module_name(path: Path) -> str:
    """Return a module as `REASONS` names it, such as `tidegate/plan/cuts`."""
    root = next(root for root in PACKAGES.values() if path.is_relative_to(root))
    return path.relative_to(root.parent).with_suffix("").as_posix()


def without_test_file() -> list[Path]:
    """Return the modules that `tests/unit` does not mirror, whether or not they need it."""
    return [
        path
        for name, root in PACKAGES.items()
        for path in sorted(root.rglob("*.py"))
        if not has_test(name, root, path)
    ]


def reasons_for(module: str) -> list[str]:
    """Return why a module needs no unit test file; nothing if it does."""
    return [
        why
        for why, patterns in REASONS.items()
        if any(fnmatchcase(module, pattern) for pattern in patterns)
    ]


def summary(name: str, sizes: list[int]) -> tuple[str, ...]:
    """Give median, 90th percentile and largest beside the goal."""
    ninth = quantiles(sizes, n=10)[-1] if len(sizes) > 1 else sizes[0]
    goal = " / ".join(str(number) for number in GOAL[name])
    return (f"{name}s", str(len(sizes)), f"{median(sizes):.0f} / {ninth:.0f} / {max(sizes)}", goal)


def main() -> None:
    """Print the tables."""
    modules = [path for root in PACKAGES.values() for path in sorted(root.rglob("*.py"))]
    functions = sorted((found for path in modules for found in functions_of(path)), reverse=True)
    largest = sorted(
        ((lines_of(path), str(path.relative_to(ROOT))) for path in modules), reverse=True
    )
    without = without_test_file()
    lacking = [path for path in without if not reasons_for(module_name(path))]

    console = Console()
    table = Table("lines of", "count", "median / 90th / largest", "goal")
    table.add_row(*summary("module", [size for size, _ in largest]))
    table.add_row(*summary("function", [size for size, _ in functions]))
    console.print(table)
    for title, rows in (("Largest modules", largest), ("Largest functions", functions)):
        console.print(f"\n[bold]{title}")
        for size, place in rows[:LISTED]:
            console.print(f"{size:5}  {place}", highlight=False, soft_wrap=True)
    excused = len(without) - len(lacking)
    console.print(
        f"\n[bold]Modules that lack a unit test file: {len(lacking)}[/] "
        f"({excused} of {len(modules)} need none, see REASONS in tools/shape.py)",
        highlight=False,
        soft_wrap=True,
    )
    for path in lacking:
        console.print(f"       {path.relative_to(ROOT)}", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
