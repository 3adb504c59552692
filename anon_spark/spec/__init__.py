"""What a user asks for: the spec of a release, read from YAML or built in Python.

A spec is checked as a whole: every mistake becomes one line that names the field, the value and the
remedy, and all of them are reported together. Neither the seed nor reader options are ever
repeated in a message.
"""

from anon_spark.spec.hierarchies import HierarchySpec, IntervalsSpec, PrefixSpec
from anon_spark.spec.parts import AttributeSpec, PivotSpec, Role, SourceSpec
from anon_spark.spec.release_spec import ReleaseSpec, ReleaseTarget, read_spec

__all__ = [
    "AttributeSpec",
    "HierarchySpec",
    "IntervalsSpec",
    "PivotSpec",
    "PrefixSpec",
    "ReleaseSpec",
    "ReleaseTarget",
    "Role",
    "SourceSpec",
    "read_spec",
]
