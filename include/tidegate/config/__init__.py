"""The pipeline file: its models, how it is read, and its locations. Loads no heavy package."""

from tidegate.config.bounds import Start
from tidegate.config.commit import (
    CommitConfig,
    EventTimeConfig,
    ExecuteConfig,
    GateConfig,
    PartitionTimeConfig,
)
from tidegate.config.connections import (
    Connection,
    airflow_connection,
    ask_airflow,
    lend_connection,
)
from tidegate.config.environment import (
    has_postgres,
    home,
    ledger_file,
    ledger_note,
    ledger_of_home,
    ledger_url,
    lend_values,
    named_values,
    pipelines_folder,
    postgres_folder,
    resolve_secret,
)
from tidegate.config.loading import (
    RETIRED,
    claimants,
    find_pipeline,
    load_pipeline,
    load_pipelines,
    pipeline_files,
    read_source,
    read_store,
)
from tidegate.config.metastore import MetastoreConfig
from tidegate.config.overlap import place_outside, refuse_overlap_of, source_places
from tidegate.config.part_files import CompactionConfig
from tidegate.config.pipeline import DagConfig, PipelineConfig
from tidegate.config.policies import (
    CustomPolicy,
    MetastorePolicy,
    PolicyConfig,
    SnapshotPolicy,
    SuccessFilePolicy,
)
from tidegate.config.reading import LimitsConfig, ReadConfig, SplitConfig, TableReadConfig
from tidegate.config.s3 import ENDPOINT, S3Config, is_endpoint
from tidegate.config.schema import json_schema
from tidegate.config.section import absolute_path, is_in_store, lies_inside, overlap, store_path
from tidegate.config.sources import (
    CatalogConfig,
    FilesSourceConfig,
    HudiSourceConfig,
    IcebergSourceConfig,
    InstantTime,
    MarkerOption,
    SourceConfig,
    source_meant_by,
    tables_around,
    tables_marked_by,
)
from tidegate.config.target import (
    OWNER_FILE,
    RowRule,
    TargetConfig,
    refuse_work_inside,
    work_beside,
)
from tidegate.config.template import guess_event_time, pipeline_template

__all__ = [
    "ENDPOINT",
    "OWNER_FILE",
    "RETIRED",
    "CatalogConfig",
    "CommitConfig",
    "CompactionConfig",
    "Connection",
    "CustomPolicy",
    "DagConfig",
    "EventTimeConfig",
    "ExecuteConfig",
    "FilesSourceConfig",
    "GateConfig",
    "HudiSourceConfig",
    "IcebergSourceConfig",
    "InstantTime",
    "LimitsConfig",
    "MarkerOption",
    "MetastoreConfig",
    "MetastorePolicy",
    "PartitionTimeConfig",
    "PipelineConfig",
    "PolicyConfig",
    "ReadConfig",
    "RowRule",
    "S3Config",
    "SnapshotPolicy",
    "SourceConfig",
    "SplitConfig",
    "Start",
    "SuccessFilePolicy",
    "TableReadConfig",
    "TargetConfig",
    "absolute_path",
    "airflow_connection",
    "ask_airflow",
    "claimants",
    "find_pipeline",
    "guess_event_time",
    "has_postgres",
    "home",
    "is_endpoint",
    "is_in_store",
    "json_schema",
    "ledger_file",
    "ledger_note",
    "ledger_of_home",
    "ledger_url",
    "lend_connection",
    "lend_values",
    "lies_inside",
    "load_pipeline",
    "load_pipelines",
    "named_values",
    "overlap",
    "pipeline_files",
    "pipeline_template",
    "pipelines_folder",
    "place_outside",
    "postgres_folder",
    "read_source",
    "read_store",
    "refuse_overlap_of",
    "refuse_work_inside",
    "resolve_secret",
    "source_meant_by",
    "source_places",
    "store_path",
    "tables_around",
    "tables_marked_by",
    "work_beside",
]
