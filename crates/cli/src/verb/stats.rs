//! `gpuio stats`: live counters of gpuio processes.

use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use gpuio_base::document::Format;
use gpuio_host::{Root, process, process_time};
use gpuio_watch::page::format::{Earlier, Shown, json, text};
use gpuio_watch::page::read::{self, Found, Listing, Owner};
use gpuio_watch::page::{LivePageRoot, Saves, Snapshot};

use crate::args::Stats;
use crate::failure::Failure;
use crate::terminal;
use crate::{formats, live_metrics, output, serve, unused};

/// Time between the two samples from which the rates of a list are computed.
const LOOK: Duration = Duration::from_millis(250);

/// A sample costs tens of microseconds of CPU time that the load may need.
const SHORTEST: Duration = Duration::from_millis(10);
/// Level of detail by default.
const LEVEL: u8 = 1;

pub(crate) fn run(args: &Stats) -> Result<ExitCode, Failure> {
    let format = formats::document(args.format())?;
    unused::stats(args, format.name)?;
    if let Some(address) = args.serve.as_deref().map(serve::address).transpose()? {
        return serve::run(address, live_metrics::of_all);
    }
    let pause = match args.every() {
        None => None,
        Some((flag, text)) => {
            let ns = gpuio_base::units::parse_duration_ns(text)
                .map_err(|error| Failure::Usage(format!("{flag} {text}: {error}")))?;
            let pause = Duration::from_nanos(ns);
            if pause < SHORTEST {
                let what = format!("{flag} {text}: the shortest interval is 10ms");
                return Err(Failure::Usage(what));
            }
            if !["text", "json"].contains(&format.name) {
                let name = format.name;
                let what = format!(
                    "--format {name}: it is for one sample; with {flag} use text, or json, which \
                     has a line per sample"
                );
                return Err(Failure::Usage(what));
            }
            Some(pause)
        }
    };
    match args.pid {
        Some(pid) => process_of(args, format, (pid, pause)),
        None => all(args, format, pause),
    }
}

fn all(args: &Stats, format: &Format, pause: Option<Duration>) -> Result<ExitCode, Failure> {
    let (place, root) = (LivePageRoot::live(), Root::live());
    let mut before = (read::list(&place, &root), Instant::now());
    print_notes(&before.0);
    let mut left = args.count;
    loop {
        sleep(pause.unwrap_or(LOOK));
        let now = (read::list(&place, &root), Instant::now());
        let seconds = now.1.duration_since(before.1).as_secs_f64();
        // Pages of killed processes are removed with the first sample, and shown this once.
        let killed = before.0.found.iter().filter(|found| found.removed);
        let killed: Vec<&Found> = killed.collect();
        let found: Vec<&Found> = killed.into_iter().chain(&now.0.found).collect();
        let facts: Vec<Facts> = found.iter().map(|found| Facts::of(&root, found)).collect();
        let shown: Vec<Shown<'_>> = found
            .iter()
            .zip(&facts)
            .filter_map(|(found, facts)| facts.shown(found, earlier(&before.0, found, seconds)))
            .collect();
        output::put(&listed(args, format, &shown)?)?;
        left = left.map(|left| left.saturating_sub(1));
        if pause.is_none() || left == Some(0) || output::is_closed() {
            return Ok(ExitCode::SUCCESS);
        }
        before = now;
    }
}

fn listed(args: &Stats, format: &Format, shown: &[Shown<'_>]) -> Result<String, Failure> {
    if format.name == "json" {
        let pages: Vec<_> =
            shown.iter().map(|one| json::value(one, args.level.unwrap_or(LEVEL))).collect();
        return printed(&serde_json::json!({ "processes": pages }), args.every().is_some());
    }
    let mut page = text::list(shown);
    // A program that reads CSV finds its columns also where there is no row.
    if shown.is_empty() && format.name != "csv" {
        page.sections.clear();
        page.begin("", "").paragraph(
            "no gpuio process that publishes statistics is running; `gpuio bench` publishes them \
             while it runs, and a program on gpuio's libcufile or libgpuio (Python's gpuio) from \
             its first read on (docs/stats.md)",
        );
    }
    Ok((format.render)(&page, "stats", terminal::width_or_whole()))
}

/// The earlier sample of the same process.
fn earlier<'a>(before: &'a Listing, found: &Found, seconds: f64) -> Option<Earlier<'a>> {
    let now = found.page.as_ref().ok()?;
    before.found.iter().filter(|_| !found.removed).find_map(|then| {
        let snapshot = then.page.as_ref().ok()?;
        same(snapshot, now).then_some(Earlier { snapshot, seconds })
    })
}

fn same(one: &Snapshot, two: &Snapshot) -> bool {
    let key = |page: &Snapshot| (page.uid, page.pid, page.start_ticks, page.namespace);
    key(one) == key(two)
}

fn process_of(
    args: &Stats,
    format: &Format,
    (mut pid, pause): (u32, Option<Duration>),
) -> Result<ExitCode, Failure> {
    let (place, root) = (LivePageRoot::live(), Root::live());
    let level = args.level.unwrap_or(LEVEL);
    let mut before: Option<(Snapshot, Instant)> = None;
    let mut left = args.count;
    loop {
        let listing = read::find(&place, &root, pid);
        let at = Instant::now();
        let found = match found(&listing, pid) {
            Ok(found) => found,
            // The process existed a moment ago: it has ended, and so does the watch.
            Err(_) if before.is_some() && pause.is_some() => return Ok(ExitCode::SUCCESS),
            Err(failure) => {
                pid = drain_of(&root, pid).ok_or(failure)?;
                continue;
            }
        };
        if found.page.is_err() {
            return Err(unreadable(found));
        }
        print_notes(&listing);
        let is_first = pause.is_none() && before.is_none() && found.owner == Owner::Runs;
        let is_first = is_first && format.name != "csv";
        if let Some(first) = found.page.as_ref().ok().filter(|_| is_first) {
            // The rate of now takes two samples: one of the whole time says little of a process
            // that has been idle.
            before = Some((first.clone(), at));
            sleep(LOOK);
            continue;
        }
        let facts = Facts::of(&root, found);
        let since = before.as_ref().map(|(snapshot, then)| Earlier {
            snapshot,
            seconds: at.duration_since(*then).as_secs_f64(),
        });
        let Some(shown) = facts.shown(found, since) else { return Err(unreadable(found)) };
        output::put(&match format.name {
            "json" => printed(&json::value(&shown, level), pause.is_some())?,
            _ => (format.render)(&text::page(&shown, level), "stats", terminal::width_or_whole()),
        })?;
        left = left.map(|left| left.saturating_sub(1));
        let more = found.owner != Owner::Gone && left != Some(0) && !output::is_closed();
        let Some(pause) = pause.filter(|_| more) else {
            return Ok(ExitCode::SUCCESS);
        };
        if format.name == "text" {
            output::put("\n")?;
        }
        before = Some((shown.snapshot.clone(), at));
        sleep(pause);
    }
}

/// The process whose page answers for one without: a trainer has none before it reads, and its
/// drain has.
fn drain_of(root: &Root, pid: u32) -> Option<u32> {
    let drains = drains(root, pid);
    let (first, more) = drains.split_first()?;
    let others: String = more.iter().map(|(pid, _)| format!(" (also {pid})")).collect();
    let drain = first.0;
    message!("note: process {pid} has no page; its drain is process {drain}{others}, shown here");
    Some(drain)
}

/// The drains that a process has started, as gpuio.checkpoint does, with their saves.
pub(super) fn drains(root: &Root, pid: u32) -> Vec<(u32, Saves)> {
    let of_process = |found: Found| {
        let saves = found.page.ok()?.saves.filter(|_| found.owner == Owner::Runs)?;
        let stat = root.read(format!("proc/{}/stat", found.pid)).ok()??;
        let is_its = stat.parse(process_time::parse).ok()?.parent == pid;
        is_its.then_some((found.pid, saves))
    };
    let pages = read::list(&LivePageRoot::live(), root).found;
    pages.into_iter().filter_map(of_process).collect()
}

/// The page of this process. A process of this machine comes before those of containers with the
/// same ID.
pub(crate) fn found(listing: &Listing, pid: u32) -> Result<&Found, Failure> {
    let runs = listing.found.iter().find(|found| found.owner == Owner::Runs);
    runs.or(listing.found.first()).ok_or_else(|| {
        let notes: Vec<String> = listing.notes.iter().map(|note| format!("; {note}")).collect();
        Failure::Unavailable(format!(
            "process {pid} publishes no statistics that you may read{}. Either it is not a gpuio \
             process, has ended, was started with --no-stats-page, or belongs to another user. \
             `gpuio stats` lists the processes that do; a program on NVIDIA's libcufile does if \
             `gpuio exec --cufile nvidia` starts it, one on libgpuio (Python's gpuio) from its \
             first read on",
            notes.concat()
        ))
    })
}

pub(crate) fn unreadable(found: &Found) -> Failure {
    let why = found.page.as_ref().err().map_or("", String::as_str);
    Failure::Unavailable(format!("{}: the page {why}", found.path.display()))
}

/// Reports pages that can't be shown, and pages that were removed.
pub(crate) fn print_notes(listing: &Listing) {
    for note in &listing.notes {
        message!("note: {note}");
    }
    for found in &listing.found {
        if let Err(why) = &found.page {
            message!("note: {}: the page {why}", found.path.display());
        }
        if found.removed {
            let pid = found.pid;
            message!(
                "note: process {pid} was killed: it left its statistics page behind. These are \
                 its last counters; the page is removed now"
            );
        }
    }
}

/// Facts of the system about a page's process.
struct Facts {
    user: String,
    command: Option<String>,
    since: String,
}

impl Facts {
    fn of(root: &Root, found: &Found) -> Facts {
        let runs = found.owner == Owner::Runs;
        let began = found.page.as_ref().map_or(0, |page| page.began_ns);
        let began = jiff::Timestamp::from_nanosecond(i128::from(began));
        Facts {
            user: user(root, found.uid),
            command: runs.then(|| process::command(root, found.pid)).flatten(),
            since: began.map_or("an unknown time".to_owned(), |time| {
                time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
            }),
        }
    }

    fn shown<'a>(&'a self, found: &'a Found, earlier: Option<Earlier<'a>>) -> Option<Shown<'a>> {
        Some(Shown {
            snapshot: found.page.as_ref().ok()?,
            owner: &found.owner,
            user: &self.user,
            command: self.command.as_deref(),
            since: &self.since,
            earlier,
        })
    }
}

/// A user's name by /etc/passwd (passwd(5)), or the number.
fn user(root: &Root, uid: u32) -> String {
    let number = uid.to_string();
    let table = root.read("etc/passwd").ok().flatten();
    let name = table.as_ref().and_then(|text| {
        text.body.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            (fields.nth(1)? == number).then(|| name.to_owned())
        })
    });
    name.unwrap_or(number)
}

/// JSON, on one line if more samples follow.
fn printed(value: &serde_json::Value, one_line: bool) -> Result<String, Failure> {
    let text = match one_line {
        true => serde_json::to_string(value),
        false => serde_json::to_string_pretty(value),
    };
    text.map_err(|error| Failure::Ran(format!("the statistics can't be printed: {error}")))
}
