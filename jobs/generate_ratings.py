"""Writes a Netflix-scale table of made-up ratings as Parquet.

spark-submit --py-files anon_spark.zip jobs/generate_ratings.py --output out/ratings.parquet
"""

import argparse

from pyspark.sql import SparkSession

from anon_spark.datasets.ratings import ROWS, ratings


def main() -> None:
    """Generates and writes the table; master and resources come from spark-submit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=ROWS, help="ratings (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="another seed is another table")
    parser.add_argument("--partitions", type=int, help="files; a million rows in each by default")
    parser.add_argument("--output", required=True, help="directory or URI; must not exist yet")
    given = parser.parse_args()
    spark = SparkSession.builder.appName("anon_spark ratings").getOrCreate()
    ratings(spark, given.rows, given.seed, given.partitions).write.parquet(given.output)


if __name__ == "__main__":
    main()
