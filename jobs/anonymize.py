"""Makes the release that a spec describes and prints its path.

spark-submit --master MASTER --py-files anon_spark.zip jobs/anonymize.py --spec SPEC
"""

import argparse

from anon_spark.exits import reported
from anon_spark.progress import shown_steps
from anon_spark.release import run
from anon_spark.session import local_session
from anon_spark.spec import read_spec

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--spec", required=True, help="the spec, a YAML file")
parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides")
parser.add_argument("--quiet", action="store_true", help="no line for each step")

if __name__ == "__main__":
    arguments = parser.parse_args()
    with reported(), shown_steps(quiet=arguments.quiet) as say:
        spec = read_spec(arguments.spec, arguments.overrides)
        with local_session() as spark:
            print(run(spec, spark, say).path)
