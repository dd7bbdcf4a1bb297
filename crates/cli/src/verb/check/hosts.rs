//! `gpuio check` of several hosts: by their captures, or by the ranks on them.

use std::path::Path;
use std::process::ExitCode;

use gpuio_base::document::{Document, Format};
use gpuio_machine::check::Rule;
use gpuio_machine::check::hosts::{
    HostFacts, any_failed, differences, differences_in_texts, document, findings, json, section,
};
use gpuio_record::facts::Machine;

use crate::args::Save;
use crate::failure::Failure;
use crate::formats;
use crate::hosts;
use crate::output::Delivery;
use crate::ranks::Joined;
use crate::source::{self, Source};

pub(super) struct Printed<'a> {
    pub(super) save: &'a Save,
    pub(super) format: &'static Format,
    pub(super) all: bool,
}

pub(super) fn run(dir: &Path, rules: &[&Rule], how: &Printed<'_>) -> Result<ExitCode, Failure> {
    let hosts = hosts::read(dir)?;
    let facts =
        hosts.iter().map(|host| HostFacts { name: &host.name, machine: &host.captured.machine });
    Ok(ExitCode::from(of_facts(&facts.collect::<Vec<_>>(), rules, how)?))
}

/// Checks the hosts of all ranks: the first rank of each reads its machine.
pub(super) fn on_ranks(
    joined: Joined,
    machine: impl FnOnce() -> Machine,
    rules: &[&Rule],
    how: &Printed<'_>,
) -> ExitCode {
    joined.of_each_host("check", machine, |hosts: Vec<(String, Machine)>| {
        let facts = hosts.iter().map(|(name, machine)| HostFacts { name, machine });
        of_facts(&facts.collect::<Vec<_>>(), rules, how)
    })
}

/// The differences between machines whose texts stand together.
pub(super) fn apart(all: &[Source], format: &Format) -> String {
    let facts = all.iter().filter_map(|one| {
        Some(HostFacts { name: one.name.as_deref()?, machine: &one.captured.machine })
    });
    let facts: Vec<HostFacts<'_>> = facts.collect();
    let mut page = Document::new("");
    page.push(section(&differences_in_texts(&facts), facts.len()));
    let names: Vec<&str> = facts.iter().map(|one| one.name).collect();
    source::heading_of(&names.join(", "), format.name) + &formats::print(format, "check", &page)
}

/// Prints what is found; the exit code is 1 if a rule fails on a host.
fn of_facts(facts: &[HostFacts<'_>], rules: &[&Rule], how: &Printed<'_>) -> Result<u8, Failure> {
    let delivery = Delivery::open(how.save)?;
    let differences = differences(facts);
    let findings = findings(facts, rules);
    delivery.put(&match how.format.name {
        "json" => json(facts, &differences, &findings),
        _ => {
            let page = document(facts, &differences, &findings, how.all);
            formats::print(how.format, "check", &page)
        }
    })?;
    Ok(u8::from(any_failed(&findings)))
}
