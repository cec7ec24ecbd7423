"""From the files of a window to splits: weights, cuts, packing."""

from tidegate.plan.splits import plan_splits
from tidegate.plan.weights import row_width

__all__ = ["plan_splits", "row_width"]
