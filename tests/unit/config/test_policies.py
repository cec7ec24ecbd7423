"""A policy's options: its word alone, or a mapping with the word among its keys."""

from __future__ import annotations

from typing import Any, get_args

import jsonschema
import pytest

from tidegate.commit.policies import OPENERS, open_policy
from tidegate.commit.triggers import TRIGGERS
from tidegate.config import (
    CommitConfig,
    CustomPolicy,
    PipelineConfig,
    PolicyConfig,
    SuccessFilePolicy,
    TargetConfig,
    json_schema,
)
from tidegate.config.commit import Trigger
from tidegate.config.policies import POLICIES
from tidegate.model.publication import PolicySpec
from tidegate.pipeline.executors import table_in_spark


def policies(*said: Any) -> tuple[PolicyConfig, ...]:
    """Read what stands under `commit.policies`."""
    return CommitConfig.model_validate({"policies": list(said)}).policies


def whole(*said: Any) -> dict[str, Any]:
    """Write a pipeline file with policies."""
    return {
        "name": "orders",
        "source": {"kind": "files", "path": "/in"},
        "target": {"path": "/out"},
        "commit": {"policies": list(said), "trigger": "process-time"},
    }


def test_every_policy_has_options_and_a_side_that_acts() -> None:
    assert POLICIES.keys() == OPENERS.keys()
    for word, model in POLICIES.items():
        assert model.word == word
        assert not model.model_fields or word in model.model_fields


def test_every_trigger_decides() -> None:
    assert set(get_args(Trigger)) == TRIGGERS.keys()


@pytest.mark.parametrize("said", ["success-file", "Success_File", {"success-file": None}], ids=str)
def test_word_alone_is_a_policy(said: Any) -> None:
    assert policies(said) == (SuccessFilePolicy(),)


def test_policies_resolved_are_written_as_in_a_file() -> None:
    said = [{"custom": "shop:Announce", "parameters": ["loud"]}, "success-file"]

    made = PipelineConfig.from_resolved(whole(*said))

    assert made.resolved()["commit"]["policies"] == said
    assert made.commit.policies == (
        CustomPolicy(custom="shop:Announce", parameters=("loud",)),
        SuccessFilePolicy(),
    )


@pytest.mark.parametrize(
    ("policy", "spec"),
    [
        (SuccessFilePolicy(), PolicySpec("success-file")),
        (CustomPolicy(custom="a:B", parameters=("x",)), PolicySpec("custom", "a:B", ("x",))),
    ],
    ids=["success file", "custom"],
)
def test_commit_plan_says_a_policy_as_plans_always_have(
    policy: PolicyConfig, spec: PolicySpec
) -> None:
    assert policy.spec == spec


def test_success_file_is_made_without_options() -> None:
    target = TargetConfig(path="/lake/orders")

    assert callable(open_policy(SuccessFilePolicy(), target, table_in_spark).commit)


@pytest.mark.parametrize(
    ("said", "is_valid"),
    [
        (["success-file"], True),
        ([{"custom": "a:B"}, "success-file"], True),
        ([], True),
        (["sucess-file"], False),
        ([{"parameters": []}], False),
        ([{"custom": "a:B", "params": []}], False),
    ],
    ids=["word", "custom", "none", "misspelt", "no word", "misspelt option"],
)
def test_schema_tells_policies_apart(said: list[Any], is_valid: bool) -> None:
    errors = list(jsonschema.Draft202012Validator(json_schema()).iter_errors(whole(*said)))

    assert not errors if is_valid else errors
