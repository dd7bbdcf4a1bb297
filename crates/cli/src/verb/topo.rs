//! `gpuio topo`: shows how GPUs, drives, arrays, network cards and mounts are connected.

use std::path::PathBuf;
use std::process::ExitCode;

use gpuio_base::document::{Document, Format, json_of};
use gpuio_host::Root;
use gpuio_machine::topo::{Printed, Topology, explain, format};

use crate::args::Topo;
use crate::captured;
use crate::failure::Failure;
use crate::formats::{self, Wanted};
use crate::output::{self, Delivery};
use crate::source::{self, Source, problems};
use crate::terminal;

pub(crate) fn run(topo: &Topo) -> Result<ExitCode, Failure> {
    let (from, pair) = devices_behind_files(topo);
    let wanted = wanted(topo, &pair)?;
    if let Some(path) = &topo.capture {
        output::put(&captured::write(root_of(topo)?, path, topo.keep_addresses)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let delivery = Delivery::open(&topo.save)?;
    let all = source::all(from, topo.machine.as_deref())?;
    source::one_document(&all, matches!(wanted, Wanted::Document(form) if form.name != "json"))?;
    let mut text = String::new();
    for one in &all {
        text.push_str(&source::heading(one, wanted.name()));
        text.push_str(&of_one(one, &pair, wanted)?);
    }
    delivery.put(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn of_one(source: &Source, pair: &[String], wanted: Wanted) -> Result<String, Failure> {
    let captured = &source.captured;
    let mut topology = Topology::of(&captured.machine, &Printed::all(&captured.machine));
    topology.notes.extend(problems(captured));
    let page =
        |form: &Format, page: &Document| (form.render)(page, "topo", terminal::width_or_whole());
    Ok(match (pair, wanted) {
        ([], Wanted::Document(Format { name: "json", .. })) => json_of(&topology),
        ([], Wanted::Document(form)) => {
            let mut whole = format::document(&topology);
            if captured.is_from_texts() {
                gpuio_machine::topo::storage::add(&mut whole, &captured.machine);
                crate::observed::add(&mut whole, captured);
            }
            page(form, &whole)
        }
        ([], Wanted::Own("svg")) => format::svg(&captured.machine, &topology),
        ([], Wanted::Own("html")) => format::html(&captured.machine, &topology),
        ([], Wanted::Own(_)) => format::hwloc_xml(&captured.machine),
        ([a, b], Wanted::Document(form)) => {
            let (one, two) = (find(&topology, a)?, find(&topology, b)?);
            let explanation = explain(&captured.machine, &topology, one, two)
                .ok_or_else(|| Failure::Usage(format!("{a} and {b} are the same device")))?;
            match form.name {
                "json" => json_of(&explanation),
                _ => page(form, &format::pair(&explanation)),
            }
        }
        _ => return Err(Failure::Usage("name two devices, or none".to_owned())),
    })
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

fn wanted(topo: &Topo, pair: &[String]) -> Result<Wanted, Failure> {
    let extension = topo.save.output.as_ref().and_then(|path| path.extension()?.to_str());
    if let Some(other @ ("png" | "pdf" | "jpg" | "jpeg")) = extension
        && topo.format.is_none()
    {
        let words = "pictures are svg, and pages html: name the file so";
        return Err(Failure::Usage(format!("-o with the ending {other}: {words}")));
    }
    let own = [("svg", "svg"), ("xml", "hwloc-xml")];
    let name = formats::of_file(topo.format.as_deref(), topo.save.output.as_deref(), &own)?;
    let wanted = formats::find(name, formats::TOPO)?;
    match wanted {
        // A pair has no picture of its own.
        Wanted::Own(name) if !pair.is_empty() => {
            gpuio_base::document::find(name).map(Wanted::Document).ok_or_else(|| {
                let known = formats::names(&[]).join(", ");
                let what = format!("--format {name}: for two devices the formats are {known}");
                Failure::Usage(what)
            })
        }
        wanted => Ok(wanted),
    }
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

fn find(topology: &Topology, name: &str) -> Result<usize, Failure> {
    topology.find(name).ok_or_else(|| {
        let known: Vec<&str> = topology.devices.iter().map(|one| one.name.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Failure::Usage(format!("'{name}' is not a GPU, network card or drive here; found: {known}"))
    })
}
