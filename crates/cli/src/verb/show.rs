//! `gpuio show`: a saved record, printed again.

use std::process::ExitCode;

use crate::args::Show;
use crate::failure::Failure;
use crate::ui::terminal_width;
use crate::{output, records, unused};

pub(crate) fn run(show: &Show) -> Result<ExitCode, Failure> {
    unused::show(show)?;
    let row = output::find(show.format.as_deref().unwrap_or("text"))?;
    let record = records::record(&show.record)?;
    output::put(&output::rendered(row, &record, terminal_width(), show.evidence))?;
    Ok(ExitCode::SUCCESS)
}
