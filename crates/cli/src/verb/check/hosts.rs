//! `gpuio check --hosts`: several hosts by their captures.

use std::path::Path;
use std::process::ExitCode;

use gpuio_check::Rule;
use gpuio_check::hosts::{HostFacts, any_failed, differences, findings, json, render};

use crate::failure::Failure;
use crate::{hosts, output};

/// How to print.
pub(super) struct Printed {
    pub(super) json: bool,
    pub(super) width: usize,
    pub(super) all: bool,
}

pub(super) fn run(dir: &Path, rules: &[&Rule], how: &Printed) -> Result<ExitCode, Failure> {
    let hosts = hosts::read(dir)?;
    let facts: Vec<HostFacts<'_>> = hosts
        .iter()
        .map(|host| HostFacts { name: &host.name, machine: &host.captured.machine })
        .collect();
    let differences = differences(&facts);
    let findings = findings(&facts, rules);
    output::put(&match how.json {
        true => json(&facts, &differences, &findings),
        false => render(&facts, &differences, &findings, how.width, how.all),
    })?;
    Ok(if any_failed(&findings) { ExitCode::from(1) } else { ExitCode::SUCCESS })
}
