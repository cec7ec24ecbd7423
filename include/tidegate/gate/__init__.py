"""Expectations on a partition as it would be published, and the verdict (PC-C05, AF-6.3–6.6)."""

from tidegate.gate.check import check, suite_mistakes
from tidegate.gate.content import GateInput
from tidegate.gate.frame import SparkFrame
from tidegate.gate.library import prepare
from tidegate.gate.suite import Expectation, Suite, load_suite

__all__ = [
    "Expectation",
    "GateInput",
    "SparkFrame",
    "Suite",
    "check",
    "load_suite",
    "prepare",
    "suite_mistakes",
]
