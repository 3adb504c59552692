"""The package as users ship it to a cluster."""

import zipfile
from pathlib import Path

import anon_spark


def zip_package(path: Path) -> Path:
    """The package as a zip, as `zip -r anon_spark.zip anon_spark` makes it."""
    home = Path(anon_spark.__file__).parent
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for item in sorted(home.rglob("*")):
            if item.is_file() and "__pycache__" not in item.parts:
                file.write(item, item.relative_to(home.parent))
    return path
