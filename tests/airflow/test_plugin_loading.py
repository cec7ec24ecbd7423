from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.airflow

LOADER = """
import json, sys
from airflow import plugins_manager
plugins, errors = plugins_manager._get_plugins()
import json as json_again, statistics, types
from tidegate_airflow.triggers import PartitionTrigger
print(json.dumps({
    "plugins": [plugin.name for plugin in plugins],
    "errors": errors,
    "standard": [module.__file__ for module in (json_again, statistics, types)],
    "stems": [name for name in ("sensors", "triggers", "operators", "web", "load", "__init__")
              if name in sys.modules],
    "trigger": PartitionTrigger("orders", "me", "2026-11-01", 1.0).serialize()[0],
}))
"""


def test_plugin_folder_loaded_registers_one_plugin_and_shadows_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADER], env=os.environ, capture_output=True, text=True, check=True
    )

    found = json.loads(done.stdout.splitlines()[-1])
    assert found["plugins"] == ["tidegate"]  # AF-9.5
    assert found["errors"] == {}
    assert not any("plugins" in path for path in found["standard"])
    assert found["stems"] == []
    assert found["trigger"] == "tidegate_airflow.triggers.PartitionTrigger"
