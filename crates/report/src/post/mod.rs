//! Texts with commands, results below them, and what other tools printed meanwhile: a post, a mail,
//! a page of a guide. [`read`] finds these parts, [`hold()`] holds each against the others and
//! against the machine of the same text, and [`section`] prints the statements on one page.
//!
//! A statement has the lines that it follows from. Nothing follows from what a text does not have:
//! a tool that was not run says neither yes nor no. A figure's tolerance is that of its printed
//! digits, or a share that stands with its reason beside the constant.
//!
//! - `line`: lines as they were before a terminal wrapped them; prompts with host and command.
//! - `sentence`: results in words, where a text has no others.
//! - `command`: what a command line or a job file requested. `result`, `fio`, `single`: result
//!   lines.
//! - `seen/`: tools that look on: iostat, dmon, gds_stats, the statistics of nvidia-fs.
//! - `join`: tools whose output stands in a text of its own.
//! - `hold/`: the rules, a file for each kind.
//!
//! To add a tool that looks on: its reader in [`gpuio_base::measured`], a file in `seen/` and a row
//! in `seen::TOOLS`. To add a rule: a function in `hold/` and a row in `hold::RULES`.

mod command;
mod figure;
mod fio;
mod hold;
mod join;
mod line;
mod page;
mod result;
mod seen;
mod sentence;
mod single;

use std::collections::BTreeSet;

use gpuio_base::stat::Percentile;
use serde::Serialize;

use crate::foreign::{Direction, gdsio};

pub(crate) use hold::contradictions;
pub use hold::{Known, hold, unread};
pub use join::join;
pub use page::section;

use line::Line;
use seen::Sight;

/// More of each than people put into one text; what goes beyond is not read.
const MOST_RUNS: usize = 256;

/// A text in its parts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Post {
    /// The name to call it by: the file's name.
    pub name: String,
    /// Commands with their results, in the order of the text.
    pub runs: Vec<Run>,
    lines: Vec<Line>,
    /// Lines of tables, with the heads of columns whose figures are not read.
    unread: Vec<(usize, Vec<String>)>,
    /// Lines of the text that were read as a part, from 1.
    read: BTreeSet<usize>,
    /// The last number of its lines, with those of texts that are joined to it.
    most_line: usize,
    /// Texts whose tools are read as beside its run.
    joined: Vec<Beside>,
    /// Why its tools, which are all that it has, are read as beside no run.
    apart: Option<String>,
}

impl Post {
    /// Whether a line, from 1, is of a command, a result or another part that was read.
    pub fn has_read(&self, line: usize) -> bool {
        self.read.contains(&line)
    }

    /// Whether it has no result, no tool that looks on, and no request.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The place and the GPU of its first request.
    pub fn requested(&self) -> Option<(&str, Option<u32>)> {
        let asked = self.runs.iter().find_map(Run::request)?;
        Some((asked.places.first()?, asked.gpus.first().copied()))
    }

    /// The text that a line's number is of, and its number there.
    fn origin(&self, line: usize) -> (&str, usize) {
        let other = self.joined.iter().rev().find(|one| line > one.from);
        other.map_or((self.name.as_str(), line), |one| (one.name.as_str(), line - one.from))
    }

    /// Whether all that it has are requests.
    pub fn is_of_requests(&self) -> bool {
        !self.runs.is_empty() && self.runs.iter().all(|run| run.request().is_some())
    }
}

/// A text's name without its directory.
fn short(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or_default()
}

/// A text whose tools are read as beside a run of another.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Beside {
    name: String,
    /// The number that stands before its first line in the numbers of the other.
    from: usize,
}

/// A command with its result and what was seen meanwhile; each may be absent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Run {
    /// The line of the result, else of the command, else of the first tool that looked on; from 1.
    pub line: usize,
    pub host: Option<String>,
    /// The prompt that waited for its command's end.
    shell: Option<String>,
    pub(crate) asked: Option<Asked>,
    pub(crate) got: Option<Got>,
    pub(crate) beside: Vec<Seen>,
    /// The same of tools that ran before or after it at the same prompt, as far as the text shows.
    pub(crate) apart: Vec<Seen>,
    /// The rate in words, where the text has no result line for what was seen, and its line.
    pub(crate) in_words: Option<(figure::Figure, usize)>,
}

/// The request of a command line or a job file. Absent: not said there.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Asked {
    pub(crate) line: usize,
    /// `gdsio`, `fio`, `elbencho`.
    pub(crate) tool: &'static str,
    pub(crate) gpus: Vec<u32>,
    /// Sum over all jobs.
    pub(crate) threads: Option<u64>,
    pub(crate) depth: Option<u64>,
    /// Smallest and largest.
    pub(crate) block: Option<(u64, u64)>,
    /// Bytes of each thread.
    pub(crate) size: Option<u64>,
    /// Whether each thread has a file of its own.
    pub(crate) own_files: bool,
    pub(crate) path: Option<String>,
    pub(crate) direction: Option<Direction>,
    pub(crate) random: Option<bool>,
    pub(crate) seconds: Option<f64>,
    /// Directories, files, devices.
    pub(crate) places: Vec<String>,
    pub(crate) engine: Option<String>,
    pub(crate) direct: Option<bool>,
    /// The option that limits its rate, or pauses between I/Os.
    pub(crate) limit: Option<String>,
    /// Whether its text has no result, of it or of another.
    pub(crate) is_request: bool,
    /// A size that stands behind gdsio's `-I`, the type of I/O, and is read as that of `-i`.
    pub(crate) misplaced: Option<String>,
}

/// The result that a tool printed. Absent: not printed.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Got {
    pub(crate) line: usize,
    pub(crate) tool: &'static str,
    pub(crate) direction: Direction,
    pub(crate) random: Option<bool>,
    pub(crate) path: Option<String>,
    pub(crate) threads: Option<u64>,
    pub(crate) depth: Option<u64>,
    pub(crate) block: Option<u64>,
    pub(crate) data_bytes: Option<f64>,
    pub(crate) set_bytes: Option<f64>,
    pub(crate) ops: Option<f64>,
    pub(crate) seconds: Option<f64>,
    /// Bytes per second.
    pub(crate) rate: Option<f64>,
    pub(crate) iops: Option<f64>,
    /// Nanoseconds.
    pub(crate) latency: Option<f64>,
    /// Percentiles of the latency, ascending, in nanoseconds.
    pub(crate) percentiles: Vec<(Percentile, f64)>,
    pub(crate) engine: Option<String>,
    /// The share by which products of rate, IOPS and latency may be off by their printed digits.
    pub(crate) rounding: f64,
    /// Cells of words of its table's row.
    pub(crate) labels: Vec<String>,
    /// Whether its threads have I/Os of the other direction in flight too.
    pub(crate) is_shared: bool,
}

impl Run {
    /// Its request, where its text has no result.
    pub(crate) fn request(&self) -> Option<&Asked> {
        self.asked.as_ref().filter(|asked| asked.is_request)
    }
}

impl Got {
    /// I/Os in flight on average: latency times rate (Little's law).
    pub(crate) fn in_flight(&self) -> Option<f64> {
        let by_rate = || Some(self.rate? / gpuio_base::units::float(self.block?));
        Some(self.latency? / 1e9 * self.iops.or_else(by_rate)?)
    }
}

/// The output of a tool that looked on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Seen {
    pub(crate) line: usize,
    pub(crate) tool: &'static str,
    pub(crate) sight: Sight,
}

/// The subject of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// The way of the bytes.
    Path,
    /// The rate to expect of a command or a job file without a result.
    Expected,
    Limit,
    /// Two figures that can't both be right.
    Contradiction,
    /// Lines that look like results and are left out.
    LeftOut,
    /// Figures of two tools that agree.
    Agreement,
    /// Two results, or a series.
    Compared,
    /// Advice: a run or a change.
    Next,
}

impl About {
    /// In the order of the page.
    pub const ALL: [About; 8] = [
        About::Path,
        About::Expected,
        About::Limit,
        About::Contradiction,
        About::LeftOut,
        About::Agreement,
        About::Compared,
        About::Next,
    ];
}

/// A statement about a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Statement {
    pub about: About,
    /// The text's name.
    pub file: String,
    /// The lines that it follows from, ascending; from 1.
    pub lines: Vec<usize>,
    pub words: String,
}

/// Reads a text. One without any of these parts gives a post without runs.
pub fn read(name: &str, text: &str) -> Post {
    let lines = line::lines(text);
    let mut reader = Reader::default();
    for (index, line) in lines.iter().enumerate() {
        if reader.runs.len() >= MOST_RUNS {
            break;
        }
        reader.line(&lines, index, line);
        if index < reader.read_until {
            reader.read.insert(line.number);
        }
    }
    let (unread, mut read) = (std::mem::take(&mut reader.unread), std::mem::take(&mut reader.read));
    let runs = reader.finish(&lines);
    let of_run = |run: &Run| {
        let own =
            [run.asked.as_ref().map(|asked| asked.line), run.got.as_ref().map(|got| got.line)];
        own.into_iter().flatten().chain([run.line])
    };
    read.extend(runs.iter().flat_map(of_run));
    read.extend(lines.iter().filter(|line| hold::sets_mode(line)).map(|line| line.number));
    // A line that was wrapped goes on to the next one.
    let ends = lines.iter().skip(1).map(|line| line.number).chain([text.lines().count() + 1]);
    let wrapped = lines.iter().zip(ends).filter(|(line, _)| read.contains(&line.number));
    let read = wrapped.flat_map(|(line, end)| line.number..end).collect();
    let (name, most_line) = (name.to_owned(), text.lines().count());
    Post { name, runs, lines, unread, read, most_line, ..Post::default() }
}

/// The rates, times and counts that a text has, with their lines: all that is understood of slides
/// and of other tools' outputs; `None` where there is none.
pub fn figures_in_words(text: &str) -> Option<String> {
    const SHOWN: usize = 8;
    let lines = line::lines(text);
    let of_line = |line: &Line| {
        let number = line.number;
        let named = |one: figure::Figure| format!("{} (line {number})", one.text);
        // `<16us` is a limit.
        let is_limit = |one: &figure::Figure| line.text[..one.at].trim_end().ends_with(['<', '>']);
        let figures = figure::figures(&line.text).into_iter();
        let figures = figures.filter(|one| one.is_measured() && !is_limit(one));
        figures.map(named).collect::<Vec<_>>()
    };
    let mut all: Vec<String> = lines.iter().flat_map(of_line).collect();
    let more = all.len().saturating_sub(SHOWN);
    all.truncate(SHOWN);
    let held: Vec<String> = hold::of_words(text).into_iter().map(|one| one.words).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let figures = (!all.is_empty()).then(|| all.join(", "))?;
    if !held.is_empty() {
        return Some(format!("the figures {figures}{more}. {}", held.join(" ")));
    }
    Some(format!(
        "the figures {figures}{more}. Nothing around them has a form that gpuio reads, so nothing \
         follows from them."
    ))
}

/// Whether a command runs the tool that looks on: `iostat`, `nvidia-smi dmon`, `nvidia-fs stats`.
fn is_of(command: &str, tool: &str) -> bool {
    let first = tool.split(' ').next().unwrap_or_default();
    command.contains(first)
}

/// The command of a line that runs the tool, else all of it.
fn of_tool<'t>(line: &'t str, tool: &str) -> line::Part<'t> {
    let own = line::parts(line).into_iter().find(|part| is_of(part.command, tool));
    own.unwrap_or(line::Part { command: line, is_beside: false })
}

/// Goes through a text's lines.
#[derive(Default)]
struct Reader {
    runs: Vec<Run>,
    files: Vec<command::JobFile>,
    results: result::Results,
    /// The runs at the places of `results`.
    places: Vec<usize>,
    /// Lines below this index belong to what was read already.
    read_until: usize,
    /// The lines that were read as a part, from 1.
    read: BTreeSet<usize>,
    /// A rate in words since the last result or tool that looked on.
    words: Option<(figure::Figure, usize)>,
    host: Option<String>,
    /// The last command, and the words before it.
    shell: Option<(String, String)>,
    /// A path that words name by gdsio's type since the last result, and their line.
    named: Option<(&'static str, usize)>,
    /// Tools that looked on before any command or result.
    early: Vec<(Seen, Option<String>)>,
    /// The rate in words above the first of them.
    early_words: Option<(figure::Figure, usize)>,
    /// Lines of tables, with the columns that are not read.
    unread: Vec<(usize, Vec<String>)>,
}

impl Reader {
    fn line(&mut self, lines: &[Line], index: usize, line: &Line) {
        if let Some(prompt) = &line.prompt {
            self.host = prompt.host.clone().or(self.host.take());
            let head = line.text.trim().strip_suffix(&prompt.command).unwrap_or_default();
            // Directories change between commands of one shell.
            let head = prompt.host.clone().unwrap_or_else(|| head.trim().to_owned());
            self.shell = Some((prompt.command.clone(), head));
        }
        if index < self.read_until {
            return;
        }
        if let Some((file, until)) = command::job_file(lines, index) {
            self.read_until = until;
            self.files.push(file);
            return;
        }
        if let Some((all, until)) = result::document(lines, index) {
            self.read_until = until;
            self.got_all(all);
            return;
        }
        if let Some((all, unread, until)) = result::table(lines, index) {
            self.read_until = until;
            if !unread.is_empty() {
                self.unread.push((line.number, unread));
            }
            self.got_all(all);
            return;
        }
        if let Some((seen, until)) = seen::read(lines, index) {
            self.read_until = until;
            self.seen(seen);
            return;
        }
        let asked = command::asked(line, &self.files);
        let is_command = asked.is_some();
        if let Some(asked) = asked {
            let host = self.host.clone();
            let line = asked.line;
            self.begin(&asked);
            self.named = None;
            let shell = self.shell(command::of_load);
            self.runs.push(Run { line, host, shell, asked: Some(asked), ..Run::default() });
            self.words = None;
        }
        if result::is_short(&line.text) {
            self.same_command();
        }
        let given = self.results.line(line);
        if !given.is_empty() {
            self.read.insert(line.number);
        } else if !is_command {
            self.prose(line);
        }
        for (place, got) in given {
            match self.places.get(place) {
                Some(at) => {
                    self.runs[*at].line = got.line;
                    self.runs[*at].got = Some(got);
                }
                None => {
                    let at = self.got(got);
                    self.places.push(at);
                }
            }
        }
    }

    /// The prompt of the last line of commands; `None` where it stands without one, or where the
    /// one of them that is meant goes on while others run.
    fn shell(&self, which: impl Fn(&str) -> line::Part<'_>) -> Option<String> {
        let (line, head) = self.shell.as_ref()?;
        (!head.is_empty() && !which(line).is_beside).then(|| head.clone())
    }

    /// The results below a command are no more of what is above it.
    fn begin(&mut self, asked: &Asked) {
        self.results = result::Results::of(asked);
        self.places.clear();
    }

    /// A further result of the command above, at a path that words name: `with -x 2 (CPU_GPU)`.
    fn same_command(&mut self) {
        let Some((path, line)) = self.named.take() else { return };
        let Some(asked) = self.runs.last().filter(|run| run.got.is_some()) else { return };
        let Some(asked) = asked.asked.clone() else { return };
        let asked = Asked { line, path: Some(path.to_owned()), misplaced: None, ..asked };
        self.begin(&asked);
        let host = self.host.clone();
        self.runs.push(Run { line, host, asked: Some(asked), ..Run::default() });
    }

    fn got_all(&mut self, all: Vec<Got>) {
        for got in all {
            self.got(got);
        }
    }

    /// A result belongs to the command above it, unless that has one already. Its run.
    fn got(&mut self, got: Got) -> usize {
        self.words = None;
        let early = std::mem::take(&mut self.early);
        self.early_words = None;
        // The output of a command that ended before another one began was not beside it.
        let load = self.runs.last().filter(|run| run.got.is_none());
        let load = load.and_then(|run| run.shell.clone());
        let ended = |own: &Option<String>| own.is_some() && *own == load;
        let (apart, early): (Vec<_>, Vec<_>) = early.into_iter().partition(|(_, own)| ended(own));
        let [apart, early]: [Vec<Seen>; 2] =
            [apart, early].map(|all| all.into_iter().map(|one| one.0).collect());
        let last = self.runs.last_mut().filter(|run| match (&run.asked, &run.got) {
            (Some(asked), None) => asked.tool == got.tool,
            _ => false,
        });
        match last {
            Some(run) => {
                run.line = got.line;
                run.got = Some(got);
                run.beside.splice(0..0, early);
                run.apart.splice(0..0, apart);
            }
            None => {
                let host = self.host.clone();
                let (line, got) = (got.line, Some(got));
                self.runs.push(Run { line, host, got, beside: early, apart, ..Run::default() });
            }
        }
        self.runs.len() - 1
    }

    /// Outputs of tools belong to the last run, unless words in between are about another.
    fn seen(&mut self, seen: Seen) {
        let words = self.words.take();
        let own = self.shell.as_ref().filter(|(command, _)| is_of(command, seen.tool));
        let shell = own.and(self.shell(|line| of_tool(line, seen.tool)));
        let Some(last) = self.runs.last_mut() else {
            self.early_words = self.early_words.take().or(words);
            self.early.push((seen, shell));
            return;
        };
        let is_other = match (&seen.sight, &last.got) {
            (Sight::Disks(disks), Some(got)) => !hold::agree(disks, got),
            _ => false,
        };
        let again = last.beside.iter().any(|one| one.tool == seen.tool);
        let other = words.filter(|(figure, _)| match (&last.got, &last.in_words) {
            (Some(got), _) => got.rate.is_some_and(|rate| !figure.is_about(rate, 0.001)),
            (None, known) => known.as_ref().is_some_and(|(known, _)| known.text != figure.text),
        });
        match other.filter(|_| again) {
            Some(words) => {
                let host = self.host.clone();
                let run = Run { line: seen.line, host, in_words: Some(words), ..Run::default() };
                self.runs.push(Run { beside: vec![seen], ..run });
            }
            // Drives that moved another rate below the end of a run, at the prompt that waited for
            // it. Guides print there what ran beside it, which agrees.
            None if is_other && shell.is_some() && shell == last.shell => last.apart.push(seen),
            None => last.beside.push(seen),
        }
    }

    /// Remembers the first rate in a line of prose.
    fn prose(&mut self, line: &Line) {
        let words = line.text.split(|c: char| !c.is_ascii_uppercase() && c != '_');
        let path = words.filter(|word| word.len() > 3).find_map(gdsio::path_of);
        self.named = path.map(|path| (path, line.number)).or(self.named);
        let is_result =
            ["result", "sustain", "achiev", "iostat"].iter().any(|word| line.text.contains(word))
                && !sentence::is_otherwise(&line.text);
        let mut found = figure::figures(&line.text).into_iter();
        let rate = found.find(|one| one.unit == figure::Unit::Rate);
        if let Some(rate) = rate.filter(|_| is_result && self.words.is_none()) {
            self.words = Some((rate, line.number));
        }
    }

    fn finish(mut self, lines: &[Line]) -> Vec<Run> {
        let early: Vec<Seen> = self.early.into_iter().map(|one| one.0).collect();
        if let Some(first) = early.first() {
            let line = first.line;
            let in_words = self.early_words.take();
            let host = self.host.take();
            self.runs.push(Run { line, host, beside: early, in_words, ..Run::default() });
        }
        // Beside results, a command whose own is not there says nothing. Without any, commands and
        // job files are requests.
        let has = |run: &Run| run.got.is_some() || !run.beside.is_empty();
        if self.runs.iter().any(has) {
            self.runs.retain(has);
        } else {
            let of_files = self.files.iter().flat_map(command::JobFile::requests);
            let of_files: Vec<Run> = of_files.collect();
            if of_files.is_empty() {
                self.runs.retain(|run| run.asked.as_ref().is_some_and(Asked::is_load));
            } else {
                self.runs = of_files;
            }
            let asked = self.runs.iter_mut().filter_map(|run| run.asked.as_mut());
            asked.for_each(|asked| asked.is_request = true);
            let said = sentence::results(lines).into_iter();
            self.runs.extend(said.map(|got| Run {
                line: got.line,
                got: Some(got),
                ..Run::default()
            }));
        }
        self.runs.truncate(MOST_RUNS);
        self.runs
    }
}
