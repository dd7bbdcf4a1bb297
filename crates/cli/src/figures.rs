//! Figures of hardware from files and flags.

use gpuio_host::input;
use gpuio_machine::flow::{Figures, ServerFigures};

use crate::args::FigureFlags;
use crate::failure::Failure;

/// A note on `--server` where no bytes come from one.
pub(crate) fn unused_server(flags: &FigureFlags, network: bool) -> Option<String> {
    let note = "--server: it has no effect here: no network mount is used; leave it out";
    (!flags.server.is_empty() && !network).then(|| note.to_owned())
}

/// The built-in figures, preceded by those of `--spec` and `--server`.
pub(crate) fn read(flags: &FigureFlags) -> Result<Figures, Failure> {
    let mut figures = Figures::built_in();
    for path in &flags.spec {
        let name = path.display().to_string();
        let text = input::read_text(path, input::MOST_WRITTEN).map_err(|error| {
            Failure::Usage(format!(
                "--spec {name}: the file can't be read: \
                {error}"
            ))
        })?;
        let added = figures.add(&name, &text);
        added.map_err(|error| Failure::Usage(format!("--spec: {error}")))?;
    }
    for words in &flags.server {
        let server = ServerFigures::parse(words).map_err(|e| Failure::Usage(e.to_string()))?;
        figures.add_server(server);
    }
    Ok(figures)
}
