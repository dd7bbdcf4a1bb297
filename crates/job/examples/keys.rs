//! Prints the tables of keys that `docs/job-file.md` holds between its markers.

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(gpuio_job::spec::markdown_table().as_bytes())
}
