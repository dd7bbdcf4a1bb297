//! `gpuio plan --hosts`: the plan of several hosts.

use std::path::Path;
use std::process::ExitCode;

use gpuio_base::document::{Format, json_of};
use gpuio_machine::flow::Figures;
use gpuio_machine::pair::{
    HostsPlan, JobFileRefusal, Pairing, Wanted as Paired, hosts_document, hosts_job_file, pair,
};
use gpuio_machine::topo::{Printed, Topology};
use gpuio_record::facts::Machine;

use super::plan::{not_here, shown, write};
use super::plan_expect;
use crate::args::Plan as Args;
use crate::failure::Failure;
use crate::formats::{self, Wanted, names};
use crate::hosts::{self, Host};
use crate::output;
use crate::source::problems;

/// Reads the captures, pairs each host, and prints and writes what was requested.
pub(super) fn run(
    dir: &Path,
    wanted: &Paired,
    figures: &Figures,
    (form, args): (Wanted, &Args),
) -> Result<ExitCode, Failure> {
    if matches!(form, Wanted::Own("gdsio")) {
        let known = names(&formats::PLAN[..1]).join(", ");
        let why = format!("a config file of gdsio is for one host; formats are {known}");
        return Err(Failure::Usage(format!("--format gdsio: {why}")));
    }
    let file = args.output.as_deref();
    let hosts = hosts::read(dir)?;
    let plan = plan(&hosts, wanted, figures)?;
    let job_file = match (file, form) {
        (None, Wanted::Document(_)) => None,
        _ => Some(hosts_job_file(&plan).map_err(|why| no_job_file(&why))?),
    };
    let written = file
        .zip(job_file.as_ref())
        .map(|(path, text)| write(path, text, args.force))
        .transpose()?;
    output::put(&match form {
        Wanted::Document(Format { name: "json", .. }) => json_of(&plan),
        Wanted::Document(format) => shown(format, &hosts_document(&plan)),
        Wanted::Own(_) => job_file.unwrap_or_default(),
    })?;
    if let (Some(path), Wanted::Document(Format { name: "text", .. })) = (written, form) {
        output::put(&format!("\nJob file: {}\n", path.display()))?;
    }
    Ok(if plan.ranks() > 0 { ExitCode::SUCCESS } else { ExitCode::from(3) })
}

fn plan(hosts: &[Host], wanted: &Paired, figures: &Figures) -> Result<HostsPlan, Failure> {
    let each = hosts.iter().map(|host| {
        let machine = &host.captured.machine;
        let topology = Topology::of(machine, &Printed::all(machine));
        let mut pairing = pair(machine, &topology, wanted)
            .map_err(|error| on_host(&host.name, not_here(error)))?;
        pairing.notes.extend(problems(&host.captured));
        Ok((host.name.clone(), machine, pairing))
    });
    let mut each: Vec<(String, &Machine, Pairing)> = each.collect::<Result<_, Failure>>()?;
    let own_servers: Vec<bool> = hosts.iter().map(|host| host.addresses_replaced).collect();
    let total = plan_expect::set_hosts(&mut each, figures, &own_servers);
    let mut plan = HostsPlan::of(each);
    plan.total = Some(total);
    plan.notes.extend(replaced(hosts, &plan));
    Ok(plan)
}

fn on_host(host: &str, failure: Failure) -> Failure {
    match failure {
        Failure::Usage(text) => Failure::Usage(format!("host {host}: {text}")),
        Failure::Unavailable(text) => Failure::Unavailable(format!("host {host}: {text}")),
        other => other,
    }
}

/// Servers whose names were replaced can't be recognised on other hosts.
fn replaced(hosts: &[Host], plan: &HostsPlan) -> Option<String> {
    let concerned = plan
        .hosts
        .iter()
        .zip(hosts)
        .filter(|(host, capture)| capture.addresses_replaced && !host.mounts.is_empty());
    let names: Vec<&str> = concerned.map(|(host, _)| host.host.as_str()).collect();
    if names.is_empty() || hosts.len() < 2 {
        return None;
    }
    Some(format!(
        "Names and addresses of servers are replaced in the captures of {}: which hosts share a \
         server is not known, so a --server with a name counts for each host by itself. gpuio topo \
         --capture FILE --keep-addresses keeps them.",
        gpuio_base::units::hosts_of(&names, hosts.len(), true)
    ))
}

fn no_job_file(why: &JobFileRefusal) -> Failure {
    Failure::Unavailable(format!("no job file for these hosts: {why}"))
}
