"""Anonymized Parquet releases of microdata on Apache Spark, proved from the bytes written.

    >>> import anon_spark
    >>> spec = anon_spark.read_spec("conf/adult.yaml")  # doctest: +SKIP
    >>> release = anon_spark.anonymize(df, spec)  # doctest: +SKIP

Names are imported when they are first used, so that workers load only what they need.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anon_spark.assessed import Assessment
    from anon_spark.assessment import assess
    from anon_spark.audit import verify
    from anon_spark.errors import AnonSparkError, DataError, RequirementError, SpecError
    from anon_spark.release import Release, anonymize, run
    from anon_spark.spec import ReleaseSpec, read_spec

_HOME = {
    "AnonSparkError": "errors",
    "Assessment": "assessed",
    "DataError": "errors",
    "Release": "release",
    "ReleaseSpec": "spec",
    "RequirementError": "errors",
    "SpecError": "errors",
    "anonymize": "release",
    "assess": "assessment",
    "read_spec": "spec",
    "run": "release",
    "verify": "audit",
}

__all__ = [
    "AnonSparkError",
    "Assessment",
    "DataError",
    "Release",
    "ReleaseSpec",
    "RequirementError",
    "SpecError",
    "anonymize",
    "assess",
    "read_spec",
    "run",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"anon_spark.{_HOME[name]}"), name)
    raise AttributeError(f"module 'anon_spark' has no attribute {name!r}")
