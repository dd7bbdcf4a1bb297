//! `gpuio plan`: recommends the storage for each GPU, and writes the job file.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gpuio_base::document::{Document, Format, json_of};
use gpuio_base::units::ShellLine;
use gpuio_machine::flow::Figures;
use gpuio_machine::pair::{
    DeviceAbsent, Load, Pair, Pairing, StoreKind, Wanted as Paired, format, pair,
};
use gpuio_machine::topo::{Printed, Topology};
use gpuio_report::post::Post;

use super::check::results::{self, Held};
use super::{plan_expect, plan_hosts};
use crate::args::Plan;
use crate::failure::Failure;
use crate::figures;
use crate::formats::{self, Wanted};
use crate::output::{self, Output, Replace};
use crate::source::{self, Source, problems};
use crate::terminal;
use crate::unused;

pub(crate) fn run(plan: &Plan) -> Result<ExitCode, Failure> {
    let form = formats::find(plan.format.as_deref(), formats::PLAN)?;
    unused::figures(&plan.figures, matches!(form, Wanted::Document(_)))?;
    let figures = figures::read(&plan.figures)?;
    if let Some(path) = &plan.system {
        let answer = plan_expect::on_paper(path, figures)?;
        let format = formats::document(plan.format.as_deref())?;
        let text = match format.name {
            "json" => json_of(&answer),
            _ => shown(format, &gpuio_machine::flow::paper::document(&answer)),
        };
        output::put(&text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let wanted = wanted(plan)?;
    if let Some(dir) = &plan.hosts {
        return plan_hosts::run(dir, &wanted, &figures, (form, plan));
    }
    let all = source::all(&plan.from, plan.machine.as_deref())?;
    let many =
        matches!(form, Wanted::Document(form) if form.name != "json") && plan.output.is_none();
    source::one_document(&all, many)?;
    let mut anything = false;
    for one in &all {
        let heading = source::heading(one, form.name());
        if !heading.is_empty() {
            output::put(&heading)?;
        }
        anything |= of_one(one, plan, (&wanted, form), &figures)?;
    }
    // The request can't be met here: there is no storage to pair.
    Ok(if anything { ExitCode::SUCCESS } else { ExitCode::from(3) })
}

/// Prints and writes the plan of one machine, and says whether any GPU has storage.
fn of_one(
    source: &Source,
    plan: &Plan,
    (wanted, form): (&Paired, Wanted),
    figures: &Figures,
) -> Result<bool, Failure> {
    let captured = &source.captured;
    let machine = &captured.machine;
    let topology = Topology::of(machine, &Printed::all(machine));
    let mut pairing = pair(machine, &topology, wanted).map_err(not_here)?;
    plan_expect::set(machine, figures, &mut pairing);
    plan_expect::set_second(machine, &topology, wanted, figures, &mut pairing);
    let network = |pairing: &Pairing| {
        let all = |pair: &Pair| [&pair.stores[..], &pair.network].concat();
        let mut given = pairing.pairs.iter().flat_map(all);
        given.any(|given| given.kind == StoreKind::NetworkMount)
    };
    let has_network = network(&pairing) || pairing.second_choice.as_deref().is_some_and(network);
    pairing.notes.extend(figures::unused_server(&plan.figures, has_network));
    pairing.notes.extend(problems(captured));
    let written = match &plan.output {
        Some(path) => {
            let text = format::job_file(&pairing).ok_or_else(|| nothing_to_open(&pairing))?;
            Some(write(path, &text, plan.force)?)
        }
        None => None,
    };
    let held = results::hold(source, figures, Post::is_of_requests, &[]);
    output::put(&render(&pairing, form, held)?)?;
    if let (Some(path), Wanted::Document(Format { name: "text", .. })) = (written, form) {
        let bench = ShellLine::new("gpuio bench").file(&path);
        output::put(&format!("\nJob file: {} ({bench})\n", path.display()))?;
    }
    Ok(pairing.pairs.iter().any(|pair| !pair.stores.is_empty()))
}

/// In lines as long as they are.
pub(super) fn shown(format: &Format, page: &Document) -> String {
    (format.render)(page, "plan", terminal::width_or_whole())
}

fn wanted(plan: &Plan) -> Result<Paired, Failure> {
    let block = plan.bs.as_deref().map(|text| {
        let bytes = gpuio_base::units::parse_bytes(text);
        let bytes = bytes.map_err(|error| Failure::Usage(format!("--bs {text}: {error}")))?;
        let none = || Failure::Usage(format!("--bs {text}: a block has at least 1 byte"));
        (bytes > 0).then_some(bytes).ok_or_else(none)
    });
    let rw = plan.rw.as_deref().unwrap_or("read");
    let load = Load::of(rw, block.transpose()?).ok_or_else(|| {
        let known = Load::DIRECTIONS.join(", ");
        Failure::Usage(format!("--rw {rw}: the plan is for one of {known}"))
    })?;
    let (gpus, mounts, drives) = (plan.gpu.clone(), plan.mount.clone(), plan.drive.clone());
    Ok(Paired { gpus, mounts, drives, load })
}

/// A GPU that is missing is an error of the machine; a wrong name of a mount or drive is a usage
/// error.
pub(super) fn not_here(error: DeviceAbsent) -> Failure {
    match error.flag {
        "--gpu" => Failure::Unavailable(error.to_string()),
        _ => Failure::Usage(error.to_string()),
    }
}

fn nothing_to_open(pairing: &Pairing) -> Failure {
    if pairing.pairs.iter().any(|pair| !pair.stores.is_empty()) {
        let words = "the drives are known by their PCI addresses alone; add what `ls -l \
                     /dev/disk/by-path` prints to --from";
        return Failure::Unavailable(format!("no job can open a drive without its name: {words}"));
    }
    let why = pairing.not_used.iter().map(|one| format!("{}: {}", one.name, one.why));
    let why = why.collect::<Vec<_>>().join("; ");
    let why = if why.is_empty() { "no storage was found".to_owned() } else { why };
    Failure::Unavailable(format!("no file or device was found that a job could open ({why})"))
}

fn render(pairing: &Pairing, form: Wanted, held: Held) -> Result<String, Failure> {
    match form {
        Wanted::Document(Format { name: "json", .. }) => Ok(held.json(json_of(pairing))),
        Wanted::Document(form) => {
            let mut page = format::document(pairing);
            let notes = page.sections.pop();
            page.sections.extend(held.section.into_iter().chain(notes));
            Ok(shown(form, &page))
        }
        Wanted::Own("job") => format::job_file(pairing).ok_or_else(|| nothing_to_open(pairing)),
        Wanted::Own(_) if pairing.pairs.iter().all(|pair| pair.gpu.is_none()) => {
            Err(Failure::Unavailable("--format gdsio: no NVIDIA GPU was found".to_owned()))
        }
        Wanted::Own(_) => format::gdsio(pairing).ok_or_else(|| nothing_to_open(pairing)),
    }
}

/// Never replaces an existing file. Returns the final path.
pub(super) fn write(path: &Path, text: &str, force: bool) -> Result<PathBuf, Failure> {
    Output::begin("-o", path, Replace::forced(force))?.save_text("the job file", text)
}
