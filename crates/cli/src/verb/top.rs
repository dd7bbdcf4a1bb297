//! `gpuio top`: live device activity, once a second.

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gpuio_base::units::parse_duration_ns;
use gpuio_host::Root;
use gpuio_host::answers::answers;
use gpuio_watch::{Interval, Sample, Watcher, openmetrics, print, select};

use crate::args::Top;
use crate::failure::Failure;
use crate::{interrupt, locale, output, serve, terminal, ui};

/// Shorter intervals cost more than they show: disk counters have a resolution of milliseconds.
const SHORTEST: Duration = Duration::from_millis(100);
/// Maximum delay of Ctrl-C.
const NAP: Duration = Duration::from_millis(50);
/// Width of tables without a terminal: all columns.
const PLAIN_WIDTH: usize = 160;

pub(crate) fn run(top: &Top) -> Result<ExitCode, Failure> {
    let every = interval(top.interval.as_deref())?;
    let address = top.serve.as_deref().map(serve::address).transpose()?;
    let watcher = watcher(&top.devices)?;
    if let Some(address) = address {
        let mut watcher = watcher;
        return serve::run(address, move || openmetrics::text(&watcher.sample()));
    }
    let is_terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    // The screen needs control sequences, and characters for its bars and borders.
    let screen = is_terminal && !terminal::is_dumb() && !locale::is_ascii();
    if top.is_json().is_none() && screen {
        ui::top::run(watcher, every, top.count)?;
    } else {
        lines(watcher, every, top)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn interval(requested: Option<&str>) -> Result<Duration, Failure> {
    let Some(requested) = requested else { return Ok(Duration::from_secs(1)) };
    let ns = parse_duration_ns(requested)
        .map_err(|error| Failure::Usage(format!("--interval {requested}: {error}")))?;
    let every = Duration::from_nanos(ns);
    if !(SHORTEST..=Duration::from_hours(24)).contains(&every) {
        let words = "the interval must be between 100ms and a day";
        return Err(Failure::Usage(format!("--interval {requested}: {words}")));
    }
    Ok(every)
}

fn watcher(words: &[String]) -> Result<Watcher, Failure> {
    let root = Root::live();
    let machine = gpuio_load::machine::read(&root);
    // Mounts are known by their real paths, without links.
    let real_path = |word: &String| {
        let is_path = word.contains('/') || !is_device(&machine, word);
        let path = std::path::Path::new(word);
        if word.contains('/') {
            answers(path)?;
        }
        match path.canonicalize() {
            Ok(path) if is_path => Ok(path.to_string_lossy().into_owned()),
            Err(error) if word.contains('/') => Err(Failure::Usage(format!("{word}: {error}"))),
            _ => Ok(word.clone()),
        }
    };
    let words: Vec<String> = words.iter().map(real_path).collect::<Result<_, _>>()?;
    let selection =
        select(&machine, &words).map_err(|unknown| Failure::Usage(unknown.to_string()))?;
    Ok(Watcher::new(root, machine.host.numa.nodes, selection))
}

/// Whether a name without a slash is a device's name. A file of that name in the working directory
/// must then be given with a slash.
fn is_device(machine: &gpuio_record::facts::Machine, word: &str) -> bool {
    select(machine, &[word.to_owned()]).is_ok()
}

/// Tables or lines of JSON.
fn lines(mut watcher: Watcher, every: Duration, top: &Top) -> Result<(), Failure> {
    let stop = interrupt::flag();
    let mut before = watcher.sample();
    let mut due = Instant::now();
    let (mut left, mut first) = (top.count, true);
    while left != Some(0) {
        due += every;
        if !wait(due, &stop) {
            break;
        }
        let after = watcher.sample();
        put(&before, &after, top.is_json() == Some(true), first)?;
        (before, first) = (after, false);
        left = left.map(|left| left - 1);
        if output::is_closed() {
            break;
        }
    }
    Ok(())
}

/// Sleeps until then; `false` if Ctrl-C came first.
fn wait(until: Instant, stop: &AtomicBool) -> bool {
    loop {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(NAP));
    }
}

/// Missing kinds of device are reported once.
fn put(before: &Sample, after: &Sample, json: bool, first: bool) -> Result<(), Failure> {
    let interval = Interval::between(before, after);
    let time = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
    if json {
        locale::printed_as("json");
        return output::put(&print::json_line(&interval, &time));
    }
    let head = format!("{time}  {:.2} s\n", interval.seconds);
    let absent = if first { print::absent(&interval) + "\n" } else { String::new() };
    output::put(&(absent + &head + &print::plain(&interval, PLAIN_WIDTH)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_have_a_floor() {
        assert_eq!(interval(None).unwrap(), Duration::from_secs(1));
        assert_eq!(interval(Some("250ms")).unwrap(), Duration::from_millis(250));
        for bad in ["50ms", "0", "soon", "2000h"] {
            assert!(interval(Some(bad)).unwrap_err().to_string().contains(bad));
        }
    }
}
