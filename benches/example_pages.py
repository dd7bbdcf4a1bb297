#!/usr/bin/env python3
"""Makes the pages of docs/example again, by this gpuio, out of the records that they carry.

    benches/example_pages.py target/release/gpuio [chromium]

Each page has its records in it (gzip, base64). They are unpacked into a temporary directory and
`gpuio report` and `gpuio compare` are run on them. With a browser the pictures of the pages are
made too (1400 x 1300, light).
"""

import base64
import gzip
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "docs/example"
RECORDS = re.compile(r'<script type="text/plain" id="records">([^<]*)</script>')
BEGUN = re.compile(r"<p>Sweep paths, begun ([^<]*):</p><pre>([^<]*)</pre>")
COMPARED = ["--axis", "path=gds,gather", "--despite", "all"]


def records(page):
    """The records of a page: name, place in the sweep, record."""
    packed = RECORDS.search((EXAMPLES / page).read_text())
    return json.loads(gzip.decompress(base64.b64decode(packed.group(1))))


def sweep(members):
    """The description of the sweep that these are the runs of."""
    keys = [key for key, _ in members[0]["at"]]
    points = {}
    for member in members:
        at = tuple(value for _, value in member["at"])
        name = member["name"].rsplit("/", 1)[-1]
        points.setdefault(at, []).append(name if name.endswith(".json") else name + ".json")
    axes = [
        {"key": key, "values": list(dict.fromkeys(at[nth] for at in points))}
        for nth, key in enumerate(keys)
    ]
    began, command = BEGUN.search((EXAMPLES / "paths.html").read_text()).groups()
    return {
        "gpuio_sweep": 1,
        "name": "paths",
        "tool": members[0]["record"]["tool"],
        "command": command.split(),
        "started_at": began,
        "seed": 0,
        "axes": axes,
        "points": [
            {"at": list(at), "records": names, "ended": None} for at, names in points.items()
        ],
    }


def main(gpuio, browser=None):
    gpuio = str(pathlib.Path(gpuio).resolve())
    with tempfile.TemporaryDirectory() as at:
        at = pathlib.Path(at)

        def run(*words):
            # A comparison with a difference ends with 1.
            done = subprocess.run([gpuio, *words], cwd=at, capture_output=True, text=True)
            if done.returncode > 1:
                sys.exit(f"gpuio {' '.join(words)}: {done.stderr}")

        members = records("paths.html")
        (at / "paths").mkdir()
        described = sweep(members)
        (at / "paths/sweep.json").write_text(json.dumps(described))
        names = [name for point in described["points"] for name in point["records"]]
        for name, member in zip(names, members):
            (at / "paths" / name).write_text(json.dumps(member["record"]))
        (one,) = records("run.html")
        title = re.search(r"<title>([^<]*)", (EXAMPLES / "run.html").read_text()).group(1)
        name = one["name"].removesuffix(".json") + ".json"
        (at / name).write_text(json.dumps(one["record"]))
        run("report", "paths", "-o", "paths.html", "--topo", "none")
        run("report", name, "-o", "run.html", "--topo", "none", "--title", title)
        pages = ["paths", "run", "compare-gds-gather"]
        run("compare", "paths", *COMPARED, "--format", "html", "-o", pages[2] + ".html")
        run("compare", "paths", *COMPARED, "-o", pages[2] + ".txt")
        for name in [page + ".html" for page in pages] + [pages[2] + ".txt"]:
            (EXAMPLES / name).write_bytes((at / name).read_bytes())
        for page in pages if browser else []:
            subprocess.run(
                [browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                 "--hide-scrollbars", "--virtual-time-budget=6000",
                 "--disable-background-networking", f"--user-data-dir={at / 'browser'}",
                 "--window-size=1400,1300", f"--screenshot={EXAMPLES / page}.png",
                 (EXAMPLES / page).with_suffix(".html").as_uri()],
                check=True, stderr=subprocess.DEVNULL)
            if shutil.which("pngquant"):
                picture = str(EXAMPLES / page) + ".png"
                subprocess.run(["pngquant", "--force", "--output", picture, "64", picture])


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])
