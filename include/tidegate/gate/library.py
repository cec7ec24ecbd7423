"""Run expectations with Great Expectations. The only caller of the library; judges nothing."""

from __future__ import annotations

import difflib
import json
import logging
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tidegate.config.words import suggest
from tidegate.errors import SuiteInvalid
from tidegate.gate.suite import Sees

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tidegate.gate.suite import Expectation, Suite

PANDAS = "pandas"
SPARK = "spark"

_POSITION = "tidegate-position"
_RESULT_FORMAT = "SUMMARY"
_TOGETHER = "__root__"
"""What the library says of several arguments."""
_LOGGER = "great_expectations"


def run_expectations(
    suite: Suite, frame_of: Callable[[Sees], Any], engine: str
) -> tuple[dict[str, Any], ...]:
    """Run every expectation of a suite.

    Args:
        suite: what to check.
        frame_of: makes the frame that expectations see, with the columns that the suite names:
            with `PANDAS` always a pandas frame, with `SPARK` a Spark frame except for
            `Sees.SCHEMA`. Called once for each form that is needed.
        engine: `PANDAS` or `SPARK`.

    Returns:
        The library's results in the order of the suite, JSON-ready.

    Raises:
        SuiteInvalid: the library does not know a check, refuses its arguments, or failed while
            running it.
    """
    forms = {expectation.sees for expectation in suite.expectations}
    frames = {form: frame_of(form) for form in sorted(forms)}
    with _quiet():
        try:
            results = _run(suite, frames, engine)
        finally:
            if engine == SPARK:
                for form in forms - {Sees.SCHEMA}:
                    frames[form].unpersist()  # the library caches a frame and does not release it
    results.sort(key=lambda result: int(result["expectation_config"]["meta"].pop(_POSITION)))
    for expectation, result in zip(suite.expectations, results, strict=True):
        _refuse_failed_run(suite, expectation, result)
    return tuple(results)


def prepare() -> None:
    """Load the library, which takes seconds once per process."""
    with _quiet():
        import great_expectations  # noqa: F401


def version() -> str:
    """Return the library and its version, for `gate.json`."""
    from importlib.metadata import version as installed

    return f"great-expectations {installed('great-expectations')}"


def _run(suite: Suite, frames: Mapping[Sees, Any], engine: str) -> list[Any]:
    # The import takes seconds, because of scipy, altair and others, so it is done here (AF-6.3).
    import great_expectations as gx
    from great_expectations.data_context.types.base import (
        DataContextConfig,
        InMemoryStoreBackendDefaults,
        ProgressBarsConfig,
    )

    # In memory only, and without a docs site, so that parallel tasks do not race (AF-6.5).
    stores = InMemoryStoreBackendDefaults(init_temp_docs_sites=False)
    bars = ProgressBarsConfig(globally=False)
    settings = DataContextConfig(store_backend_defaults=stores, progress_bars=bars)
    context = gx.get_context(mode="ephemeral", project_config=settings)
    sources = context.data_sources
    built: dict[Sees, list[Any]] = {form: [] for form in frames}
    for number, item in enumerate(suite.expectations):
        built[item.sees].append(build(suite, number))
    results = []
    for form, checks in built.items():
        is_spark = engine == SPARK and form is not Sees.SCHEMA
        source = (sources.add_spark if is_spark else sources.add_pandas)(form)
        asset = source.add_dataframe_asset(form)
        results += _validate(gx, suite, asset, frames[form], checks)
    return results


def build(suite: Suite, number: int) -> Any:
    """Build one of the library's expectations; `number` counts from 0.

    Raises:
        SuiteInvalid: the library does not know the check, or refuses its arguments.
    """
    with _quiet():
        return _build(suite, number, suite.expectations[number])


def _build(suite: Suite, number: int, expectation: Expectation) -> Any:
    from great_expectations.exceptions import GreatExpectationsError
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

    # One by one: in a list, the library only logs unknown checks, and runs the others.
    try:
        return ExpectationConfiguration(
            type=expectation.type,
            kwargs=dict(expectation.kwargs),
            severity=expectation.severity,
            description=expectation.description,
            meta={**expectation.meta, _POSITION: number},
        ).to_domain_obj()
    except (GreatExpectationsError, ValueError, TypeError) as refused:
        problem = f"expectation {number + 1}, {expectation.name}: {_reason(refused, expectation)}"
        raise SuiteInvalid(suite=suite.file, problem=problem) from refused


def _reason(refused: Exception, expectation: Expectation) -> str:
    """Return why the library refuses an expectation: one sentence for each argument."""
    from great_expectations.compatibility.pydantic import ValidationError
    from great_expectations.exceptions import ExpectationNotFoundError
    from great_expectations.expectations.registry import list_registered_expectation_implementations

    if isinstance(refused, ExpectationNotFoundError):
        known = list_registered_expectation_implementations()
        # There are too many to list all.
        near = difflib.get_close_matches(expectation.type, known, n=3, cutoff=0)
        return f"the library does not know it; the nearest are {', '.join(near)}"
    if not isinstance(refused, ValidationError):
        return " ".join(str(refused).split())
    said: dict[str, str] = {}
    for mistake in refused.errors():
        # An argument of several possible types has a mistake for each; the first is the usual one.
        said.setdefault(str(mistake["loc"][0]), _mistake(mistake, refused.model, expectation))
    if len(said) > 1:
        # What the arguments mean together was judged without the wrong ones.
        said.pop(_TOGETHER, None)
    return "; ".join(said.values())


def _mistake(mistake: Mapping[str, Any], model: Any, expectation: Expectation) -> str:
    from great_expectations.expectations.expectation import BatchExpectation

    name, message = str(mistake["loc"][0]), str(mistake["msg"])
    if name == _TOGETHER:
        return message
    if mistake["type"] == "value_error.extra":
        own = sorted(model.__fields__.keys() - BatchExpectation.__fields__.keys())
        return f"unknown argument `{name}`; {suggest(name, own)}"
    if mistake["type"] == "value_error.missing":
        return f"argument `{name}` is missing"
    return f"`{name}` is {expectation.kwargs.get(name)!r}: {message}"


def _validate(gx: Any, suite: Suite, asset: Any, frame: Any, expectations: list[Any]) -> list[Any]:
    from great_expectations.exceptions import SuiteParameterError

    batch = asset.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": frame})
    checks = gx.ExpectationSuite(name=suite.name, expectations=expectations)
    given = dict(suite.parameters)
    try:
        result = batch.validate(checks, expectation_parameters=given, result_format=_RESULT_FORMAT)
    except SuiteParameterError as refused:
        problem = f"{refused}; `suite_parameters` gives {sorted(given) or 'none'}"
        raise SuiteInvalid(suite=suite.file, problem=problem) from refused
    return [_plain(suite, one) for one in result.results]


def _plain(suite: Suite, result: Any) -> dict[str, Any]:
    """Return one of the library's results, JSON-ready."""
    try:
        said = result.to_json_dict()
    except TypeError as refused:
        # Such as a duration: the library computes its mean, and cannot write it down.
        kind = result.expectation_config.type
        column = result.expectation_config.kwargs.get("column")
        problem = f"{kind}({column}) could not be run: {refused}"
        raise SuiteInvalid(suite=suite.file, problem=problem) from refused
    # NaN, the aggregate of nothing, is not JSON.
    plain = json.loads(json.dumps(said, default=_plain_value), parse_constant=lambda _: None)
    return dict(plain)


def _plain_value(value: Any) -> Any:
    """Return a value that is not JSON as one that is: the truth of numpy is not a text."""
    import numpy as np

    return value.item() if isinstance(value, np.generic) else str(value)


def _refuse_failed_run(suite: Suite, expectation: Expectation, result: Mapping[str, Any]) -> None:
    info = result.get("exception_info") or {}
    nested = [one for one in info.values() if isinstance(one, dict)]
    for one in nested or [info]:
        if one.get("raised_exception"):
            reason = " ".join(str(one.get("exception_message") or "no reason given").split())
            problem = f"{expectation.name} could not be run: {reason}"
            raise SuiteInvalid(suite=suite.file, problem=problem)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the library's internal messages out of the task's log; the results have the rest."""
    logger = logging.getLogger(_LOGGER)
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        # It imports all of pyspark, which warns of pandas 3 at each import (AF-1.6).
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)
