"""The program ``gpuio``: its results as data frames, and a job from a notebook.

Figures come from the program's own formats (``gpuio report --format csv``), so that a column means
in Python what it means everywhere (docs/formats.md).

Modules that only these functions need are imported there: most programs import gpuio to load files.
"""

import os
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional, Union

from ._environment import variable
from ._library import PATH, GpuioError, check

if TYPE_CHECKING:
    import pandas

PathLike = Union[str, "os.PathLike[str]"]

# Names the program in another place than the wheel's.
_VARIABLE = "GPUIO_PROGRAM"


def program() -> str:
    """The program: named by ``GPUIO_PROGRAM``, of this environment, or in ``PATH``."""
    import shutil
    import sysconfig

    named = variable(_VARIABLE)
    own = os.path.join(sysconfig.get_path("scripts"), "gpuio")
    found = named or (own if os.path.exists(own) else shutil.which("gpuio", path=variable("PATH") or os.defpath))
    if not found:
        raise FileNotFoundError(
            f"the program gpuio was not found: not {own}, and not in PATH. Install gpuio "
            f"(docs/install.md), or set {_VARIABLE} to the program"
        )
    return found


class Rows(List[Dict[str, Any]]):
    """The rows of a table where pandas is not installed: a figure that was not measured is None."""

    def __init__(self, rows: Iterable[Dict[str, Any]]) -> None:
        super().__init__(rows)
        self.attrs: Dict[str, Any] = {}


def _pandas() -> Any:
    """The module pandas, where it is installed."""
    try:
        import pandas
    except ImportError:
        return None
    return pandas


def _value(text: str) -> Any:
    """A cell of CSV: nothing, a number or a text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text or None


def _flat(fields: Dict[str, Any], before: str = "") -> Dict[str, Any]:
    """Fields in fields by names with a dot, as in a data frame."""
    flat: Dict[str, Any] = {}
    for name, value in fields.items():
        inside = _flat(value, f"{before}{name}.") if isinstance(value, dict) else {}
        flat.update(inside or {before + name: value})
    return flat


def _run(arguments: List[str]) -> str:
    import subprocess

    command = [program(), *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        words = done.stderr.strip() or done.stdout.strip() or "it printed nothing"
        if words.startswith("error: "):
            words = words[len("error: ") :]
        words = _without_usage(words)
        error = GpuioError(f"gpuio {arguments[0]} ended with code {done.returncode}: {words}")
        error.exit_code = done.returncode
        raise error
    return done.stdout


def _without_usage(words: str) -> str:
    """A refusal without the command line's usage, and with names of arguments for its flags."""
    import re

    def argument(flag: "re.Match[str]") -> str:
        return flag[1].replace("-", "_")

    unexpected = re.match(r"unexpected argument '--([\w-]+)' found", words)
    if not unexpected:
        return words.split("\n\n  Usage:")[0].strip()
    similar = re.search(r"a similar argument exists: '--([\w-]+)'", words)
    nearest = f"; did you mean {argument(similar)}?" if similar else ""
    return f"there is no flag for the argument {argument(unexpected)}{nearest}"


def load(*paths: PathLike) -> Union["pandas.DataFrame", Rows]:
    """Records and sweeps as a data frame, or as `Rows` without pandas: a row for each job and direction of each record.

    ``paths`` are what ``gpuio report`` takes: records, sweeps, directories of them. Columns are
    those of its ``csv`` (docs/formats.md), with units in their names, then ``record``, ``doubt``
    and an ``axis_KEY`` for each axis of a sweep. What was not measured is missing (NaN), never 0.
    """
    import csv
    import io

    if not paths:
        raise ValueError("load needs one record or sweep, or more")
    for path in paths:
        check(PATH, path=path)
        os.stat(path)  # A missing one is a FileNotFoundError, as everywhere.
    text = _run(["report", "--format", "csv", *(os.fspath(path) for path in paths)])
    pandas = _pandas()
    if pandas is None:
        lines = csv.DictReader(io.StringIO(text))
        return Rows({name: _value(cell) for name, cell in line.items()} for line in lines)
    return pandas.read_csv(io.StringIO(text), keep_default_na=False, na_values=[""])


def record(path: PathLike) -> Dict[str, Any]:
    """A record as it is (docs/schema has its schema)."""
    import json

    check(PATH, path=path)
    with open(path, encoding="utf-8") as file:
        try:
            read = json.load(file)
        except RecursionError:
            read = None
        except ValueError as error:
            raise ValueError(f"{os.fspath(path)} is no record of gpuio: {error}") from error
    if not isinstance(read, dict) or not {"schema_version", "tool", "jobs"} <= read.keys():
        raise ValueError(f"{os.fspath(path)} is no record of gpuio")
    return read


def series(path: PathLike) -> Union["pandas.DataFrame", Rows]:
    """The series of a record: a row for each job and interval, with the fields of its points."""
    check(PATH, path=path)
    rows = [
        {"job": job["name"], **point} for job in record(path)["jobs"] for point in job["series"]
    ]
    pandas = _pandas()
    return Rows(map(_flat, rows)) if pandas is None else pandas.json_normalize(rows)


def bench(
    *arguments: str, output: Optional[PathLike] = None, **flags: Union[str, int, float, bool, None]
) -> Union["pandas.DataFrame", Rows]:
    """Runs ``gpuio bench`` and returns its results as `load` does.

    Flags are those of the command line with ``_`` for ``-``: ``bench(rw="randread", bs="4k",
    runtime="2s", direct=True)``; ``arguments`` are further words, such as a job file. ``output``
    keeps the record; ``frame.attrs["record"]`` has it in any case.
    """
    import tempfile

    check(PATH, optional=True, output=output)
    for argument in arguments:
        check(PATH, argument=argument)
    words = ["bench", *arguments]
    for name, value in flags.items():
        if not isinstance(value, bool):
            check((str, int, float), optional=True, **{name: value})
        flag = "--" + name.replace("_", "-")
        if value is True:
            words.append(flag)
        elif value is not None and value is not False:
            words.extend([flag, str(value)])
    with tempfile.TemporaryDirectory(prefix="gpuio-") as scratch:
        place = os.path.join(scratch, "record.json") if output is None else os.fspath(output)
        _run([*words, "-q", "-o", place])
        frame = load(place)
        frame.attrs["record"] = record(place)
        return frame
