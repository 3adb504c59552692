"""``python -m anon_spark``: the same as ``anon-spark``."""

from anon_spark.cli import main

if __name__ == "__main__":
    main()
