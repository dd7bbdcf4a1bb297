//! `gpuio topo`: shows how GPUs, drives, arrays, network cards and mounts are connected.

use std::fmt::Display;
use std::path::PathBuf;
use std::process::ExitCode;

use gpuio_host::Root;
use gpuio_machine::topo::{Topology, explain, format};

use crate::args::Topo;
use crate::captured;
use crate::failure::Failure;
use crate::output::{self, Delivery};
use crate::source::{cells, problems, read};

pub(crate) fn run(topo: &Topo) -> Result<ExitCode, Failure> {
    let (from, pair) = devices_behind_files(topo);
    let wanted = wanted(topo, &pair)?;
    if let Some(path) = &topo.capture {
        output::put(&captured::write(root_of(topo)?, path, topo.keep_addresses)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let delivery = Delivery::open(&topo.save)?;
    let captured = read(from)?;
    let printed = cells(&captured.matrices);
    let mut topology = Topology::of(&captured.machine, &printed);
    topology.notes.extend(problems(&captured));
    let text = match pair.as_slice() {
        [] => match wanted {
            Format::Text => format::text(&topology),
            Format::Json => format::json(&topology).map_err(unprintable)?,
            Format::Svg => format::svg(&captured.machine, &topology),
            Format::Html => format::html(&captured.machine, &topology),
            Format::Hwloc => format::hwloc_xml(&captured.machine),
        },
        [a, b] => {
            let (one, two) = (find(&topology, a)?, find(&topology, b)?);
            let explanation = explain(&captured.machine, &topology, one, two)
                .ok_or_else(|| Failure::Usage(format!("{a} and {b} are the same device")))?;
            if wanted == Format::Json {
                format::json(&explanation).map_err(unprintable)?
            } else {
                format::pair(&explanation)
            }
        }
        _ => return Err(Failure::Usage("name two devices, or none".to_owned())),
    };
    delivery.put(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Files and devices: `--from FILE GPU0 nvme3n1` names two devices behind its files, which are no
/// files.
fn devices_behind_files(topo: &Topo) -> (&[PathBuf], Vec<String>) {
    let from = topo.from.as_slice();
    if let [files @ .., a, b] = from
        && !files.is_empty()
        && topo.pair.is_empty()
        && !a.exists()
        && !b.exists()
    {
        let name = |path: &PathBuf| path.to_string_lossy().into_owned();
        return (files, vec![name(a), name(b)]);
    }
    (from, topo.pair.clone())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Text,
    Json,
    Svg,
    Html,
    Hwloc,
}

fn wanted(topo: &Topo, pair: &[String]) -> Result<Format, Failure> {
    let extension = topo.save.output.as_ref().and_then(|path| path.extension()?.to_str());
    let by_name = match extension {
        Some("svg") => Some("svg"),
        Some("json") => Some("json"),
        Some("html") => Some("html"),
        Some("xml") => Some("hwloc-xml"),
        Some(other @ ("png" | "pdf" | "jpg" | "jpeg")) if topo.format.is_none() => {
            let words = "pictures are svg, and pages html: name the file so";
            return Err(Failure::Usage(format!("-o with the ending {other}: {words}")));
        }
        _ => None,
    };
    let format = match topo.format.as_deref().or(by_name) {
        None | Some("text") => Format::Text,
        Some("json") => Format::Json,
        Some("svg") => Format::Svg,
        Some("html") => Format::Html,
        Some("hwloc-xml") => Format::Hwloc,
        Some(other) => {
            let words = "formats are text, json, svg, html, hwloc-xml";
            return Err(Failure::Usage(format!("--format {other}: {words}")));
        }
    };
    if !pair.is_empty() && !matches!(format, Format::Text | Format::Json) {
        let words = "for two devices the formats are text, json";
        return Err(Failure::Usage(format!("--format svg, html and hwloc-xml: {words}")));
    }
    Ok(format)
}

/// The machine to capture: a capture is made from kernel files.
fn root_of(topo: &Topo) -> Result<Root, Failure> {
    match topo.from.as_slice() {
        [] => captured::root(None),
        [dir] if dir.is_dir() => captured::root(Some(dir)),
        _ => {
            let words = "a capture needs this machine, or a directory given with --from";
            Err(Failure::Usage(format!("--capture: {words}")))
        }
    }
}

fn unprintable(error: impl Display) -> Failure {
    Failure::Ran(format!("the topology can't be printed: {error}"))
}

fn find(topology: &Topology, name: &str) -> Result<usize, Failure> {
    topology.find(name).ok_or_else(|| {
        let known: Vec<&str> = topology.devices.iter().map(|one| one.name.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Failure::Usage(format!("'{name}' is not a GPU, network card or drive here; found: {known}"))
    })
}
