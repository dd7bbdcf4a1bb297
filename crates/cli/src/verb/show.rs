//! `gpuio show`: a saved record, printed again.

use std::path::Path;
use std::process::ExitCode;

use gpuio_record::Record;
use gpuio_report::format::json;

use crate::args::Show;
use crate::failure::Failure;
use crate::output;
use crate::ui::terminal_width;

pub(crate) fn run(show: &Show) -> Result<ExitCode, Failure> {
    let row = output::find(show.format.as_deref().unwrap_or("text"))?;
    let record = read(&show.record)?;
    output::put(&output::rendered(row, &record, terminal_width(), show.evidence))?;
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<Record, Failure> {
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::Usage(format!("{name}: the record can't be read: {error}")))?;
    json::parse(&text).map_err(|error| {
        let hint = match error {
            json::ParseError::Shape(_) => "; give a file that -o NAME.json saved, or a journal",
            json::ParseError::Schema { .. } => "",
        };
        Failure::Usage(format!("{name}: {error}{hint}"))
    })
}
