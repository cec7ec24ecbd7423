"""The composition root: the only place that sees every stage, and hands each one what it needs."""

from tidegate.pipeline.pipeline import ExecutorFactory, Pipeline, open_pipeline

__all__ = ["ExecutorFactory", "Pipeline", "open_pipeline"]
