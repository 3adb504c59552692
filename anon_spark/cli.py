"""The command line: anon-spark demo | run | plan | verify | doctor.

Results go to stdout, progress and errors to stderr. What the commands need is imported when they
run, so that help comes at once.
"""
# ruff: noqa: D301, PLC0415 - click reads \b as a character; imports wait for their command

import csv
from collections.abc import Sequence
from typing import Annotated

import typer

from anon_spark.exits import reported

app = typer.Typer(
    name="anon-spark",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

SpecFile = Annotated[str, typer.Argument(metavar="SPEC", help="The spec, a YAML file.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a field of the spec, such as privacy.0.k=5. Can be repeated.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show errors only.")]


def main() -> None:
    """Runs the command line; ends with exit code 0, 2 (spec), 3 (requirement) or 4 (data)."""
    with reported():
        app(prog_name="anon-spark")


def _version(wanted: bool) -> None:
    if wanted:
        from anon_spark.manifest import package_version

        typer.echo(f"anon-spark {package_version()}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Anonymized Parquet releases of microdata on Apache Spark, proved from the bytes written.

    \b
    Examples:
      anon-spark demo                          10-anonymous census records, in out/adult
      anon-spark plan conf/adult.yaml          what would happen; writes nothing
      anon-spark run conf/adult.yaml           makes the release
      anon-spark verify out/adult              proves it again from its files
      anon-spark doctor                        what keeps it from running on this machine

    \b
    Exit codes:
      0  released, or verified
      2  the spec or its files are wrong
      3  the requirement cannot be met, or a proof failed: nothing is published
      4  the data could not be read or written
    """


@app.command()
def demo(
    path: Annotated[
        str, typer.Option(metavar="PATH", help="Where the release is written.")
    ] = "out/adult",
    k: Annotated[int, typer.Option(metavar="K", help="The least number of rows of a class.")] = 10,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show errors and the release path only.")
    ] = False,
) -> None:
    """Anonymize the demo table.

    30,162 census records that come with the package.

    \b
    Examples:
      anon-spark demo
      anon-spark demo --k 50 --path /tmp/adult
    """
    with reported():
        from anon_spark import account
        from anon_spark.datasets.adult import demo_spec
        from anon_spark.progress import shown_steps
        from anon_spark.release import run as make_release
        from anon_spark.session import local_session

        with shown_steps(quiet=quiet) as say:
            spec = demo_spec(path, k)
            say("starting Spark")
            release = make_release(spec, local_session(), say)
        if quiet:
            typer.echo(release.path)
            return
        for part in (
            *account.release_account(release),
            *account.example_rows(release),
            *account.next_steps(path),
        ):
            account.console().print(part)


@app.command()
def run(
    spec: SpecFile,
    overrides: Overrides = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show errors and the release path only.")
    ] = False,
) -> None:
    """Make the release that a spec describes.

    \b
    Examples:
      anon-spark run conf/adult.yaml
      anon-spark run conf/adult.yaml --set privacy.0.k=5 --set release.path=/tmp/adult
      anon-spark run patients.yaml --set 'attributes."zip code".role=quasi_identifier'
      release=$(anon-spark run patients.yaml --quiet)
    """
    with reported():
        from anon_spark import account
        from anon_spark.plan_findings import spec_findings
        from anon_spark.progress import shown_steps
        from anon_spark.release import run as make_release
        from anon_spark.session import local_session
        from anon_spark.spec import read_spec

        with shown_steps(quiet=quiet) as say:
            wanted = read_spec(spec, overrides or ())
            for finding in () if quiet else spec_findings(wanted):
                typer.echo(f"warning: {finding.text}", err=True)
            say("starting Spark")
            release = make_release(wanted, local_session(), say)
        if quiet:
            typer.echo(release.path)
            return
        for part in account.release_account(release):
            account.console().print(part)


@app.command()
def plan(spec: SpecFile, overrides: Overrides = None, quiet: Quiet = False) -> None:
    """Say what a spec would do.

    Roles, partitions, expected classes and loss, problems. Reads the table, writes nothing.
    Ends with the exit code that run would have.

    \b
    Examples:
      anon-spark plan conf/adult.yaml
      anon-spark plan conf/adult.yaml --set privacy.0.k=100
    """
    with reported():
        from anon_spark.plan import plan as make_plan
        from anon_spark.preparation import read_source
        from anon_spark.progress import shown_steps
        from anon_spark.session import local_session
        from anon_spark.spec import read_spec

        with shown_steps(quiet=quiet) as say:
            wanted = read_spec(spec, overrides or ())
            say("starting Spark")
            found = make_plan(read_source(wanted, local_session()), wanted, say)
        if quiet:
            found.require()
            return
        typer.echo(found.to_text())
        raise typer.Exit(found.exit_code)


@app.command()
def verify(
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="A target, a release folder, or any Parquet.")
    ],
    quasi_identifiers: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B,C",
            help="The published quasi-identifiers of a release made elsewhere, separated by "
            "commas; given twice or more, each is one column, commas and all.",
        ),
    ] = None,
    k: Annotated[
        int | None,
        typer.Option(metavar="K", help="The k to check; else what the manifest promises."),
    ] = None,
    person: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="A column of persons, of whom k are counted."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Prove a release again from its files.

    One of ours, or one made elsewhere if its columns and k are given. Ends with exit code 3
    if it is not what it promises.

    \b
    Examples:
      anon-spark verify out/adult
      anon-spark verify out/adult --k 5
      anon-spark verify theirs.parquet --quasi-identifiers age,zip,sex --k 5
      anon-spark verify theirs.parquet --quasi-identifiers age --quasi-identifiers 'town, state' \\
        --k 5 --person patient
    """
    with reported():
        from anon_spark import account
        from anon_spark.audit import verify as make_audit
        from anon_spark.session import local_session

        columns = _columns(quasi_identifiers)
        audit = make_audit(path, local_session(), quasi_identifiers=columns, k=k, person=person)
        if not quiet:
            for part in account.audit_account(audit):
                account.console().print(part)
        audit.require()


@app.command()
def doctor(
    target: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Where releases are to be written, to try it."),
    ] = None,
    spark: Annotated[bool, typer.Option(help="Start Spark and a Python worker.")] = True,
) -> None:
    """Look for what is wrong with this machine.

    \b
    Examples:
      anon-spark doctor
      anon-spark doctor --target out --no-spark
    """
    with reported():
        from anon_spark import account
        from anon_spark.doctor import checks

        found = checks(target, start_spark=spark)
        for part in account.checks_account(found):
            account.console().print(part)
        if not all(check.ok for check in found):
            raise typer.Exit(4)


def _columns(given: Sequence[str] | None) -> list[str] | None:
    if not given:
        return None
    names = next(csv.reader(given, skipinitialspace=True)) if len(given) == 1 else list(given)
    return list(dict.fromkeys(names))
