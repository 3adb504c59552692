"""The command line: anon-spark demo, run, plan, verify, assess, attack, explain and doctor.

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
FileFormat = Annotated[
    str | None,
    typer.Option("--format", metavar="NAME", help="The format, if the suffix does not say it."),
]
ReaderOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="KEY=VALUE",
        help="An option of Spark's reader, such as sep=';'. Can be repeated. CSV has a header "
        "line unless header=false.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print all figures as JSON.")]
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
      anon-spark assess people.csv --quasi-identifiers age,zip   how anonymous any table is
      anon-spark attack out/adult --auxiliary voters.csv         whom it gives away
      anon-spark explain                       the models, methods, forms and metrics of a spec
      anon-spark doctor                        what keeps it from running on this machine

    \b
    Exit codes:
      0  released, verified, assessed, or attacked
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
        from anon_spark.opening import opened
        from anon_spark.plan import plan as make_plan
        from anon_spark.progress import shown_steps
        from anon_spark.session import local_session
        from anon_spark.spec import read_spec

        with shown_steps(quiet=quiet) as say:
            wanted = read_spec(spec, overrides or ())
            say("starting Spark")
            with opened(wanted, local_session(), say) as (df, complete):
                found = make_plan(df, complete, say)
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
def assess(
    table: Annotated[
        str,
        typer.Argument(metavar="TABLE", help="Parquet, CSV, JSON or ORC; or a release of ours."),
    ],
    quasi_identifiers: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B,C",
            help="Columns by which people are found, separated by commas; given twice or more, "
            "each is one column, commas and all. A release of ours brings its own.",
        ),
    ] = None,
    sensitive: Annotated[
        list[str] | None,
        typer.Option(metavar="D,E", help="Columns that must not be learnt; as above."),
    ] = None,
    person: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column that tells whom a row is about."),
    ] = None,
    population: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="A table of everybody, for the journalist's risk."),
    ] = None,
    sampling_fraction: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="The share of the population that the table holds."),
    ] = None,
    population_size: Annotated[
        int | None, typer.Option(metavar="N", help="Or how large the population is.")
    ] = None,
    threshold: Annotated[
        float, typer.Option(metavar="RISK", help="The acceptable risk of a row.")
    ] = 0.2,
    leave_out_suppressed: Annotated[
        bool,
        typer.Option(
            "--leave-out-suppressed",
            help="Leave out rows whose quasi-identifiers are all null or *; else they are a class.",
        ),
    ] = False,
    unique_columns: Annotated[
        bool, typer.Option(help="Look for the smallest sets of columns that make rows unique.")
    ] = True,
    among: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B,C", help="In which columns; in all but the sensitive and the person's."
        ),
    ] = None,
    file_format: FileFormat = None,
    options: ReaderOptions = None,
    as_json: AsJson = False,
) -> None:
    """Measure how anonymous a table is.

    Any table, original or released: the level that it has under every privacy model, the risks of
    re-identification, and which columns single people out. Shows no value of the table.

    \b
    Examples:
      anon-spark assess people.csv --quasi-identifiers age,zip,sex --sensitive disease
      anon-spark assess visits.parquet --quasi-identifiers age,zip --sensitive disease \\
        --person patient --sampling-fraction 0.1 --json
      anon-spark assess people.csv --option sep=';' --quasi-identifiers age --population all.csv
      anon-spark assess out/adult
    """
    with reported():
        import json

        from anon_spark import account
        from anon_spark.assessment import assess_path
        from anon_spark.session import local_session

        found = assess_path(
            table,
            local_session(),
            quasi_identifiers=_columns(quasi_identifiers),
            sensitive=_columns(sensitive),
            person=person,
            population=population,
            kind=file_format,
            options=_options(options or ()),
            threshold=threshold,
            sampling_fraction=sampling_fraction,
            population_size=population_size,
            leave_out_suppressed=leave_out_suppressed,
            search_unique=unique_columns,
            among=_columns(among),
        )
        if as_json:
            told = found.to_dict()
            typer.echo(json.dumps(told, indent=2, ensure_ascii=False, allow_nan=False))
            return
        for part in account.assessment_account(found):
            account.console().print(part)


@app.command()
def attack(
    release: Annotated[
        str, typer.Argument(metavar="RELEASE", help="A target or release folder of ours.")
    ],
    auxiliary: Annotated[
        str,
        typer.Option(
            metavar="TABLE",
            help="Known persons, such as a voter list: Parquet, CSV, JSON or ORC, with original "
            "quasi-identifiers under their names in the source.",
        ),
    ],
    spec: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC", help="The spec of the release, where hierarchies come from files."
        ),
    ] = None,
    person: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="A column of TABLE that tells whom a row is about."),
    ] = None,
    file_format: FileFormat = None,
    options: ReaderOptions = None,
    as_json: AsJson = False,
) -> None:
    """Play the linking attack.

    For every known person, the published rows that may be about that person, and how sure they
    make of the sensitive values. Shows figures only, no value of anybody. Candidates are rows, also
    where the release counts persons; an empty value of the list means that it is missing at the
    source, not that it is unknown: leave out a column that is.

    \b
    Examples:
      anon-spark attack out/patients --auxiliary voters.csv --spec patients.yaml
      anon-spark attack out/visits --auxiliary known.parquet --person name --json
    """
    with reported():
        import json

        from anon_spark import account
        from anon_spark.assessed_tables import open_table
        from anon_spark.attack import attack as make_attack
        from anon_spark.session import local_session
        from anon_spark.spec import read_spec

        given = {} if spec is None else read_spec(spec).attributes
        session = local_session()
        found = make_attack(
            release,
            open_table(session, auxiliary, file_format, _options(options or ())).df,
            session,
            hierarchies={name: attribute.hierarchy for name, attribute in given.items()},
            person=person,
        )
        if as_json:
            typer.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False, allow_nan=False))
            return
        for part in account.attack_account(found):
            account.console().print(part)


@app.command()
def explain(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A model, method, form or metric.")
    ] = None,
) -> None:
    """Tell what a spec can choose by name, and the parameters of each.

    \b
    Examples:
      anon-spark explain
      anon-spark explain mdav
    """
    with reported():
        from anon_spark.spec.reference import reference

        typer.echo(reference(name))


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


def _options(given: Sequence[str]) -> dict[str, str]:
    from anon_spark.errors import SpecError

    wrong = [text for text in given if not text.partition("=")[0] or "=" not in text]
    if wrong:
        raise SpecError(
            [f"--option: {text!r} is not key=value; write for example sep=;" for text in wrong]
        )
    return dict(text.split("=", 1) for text in given)
