"""Proves the latest release of a spec again from its files.

spark-submit --master MASTER --py-files anon_spark.zip jobs/verify.py --spec SPEC
"""

import argparse

from anon_spark.audit import verify
from anon_spark.exits import reported
from anon_spark.session import local_session
from anon_spark.spec import read_spec

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--spec", required=True, help="the spec, a YAML file")
parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides")
parser.add_argument("--quiet", action="store_true", help="nothing but errors")

if __name__ == "__main__":
    arguments = parser.parse_args()
    with reported():
        spec = read_spec(arguments.spec, arguments.overrides)
        with local_session() as spark:
            audit = verify(spec.release.path, spark)
            audit.require()
            if not arguments.quiet:
                proof = audit.proof
                print(f"verified {audit.path}: {proof.rows} rows in {proof.classes} classes")
