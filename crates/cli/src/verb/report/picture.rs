//! The topology picture of a page: of the machine that made the records, or none.

use std::path::Path;

use gpuio_capture::Captured;
use gpuio_host::input;
use gpuio_machine::topo::{Printed, Topology, format};
use gpuio_report::set::{Candidate, Origin, Picture, Set, origin};

use crate::args::Report;
use crate::failure::Failure;
use crate::head::boot;
use crate::source::{only_one, problems};

/// The picture that was given, of the machine that was given, or of this machine if it made every
/// record.
pub(super) fn of(report: &Report, set: &Set) -> Result<Picture, Failure> {
    if let Some(file) = &report.topo {
        return given(file);
    }
    let captured = !report.from.is_empty();
    let facts = only_one(&report.from, None)?.captured;
    let boot = if captured { None } else { boot() };
    let there = Candidate { machine: &facts.machine, boot: boot.as_deref(), captured };
    let mut proofs: Vec<String> = Vec::new();
    for member in &set.members {
        let name = &member.name;
        match (origin(&member.record, there), captured) {
            (Origin::Here(proof), _) => proofs.push(proof),
            (Origin::Elsewhere(why), true) => {
                return Err(Failure::Usage(format!(
                    "--from: {name} was recorded on another machine: {why}; leave one of them \
                     out"
                )));
            }
            (Origin::Elsewhere(why), false) => {
                let why = format!(
                    "{name} was recorded on another machine: {why} (report \
                    --from)"
                );
                return Ok(Picture::Absent(why));
            }
            (Origin::Unknown(_), true) => {
                proofs.push("the records match this machine".to_owned());
            }
            (Origin::Unknown(why), false) => {
                return Ok(Picture::Absent(format!(
                    "it is unknown whether {name} was recorded on this machine: {why} (report \
                     --from)"
                )));
            }
        }
    }
    proofs.sort();
    proofs.dedup();
    if proofs.is_empty() {
        return Ok(Picture::Absent("there is no record".to_owned()));
    }
    let whose = match captured {
        true => "The machine given with --from, stated to be that of the records",
        false => "The machine of the records, as it was when the report was made",
    };
    let about = format!("{whose}: {}.", proofs.join("; "));
    Ok(Picture::Svg { svg: draw(&facts), about })
}

fn draw(facts: &Captured) -> String {
    let mut topology = Topology::of(&facts.machine, &Printed::all(&facts.machine));
    topology.notes.extend(problems(facts));
    format::svg(&facts.machine, &topology)
}

/// A picture from a file, or none if `none` was requested.
fn given(path: &Path) -> Result<Picture, Failure> {
    if path.as_os_str() == "none" {
        return Ok(Picture::Absent("no picture was requested (report --topo none)".to_owned()));
    }
    let name = path.display();
    let svg = input::read_text(path, input::MOST_WRITTEN)
        .map_err(|error| Failure::Usage(format!("--topo {name}: {error}")))?;
    match svg.contains("<svg") {
        true => {
            let about = format!(
                "Given as {name}; it is unknown whether it shows the machine of the \
                    records."
            );
            Ok(Picture::Svg { svg, about })
        }
        false => Err(Failure::Usage(format!("--topo {name}: this is not an SVG picture"))),
    }
}
