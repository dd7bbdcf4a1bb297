//! `gpuio topo`: which GPU, drive, array, network card and mount belong together.

use std::fmt::Display;
use std::process::ExitCode;

use gpuio_topo::{Topology, explain, format};

use crate::args::Topo;
use crate::failure::Failure;
use crate::output;
use crate::source::{cells, problems, read};

pub(crate) fn run(topo: &Topo) -> Result<ExitCode, Failure> {
    let json = match topo.format.as_deref() {
        None | Some("text") => false,
        Some("json") => true,
        Some(other) => {
            return Err(Failure::Usage(format!("--format {other}: formats are text, json")));
        }
    };
    let captured = read(&topo.from)?;
    let printed = captured.matrix.as_ref().map(cells).unwrap_or_default();
    let mut topology = Topology::of(&captured.machine, &printed);
    topology.notes.extend(problems(&captured));
    let text = match topo.pair.as_slice() {
        [] if json => format::json(&topology).map_err(unprintable)?,
        [] => format::text(&topology),
        [a, b] => {
            let (one, two) = (find(&topology, a)?, find(&topology, b)?);
            let explanation = explain(&captured.machine, &topology, one, two)
                .ok_or_else(|| Failure::Usage(format!("{a} and {b} are the same device")))?;
            if json {
                format::json(&explanation).map_err(unprintable)?
            } else {
                format::pair(&explanation)
            }
        }
        _ => return Err(Failure::Usage("name two devices, or none".to_owned())),
    };
    output::put(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn unprintable(error: impl Display) -> Failure {
    Failure::Ran(format!("the topology can't be printed: {error}"))
}

fn find(topology: &Topology, name: &str) -> Result<usize, Failure> {
    topology.find(name).ok_or_else(|| {
        let known: Vec<&str> = topology.devices.iter().map(|one| one.name.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Failure::Usage(format!(
            "'{name}' is no GPU, network card or drive here; there are: {known}"
        ))
    })
}
