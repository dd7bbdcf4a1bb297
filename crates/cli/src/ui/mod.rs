//! Progress display: a live line on a terminal; elsewhere, where each would stay, lines on request.

pub(crate) mod top;

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use gpuio_base::stat::Percentile;
use gpuio_base::units::{human_bytes, human_count, human_ns, human_rate, whole};
use gpuio_load::run::{Ran, RunObserver, Tick};
use gpuio_record::{JobPlan, JobResult, Plan};
use gpuio_report::format::plan::{duration, example_ns, limited_ns};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Intervals of progress lines, where there are lines: in the first seconds, and later.
const LINES_EVERY: [Duration; 2] = [Duration::from_secs(1), FIRST_SECONDS];
const FIRST_SECONDS: Duration = Duration::from_secs(10);

/// Shows progress on standard error.
pub(crate) struct Progress {
    bar: ProgressBar,
    silent: bool,
    begun: Instant,
    /// When the last line of progress was printed, where lines are and no live one.
    last_line: Option<Mutex<Instant>>,
    jobs: Mutex<String>,
}

impl Progress {
    /// `when` is a value of `--eta`.
    pub(crate) fn new(quiet: bool, when: Option<&str>) -> Progress {
        let terminal = std::io::stderr().is_terminal() && !crate::terminal::is_dumb();
        let lines = when == Some("newline") || when == Some("always") && !terminal;
        let target = if terminal && !lines && !quiet && when != Some("never") {
            ProgressDrawTarget::stderr_with_hz(10)
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(1000), target);
        // A line that wraps could not be drawn over: a narrow terminal has a short bar, and what
        // does not fit is cut.
        let cells = if crate::terminal::width() < 100 { 6 } else { 24 };
        if let Ok(style) = ProgressStyle::with_template(&format!("{{bar:{cells}}} {{wide_msg}}")) {
            let cells = if crate::locale::is_ascii() { "#>-" } else { "█░" };
            bar.set_style(style.progress_chars(cells));
        }
        let begun = Instant::now();
        let last_line = (lines && !quiet).then(|| Mutex::new(begun));
        Progress { bar, silent: quiet, begun, last_line, jobs: Mutex::new(String::new()) }
    }

    /// Removes the live line.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// Says how long a long plan takes, or what that depends on.
    pub(crate) fn begin(&self, plan: &Plan) {
        let Some(limited) = limited_ns(plan) else {
            if example_ns(plan).is_some_and(|ns| ns as f64 / 1e9 >= LONG_SECONDS) {
                let time = duration(plan);
                self.print_line(&format!("note: time: {time}; verifying data comes on top"));
            }
            return;
        };
        let seconds = limited as f64 / 1e9;
        let until = until(seconds);
        if !until.is_empty() {
            self.print_line(&format!(
                "note: the jobs run for up to {}{until}; making and verifying data comes on top",
                human_ns(seconds * 1e9)
            ));
        }
    }

    /// Prints a permanent line above the live one.
    pub(crate) fn print_line(&self, line: &str) {
        if !self.silent {
            self.bar.suspend(|| crate::output::print_message(line));
        }
    }

    fn show(&self, share: f64, message: &str) {
        let Some(last) = &self.last_line else {
            self.bar.set_position(whole(share.clamp(0.0, 1.0) * 1000.0));
            self.bar.set_message(crate::output::shown(message).into_owned());
            return;
        };
        let Ok(mut last) = last.lock() else { return };
        let is_late = self.begun.elapsed() > FIRST_SECONDS;
        if last.elapsed() >= LINES_EVERY[usize::from(is_late)] {
            *last = Instant::now();
            crate::output::print_message(message);
        }
    }

    fn names(&self) -> String {
        self.jobs.lock().map(|names| names.clone()).unwrap_or_default()
    }
}

/// A time that is this long or longer is said with its end.
const LONG_SECONDS: f64 = 60.0;

/// The end of a long time, as a part of a sentence.
fn until(seconds: f64) -> String {
    let now = jiff::Timestamp::now();
    let end = Duration::try_from_secs_f64(seconds).ok().and_then(|left| now.checked_add(left).ok());
    match end.filter(|_| seconds >= LONG_SECONDS) {
        Some(end) => format!(", until {}", end.strftime("%H:%M:%S UTC")),
        None => String::new(),
    }
}

impl RunObserver for Progress {
    fn making(&self, done: u64, of: u64) {
        let share = done as f64 / of.max(1) as f64;
        let (done, of) = (human_bytes(done as f64), human_bytes(of as f64));
        self.show(share, &format!("creating the data files: {done} of {of} (not measured)"));
    }

    fn looking(&self, done: u64, of: u64) {
        let share = done as f64 / of.max(1) as f64;
        let (done, of) = (human_bytes(done as f64), human_bytes(of as f64));
        let what = format!(
            "checking which files of an earlier run are gpuio's: {done} of {of} \
            read (not measured)"
        );
        self.show(share, &what);
    }

    fn reading(&self, done: u64, of: u64) {
        let share = done as f64 / of.max(1) as f64;
        let (done, of) = (human_bytes(done as f64), human_bytes(of as f64));
        let what = format!("reading files into the page cache: {done} of {of} (not measured)");
        self.show(share, &what);
    }

    fn started(&self, jobs: &[JobPlan]) {
        let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
        if let Ok(mut names_of_jobs) = self.jobs.lock() {
            *names_of_jobs = names.join("+");
        }
        self.show(0.0, &format!("{}: started", self.names()));
    }

    fn tick(&self, tick: &Tick) {
        let by_time = tick.expected_ns.map(|of| tick.elapsed_ns as f64 / of.max(1) as f64);
        let share = by_time.into_iter().chain(tick.moved_share).fold(0.0, f64::max);
        let label = Percentile::TAIL.label();
        let tail = tick.tail_ns.map(|tail| format!(", {label} {}", human_ns(tail as f64)));
        let elapsed = tick.elapsed_ns as f64 / 1e9;
        let left = (share > 0.01).then(|| elapsed / share - elapsed);
        let eta = left.map(|left| format!(", {:.0} s left{}", left.max(0.0), until(left)));
        let failed =
            if tick.failed > 0 { format!(", {} failed", tick.failed) } else { String::new() };
        let message = format!(
            "{}: {}, {} IOPS{}{failed}{}",
            self.names(),
            human_rate(tick.bytes_per_s),
            human_count(tick.iops),
            tail.unwrap_or_default(),
            eta.unwrap_or_default(),
        );
        self.show(share, &message);
    }

    fn verifying(&self, _jobs: &[JobPlan]) {
        self.show(1.0, &format!("{}: verifying (not measured)", self.names()));
    }

    fn job_done(&self, _job: &JobPlan, _result: &JobResult) {}

    fn group_done(&self, _plan: &Plan, _ran: &Ran) {}

    fn alone(&self, jobs: &[JobPlan]) {
        let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
        let what = format!("{} alone", names.join("+"));
        if let Ok(mut names_of_jobs) = self.jobs.lock() {
            names_of_jobs.clone_from(&what);
        }
        self.show(0.0, &format!("{what}: started, without the GPU computation"));
    }

    fn ceiling(&self, name: &str) {
        if let Ok(mut names_of_jobs) = self.jobs.lock() {
            *names_of_jobs = format!("ceiling: {name}");
        }
        self.show(0.0, &format!("ceiling: {name}: started (not part of the jobs' time)"));
    }
}
