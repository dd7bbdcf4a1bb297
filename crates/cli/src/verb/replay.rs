//! `gpuio replay`.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use gpuio_base::trace::{Format, Trace};
use gpuio_host::input;
use gpuio_job::spec::{JobSpec, ReplayRequest, Spec};
use gpuio_job::workload::replay::{Script, missing};
use gpuio_load::run::Permit;
use gpuio_record::{ReplayOrder, ReplayPace};

use crate::args::{Given, Replay};
use crate::failure::Failure;
use crate::figures;
use crate::jobs;
use crate::session::Session;
use crate::unused;
use crate::verb::bench;

/// Longest trace that is read. A call has 4 to 72 bytes there, mostly fewer than 20.
const TRACE_MOST: u64 = 4 << 30;

pub(crate) fn run(replay: &Replay) -> Result<ExitCode, Failure> {
    unused::dry_run(&replay.out)?;
    bench::measure(session(replay)?, &replay.out)
}

fn session(replay: &Replay) -> Result<Session, Failure> {
    let trace = read(&replay.trace)?;
    if let Some(missing) = missing(&trace).filter(|_| !replay.out.quiet) {
        message!("note: {}: {missing}", replay.trace.display());
    }
    let request = request(&replay.trace, &trace, replay)?;
    // The script has all that is repeated.
    drop(trace);
    let mut job = JobSpec::new("replay");
    job.replay = Some(request);
    for Given { key, value, flag, .. } in replay.work.keys() {
        jobs::set(&mut job, key, value, flag)?;
    }
    let permit =
        Permit { overwrite: false, devices: Vec::new(), make_missing: true, make_named: false };
    let figures = figures::read(&replay.figures)?;
    let spec = Spec { name: None, jobs: vec![job] };
    let mut session = Session::prepare(&spec, permit, &replay.work.own.cufile, replay.out.dry_run)?;
    session.figures = figures;
    session.counts = !replay.out.no_stats_page;
    session.watched = !replay.out.no_watch;
    Ok(session)
}

/// A trace; what is wrong with it has its place.
pub(crate) fn read(path: &Path) -> Result<Trace, Failure> {
    let name = path.display();
    let bytes = input::read(path, TRACE_MOST)
        .map_err(|error| Failure::Usage(format!("{name}: the trace can't be read: {error}")))?;
    gpuio_base::trace::read(&bytes).map_err(|error| Failure::Usage(format!("{name}: {error}")))
}

fn request(path: &Path, trace: &Trace, replay: &Replay) -> Result<ReplayRequest, Failure> {
    let order = match replay.work.own.order.as_deref() {
        Some("threads") => ReplayOrder::Threads,
        _ => ReplayOrder::Observed,
    };
    let pace = match replay.work.own.pace.as_deref() {
        Some("recorded") => ReplayPace::Recorded,
        _ => ReplayPace::Asap,
    };
    let script = Script::of(trace, order)
        .map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
    let format = match trace.format {
        Format::Gpuio(version) => format!("gpuio {version}"),
        Format::Fio(version) => format!("fio {version}"),
    };
    Ok(ReplayRequest {
        name: path.display().to_string(),
        format,
        program: trace.program.clone(),
        missing: missing(trace),
        script: Arc::new(script),
        order,
        pace,
    })
}
