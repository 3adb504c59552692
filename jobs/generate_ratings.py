"""Writes a Netflix-scale table of made-up ratings as Parquet.

spark-submit --py-files anon_spark.zip jobs/generate_ratings.py --output out/ratings.parquet
"""

import argparse

from anon_spark.datasets.ratings import ROWS, ratings
from anon_spark.exits import reported
from anon_spark.session import local_session
from anon_spark.source_errors import reading


def main() -> None:
    """Generates and writes the table; master and resources come from spark-submit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=ROWS, help="ratings (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="another seed is another table")
    parser.add_argument("--partitions", type=int, help="files; a million rows in each by default")
    parser.add_argument("--output", required=True, help="directory or URI; must not exist yet")
    given = parser.parse_args()
    if given.rows < 1 or (given.partitions is not None and given.partitions < 1):
        parser.error("--rows and --partitions must be at least 1")
    with reported(), reading(f"output {given.output}"):
        spark = local_session(app_name="anon_spark ratings")
        ratings(spark, given.rows, given.seed, given.partitions).write.parquet(given.output)


if __name__ == "__main__":
    main()
