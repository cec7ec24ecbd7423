"""Make the splits of a window from its files: order, weights, cuts, packing, and a summary."""

from tidegate.plan.change_groups import bucket_count, is_small, plan_change_splits
from tidegate.plan.splits import adapted_target, merged_bounds, plan_one_split, plan_splits
from tidegate.plan.summary import delete_totals, split_totals
from tidegate.plan.weights import Scale, row_width

__all__ = [
    "Scale",
    "adapted_target",
    "bucket_count",
    "delete_totals",
    "is_small",
    "merged_bounds",
    "plan_change_splits",
    "plan_one_split",
    "plan_splits",
    "row_width",
    "split_totals",
]
