//! Requests of command lines and job files to gdsio, fio, elbencho, dd or hdparm.

use gpuio_base::units::{parse_bytes, parse_duration_ns};
use gpuio_job::spec::{self, Dialect, GdsioRun, GpuWhich, JobSpec, Rw, Spec};

use crate::foreign::Direction;
use crate::post::line::{Line, Part, parts, program};
use crate::post::{Asked, Run};

/// A job file that stands in a text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JobFile {
    /// Its name in the command that printed it, where one did.
    name: Option<String>,
    line: usize,
    spec: Spec,
    limit: Option<String>,
}

impl JobFile {
    fn of(name: Option<String>, line: usize, text: &str) -> Option<Self> {
        const LOAD: [&str; 9] = [
            "bs",
            "blocksize",
            "bsrange",
            "bssplit",
            "rw",
            "readwrite",
            "iodepth",
            "numjobs",
            "num_threads",
        ];
        let (kept, left): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| is_readable(line));
        // Without these its load would be another one.
        let is_key = |line: &&str| line.contains('=') && !line.trim().starts_with(['#', ';']);
        let is_load =
            |line: &&str| LOAD.contains(&line.split('=').next().unwrap_or_default().trim());
        if left.iter().any(is_load) || !kept.iter().any(is_key) {
            return None;
        }
        // An excerpt may have the settings of all jobs alone.
        let is_job = |line: &&str| is_section(line.trim()) && line.trim() != "[global]";
        let job = if kept.iter().any(is_job) { "" } else { "\n[job]" };
        let spec = spec::parse_job_file("text", kept.join("\n") + job, &|_| None).ok()?;
        Some(JobFile { name, line, spec, limit: limit(text.lines()) })
    }

    /// A run without a result for each job, where the file's keys show the tool.
    pub(crate) fn requests(&self) -> impl Iterator<Item = Run> + use<'_> {
        let has = |dialect| self.spec.jobs.iter().any(|job| spec::has_key_of(job, dialect));
        let tool = match (has(Dialect::Gdsio), has(Dialect::Fio)) {
            (true, false) => Some("gdsio"),
            (false, true) => Some("fio"),
            _ => None,
        };
        let line = self.line;
        tool.into_iter().flat_map(move |tool| {
            self.spec.jobs.iter().map(move |job| {
                let asked = of_jobs(tool, std::slice::from_ref(job));
                let asked = Some(Asked { line, limit: self.limit.clone(), ..asked });
                Run { line, asked, ..Run::default() }
            })
        })
    }
}

/// The job file that begins at a line, and the index behind its last one: `[global]` or `[job]`
/// with keys below it, or behind `cat FILE` on one line.
pub(crate) fn job_file(lines: &[Line], index: usize) -> Option<(JobFile, usize)> {
    let line = &lines[index];
    let printed = line.prompt.as_ref().filter(|p| program(&p.command) == Some("cat"));
    let words = || printed.map(|prompt| prompt.command.split_whitespace().skip(1));
    let name = words().and_then(|mut words| words.next()).map(str::to_owned);
    let one_line = words().is_some_and(|mut words| words.any(is_section));
    if one_line {
        let words = words()?.skip(1).collect::<Vec<_>>().join("\n");
        return Some((JobFile::of(name, line.number, &words)?, index + 1));
    }
    if !is_section(line.text.trim()) {
        return None;
    }
    let named = lines[..index].iter().rev().take(2).find_map(|line| line.prompt.as_ref());
    of_lines(lines, index, named.map(|prompt| prompt.command.clone()))
}

fn of_lines(lines: &[Line], index: usize, command: Option<String>) -> Option<(JobFile, usize)> {
    let is_key = |text: &str| {
        text.split_once('=').is_some_and(|(key, _)| {
            !key.is_empty()
                && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ' ')
        })
    };
    let is_between = |text: &str| text.is_empty() || text.starts_with(['#', ';']);
    // A switch has no value: a word alone, also where it is known to no one but fio.
    let is_switch = |text: &str| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        !text.is_empty() && text.chars().all(plain)
    };
    // Other lines that go on behind it are of the file: prose ends it.
    let rest = lines[index..].iter().take_while(|line| line.prompt.is_none());
    let rest = rest
        .map(|line| line.text.trim())
        .take_while(|text| is_between(text) || is_section(text) || is_key(text) || is_switch(text));
    let own: Vec<&str> = rest.collect();
    let count = own.iter().rposition(|text| is_section(text) || is_key(text))? + 1;
    let until = index + count;
    let cat = command.filter(|command| program(command) == Some("cat"));
    let name = cat.and_then(|command| command.split_whitespace().nth(1).map(str::to_owned));
    Some((JobFile::of(name, lines[index].number, &own[..count].join("\n"))?, until))
}

/// Whether gpuio reads a line of a job file.
fn is_readable(line: &str) -> bool {
    let alone = format!("[job]\n{line}\n");
    is_section(line.trim()) || spec::parse_job_file("text", alone, &|_| None).is_ok()
}

/// The key that limits a rate, or pauses between I/Os, with its value.
fn limit<'t>(words: impl Iterator<Item = &'t str>) -> Option<String> {
    const LIMITS: [&str; 5] = ["rate", "rate_iops", "thinktime", "limitread", "limitwrite"];
    let mut words = words.map(|word| word.trim_start_matches('-').trim());
    let found = words.find(|word| {
        let key = word.split('=').next().unwrap_or_default();
        LIMITS.contains(&key.trim())
    });
    found.map(str::to_owned)
}

fn is_section(word: &str) -> bool {
    let inner = word.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner.is_some_and(|name| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let begins = name.starts_with(|c: char| c.is_ascii_alphabetic());
        begins && name.chars().all(plain)
    })
}

/// The command of a line that runs a load, else the first one.
pub(crate) fn of_load(line: &str) -> Part<'_> {
    const LOADS: [&str; 5] = ["gdsio", "fio", "elbencho", "dd", "hdparm"];
    let is_load = |part: &&Part<'_>| program(part.command).is_some_and(|one| LOADS.contains(&one));
    let all = parts(line);
    let whole = Part { command: line, is_beside: false };
    all.iter().find(is_load).or(all.first()).copied().unwrap_or(whole)
}

/// The request of a line's command; `None` where it starts none of the tools.
pub(crate) fn asked(line: &Line, files: &[JobFile]) -> Option<Asked> {
    let command = of_load(&line.prompt.as_ref()?.command).command;
    let tool = program(command)?;
    let (_, behind) = command.split_once(tool)?;
    let behind = behind.split([';', '|', '>']).next().unwrap_or_default();
    let words: Vec<String> = behind
        .split_whitespace()
        .map(|word| word.trim_matches(['"', '\'']).to_owned())
        .take_while(|word| word != "&" && word != "&&")
        .collect();
    let mut asked = match tool {
        "gdsio" => gdsio(&words, files)?,
        "fio" => fio(&words, files)?,
        "elbencho" => elbencho(&words),
        "dd" => dd(&words),
        "hdparm" => hdparm(&words),
        _ => return None,
    };
    asked.line = line.number;
    asked.limit = limit(words.iter().map(String::as_str)).or(asked.limit);
    Some(asked)
}

fn gdsio(words: &[String], files: &[JobFile]) -> Option<Asked> {
    // Its output stands behind a file's name on the same line.
    let words = match words.first() {
        Some(first) if !first.starts_with('-') => &words[..1],
        _ => words,
    };
    let (words, misplaced) = with_block(words);
    let request = spec::parse_gdsio(&words, &|_| false).ok()?;
    let asked = match request.run {
        GdsioRun::Flags(spec) => of_jobs("gdsio", &spec.jobs),
        GdsioRun::Config(name) => from_file("gdsio", &name, files),
        GdsioRun::Help | GdsioRun::Version => return None,
    };
    Some(Asked { misplaced, ..asked })
}

/// The flags with `-i` where a size stands behind `-I`, and that size.
fn with_block(words: &[String]) -> (Vec<String>, Option<String>) {
    let mut words = words.to_vec();
    let is_size = |word: &str| word.len() > 1 && parse_bytes(word).is_ok();
    let wrong = |pair: &[String]| pair[0] == "-I" && is_size(&pair[1]);
    let at = words.windows(2).position(wrong).filter(|_| !words.iter().any(|word| word == "-i"));
    let Some(at) = at else { return (words, None) };
    "-i".clone_into(&mut words[at]);
    let size = words[at + 1].clone();
    (words, Some(size))
}

/// The file of this name, else the last one above.
fn from_file(tool: &'static str, name: &str, files: &[JobFile]) -> Asked {
    let same = |file: &&JobFile| file.name.as_deref().is_some_and(|own| own == name);
    let unnamed = || files.last().filter(|file| file.name.is_none());
    match files.iter().rev().find(same).or_else(unnamed) {
        Some(file) => Asked { limit: file.limit.clone(), ..of_jobs(tool, &file.spec.jobs) },
        None => Asked { tool, ..Asked::default() },
    }
}

fn fio(words: &[String], files: &[JobFile]) -> Option<Asked> {
    let (mut keys, mut file) = (String::from("[job]\n"), None);
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        // Its output follows on the same line.
        if word.ends_with(':') {
            break;
        }
        // A long option may have one dash too.
        let long = word.strip_prefix("--").or(word.strip_prefix('-').filter(|f| f.contains('=')));
        let Some(flag) = long else {
            let is_file = !word.starts_with('-') && word.contains('.');
            file = file.or(is_file.then(|| word.clone()));
            continue;
        };
        let value = words.peek().filter(|next| !next.starts_with('-') && !flag.contains('='));
        match (flag.split_once('='), value) {
            (Some((key, value)), _) => keys.push_str(&format!("{key}={value}\n")),
            (None, Some(value)) => {
                keys.push_str(&format!("{flag}={value}\n"));
                words.next();
            }
            (None, None) => keys.push_str(&format!("{flag}\n")),
        }
    }
    if let Some(name) = file {
        return Some(from_file("fio", &name, files));
    }
    // Keys that no job file has, such as --output, are left out one by one.
    let kept: Vec<&str> = keys.lines().filter(|line| is_readable(line)).collect();
    let spec = spec::parse_job_file("text", kept.join("\n"), &|_| None).ok()?;
    let asked = of_jobs("fio", &spec.jobs);
    // Each name begins a job with results of its own.
    let is_one = keys.lines().filter(|key| key.starts_with("name=")).count() < 2;
    let of_all = Asked { tool: "fio", places: asked.places.clone(), ..Asked::default() };
    Some(if is_one { asked } else { of_all })
}

/// Jobs that run at once, as one request: a value counts where all have the same.
fn of_jobs(tool: &'static str, jobs: &[JobSpec]) -> Asked {
    let mut asked = Asked { tool, ..Asked::default() };
    let all = |value: &dyn Fn(&JobSpec) -> Option<u64>| {
        let first = value(jobs.first()?)?;
        jobs.iter().all(|job| value(job) == Some(first)).then_some(first)
    };
    let threads: Option<u64> = jobs.iter().map(|job| job.threads.map(u64::from)).sum();
    // Without -w a job of gdsio has one thread, and without numjobs one of fio.
    let one = u64::try_from(jobs.len()).ok().filter(|_| jobs.iter().all(|j| j.threads.is_none()));
    asked.threads = threads.or(one).filter(|threads| *threads > 0);
    asked.depth = all(&|job| job.depth.or(job.batch).map(u64::from));
    let smallest = all(&|job| job.blocks.as_ref()?.iter().map(|block| block.min_bytes).min());
    let largest = all(&|job| job.blocks.as_ref()?.iter().map(|block| block.max_bytes).max());
    asked.block = smallest.zip(largest);
    asked.size = all(&|job| job.size);
    asked.own_files = jobs.iter().all(|job| job.directory.is_some() && job.filenames.is_none());
    asked.seconds = all(&|job| job.runtime_ns).map(seconds);
    let Some(first) = jobs.first() else { return asked };
    let same = |of: &dyn Fn(&JobSpec) -> bool| jobs.iter().all(of);
    if same(&|job| job.rw == first.rw) {
        (asked.direction, asked.random) = first.rw.map_or((None, None), |rw| {
            let (direction, random) = direction(rw);
            (Some(direction), Some(random))
        });
    }
    if same(&|job| job.paths == first.paths) {
        asked.path = first.paths.as_ref().and_then(|paths| paths.first().cloned());
    }
    asked.engine = first.engine.clone().filter(|_| same(&|job| job.engine == first.engine));
    asked.direct = first.direct.filter(|_| same(&|job| job.direct == first.direct));
    for job in jobs {
        if let Some(GpuWhich::List(list)) = job.gpu.as_ref().map(|gpu| &gpu.which) {
            asked.gpus.extend(list);
        }
        asked.places.extend(job.directory.iter().chain(&job.more_directories).cloned());
        asked.places.extend(job.filenames.iter().flatten().cloned());
    }
    asked
}

impl Asked {
    /// Whether it is a load of one of the tools whose requests are answered.
    pub(crate) fn is_load(&self) -> bool {
        ["gdsio", "fio", "elbencho"].contains(&self.tool) && !self.places.is_empty()
    }

    /// Whether its I/O goes through the page cache.
    pub(crate) fn is_buffered(&self) -> bool {
        let direct = self.direct.unwrap_or(self.tool == "gdsio");
        !direct || self.path.as_deref() == Some("cached")
    }

    /// Bytes of an I/O: those that it says, else what the tool takes; `None` for several sizes.
    pub(crate) fn block_or_usual(&self) -> Option<u64> {
        let usual = match (self.tool, self.random) {
            ("fio", _) | ("gdsio", Some(true)) => 4 << 10,
            _ => 1 << 20,
        };
        let (least, most) = self.block.unwrap_or((usual, usual));
        (least == most).then_some(least)
    }

    /// I/Os that a thread has in flight.
    pub(crate) fn depth_of_thread(&self) -> u64 {
        // fio's engine, where none is named, waits for each I/O.
        let waits = self.tool == "fio" && self.engine.as_deref().is_none_or(one_at_a_time);
        if waits { 1 } else { self.depth.unwrap_or(1) }
    }
}

/// fio's engines that wait for each I/O.
pub(crate) fn one_at_a_time(engine: &str) -> bool {
    ["psync", "sync", "vsync", "pvsync", "pvsync2", "mmap"].contains(&engine)
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn direction(rw: Rw) -> (Direction, bool) {
    match rw {
        Rw::Read => (Direction::Read, false),
        Rw::Write => (Direction::Write, false),
        Rw::RandRead => (Direction::Read, true),
        Rw::RandWrite => (Direction::Write, true),
        Rw::ReadWrite => (Direction::Both, false),
        Rw::RandRw => (Direction::Both, true),
    }
}

/// elbencho's flags as of `elbencho --help-all` 3.0.
fn elbencho(words: &[String]) -> Asked {
    let mut asked = Asked { tool: "elbencho", ..Asked::default() };
    let value = |names: [&str; 2]| {
        let at = words.iter().position(|word| names.contains(&word.as_str()));
        let long = words.iter().find_map(|word| word.strip_prefix(names[1])?.strip_prefix('='));
        // `-b2m`; options without a short name have `-` there.
        let short = names[0].len() > 1;
        let joined = words.iter().filter_map(|word| word.strip_prefix(names[0]));
        let joined = joined.filter(|_| short).find(|rest| !rest.is_empty());
        at.and_then(|at| words.get(at + 1)).map(String::as_str).or(long).or(joined)
    };
    let has = |names: [&str; 2]| words.iter().any(|word| names.contains(&word.as_str()));
    let bytes = |names| value(names).and_then(|text| parse_bytes(text).ok());
    asked.threads = value(["-t", "--threads"]).and_then(product);
    asked.depth = value(["-", "--iodepth"]).and_then(|text| text.parse().ok());
    asked.block = bytes(["-b", "--block"]).map(|block| (block, block));
    asked.size = None;
    let time = value(["-", "--timelimit"]).map(|text| format!("{text}s"));
    asked.seconds = time.and_then(|text| parse_duration_ns(&text).ok()).map(seconds);
    asked.random = has(["-", "--rand"]).then_some(true);
    asked.direct = (has(["-", "--direct"]) || has(["-", "--gds"])).then_some(true);
    let gpus = value(["-", "--gpuids"]).unwrap_or_default();
    asked.gpus = gpus.split(',').filter_map(|gpu| gpu.parse().ok()).collect();
    asked.direction = match (has(["-r", "--read"]), has(["-w", "--write"])) {
        (true, false) => Some(Direction::Read),
        (false, true) => Some(Direction::Write),
        _ => None,
    };
    asked.path = match (has(["-", "--gds"]) || has(["-", "--cufile"]), gpus.is_empty()) {
        (true, _) => Some("gds".to_owned()),
        (false, false) => Some("staged".to_owned()),
        (false, true) => Some("host".to_owned()),
    };
    asked.places = words.iter().filter(|word| word.starts_with('/')).cloned().collect();
    asked
}

/// A number, or the product of the shell's `$((32*8))`.
fn product(text: &str) -> Option<u64> {
    let inner = text.strip_prefix("$((").and_then(|rest| rest.strip_suffix("))")).unwrap_or(text);
    let factors = inner.split('*').map(|one| one.trim().parse::<u64>().ok());
    factors.reduce(|all, one| all?.checked_mul(one?))?
}

/// Operands of dd(1): `if=/dev/zero of=/data/x bs=4M oflag=direct`.
fn dd(words: &[String]) -> Asked {
    let value = |key: &str| words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    let bytes = |key| value(key).and_then(|text: &str| parse_bytes(text).ok());
    let (from, to) = (value("if"), value("of"));
    let is_source = |name: &str| ["/dev/zero", "/dev/urandom", "/dev/random"].contains(&name);
    let (place, direction, flags) = match (from, to) {
        // A write to /dev/zero is dropped as one to /dev/null: null(4).
        (Some(from), Some("/dev/null" | "/dev/zero") | None) if !is_source(from) => {
            (Some(from), Some(Direction::Read), "iflag")
        }
        (Some(from), Some(to)) if is_source(from) && !["/dev/null", "/dev/zero"].contains(&to) => {
            (Some(to), Some(Direction::Write), "oflag")
        }
        _ => (None, None, "oflag"),
    };
    let direct = value(flags).is_some_and(|flags| flags.split(',').any(|one| one == "direct"));
    let block = bytes("bs").or(Some(512));
    Asked {
        tool: "dd",
        block: block.map(|block| (block, block)),
        direction,
        random: Some(false),
        path: Some(if direct { "host" } else { "cached" }.to_owned()),
        places: place.map(str::to_owned).into_iter().collect(),
        direct: Some(direct),
        ..Asked::default()
    }
}

fn hdparm(words: &[String]) -> Asked {
    let places = words.iter().filter(|word| word.starts_with('/')).cloned().collect();
    Asked { tool: "hdparm", direction: Some(Direction::Read), places, ..Asked::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::post::line::lines;

    fn one(text: &str) -> Asked {
        let lines = lines(text);
        let mut files = Vec::new();
        let mut found = None;
        let mut until = 0;
        for (index, line) in lines.iter().enumerate() {
            if index < until {
                continue;
            }
            if let Some((file, end)) = job_file(&lines, index) {
                until = end;
                files.push(file);
            } else {
                found = found.or(asked(line, &files));
            }
        }
        found.unwrap()
    }

    #[test]
    fn a_command_of_gdsio_says_what_it_asks_for() {
        let asked = one("dgx2> gdsio -D /d/x -d 2 -w 8 -s 500M -i 1M -x 0 -I 2 -T 120 &");
        assert_eq!((asked.tool, asked.line, asked.threads), ("gdsio", 1, Some(8)));
        assert_eq!(asked.gpus, [2]);
        assert_eq!(asked.block, Some((1 << 20, 1 << 20)));
        assert_eq!((asked.size, asked.seconds), (Some(500 << 20), Some(120.0)));
        assert_eq!((asked.path.as_deref(), asked.random), (Some("gds"), Some(true)));
        assert_eq!(asked.places, ["/d/x"]);
    }

    #[test]
    fn a_size_behind_the_flag_of_the_type_is_the_block() {
        let asked = one("$ gdsio -D /d -w 8 -d 0 -I 0 -x 0 -s 1G -I 1M");
        assert_eq!(
            (asked.block, asked.misplaced.as_deref()),
            (Some((1 << 20, 1 << 20)), Some("1M"))
        );
        let asked = one("$ gdsio -D /d -w 8 -d 0 -I 0 -x 0 -s 1G -i 1M");
        assert_eq!((asked.block, asked.misplaced), (Some((1 << 20, 1 << 20)), None));
    }

    #[test]
    fn job_files_above_a_command_count() {
        let file = "[global]\nxfer_type=0\nrw=randread\n#size\nbs=4k\nsize=500M\n\n[job1]\n\
                    numa_node=0\ngpu_dev_id=0\nnum_threads=16\ndirectory=/a\n[job2]\n\
                    gpu_dev_id=2\nnum_threads=16\ndirectory=/b\n\nhost> gdsio a.gdsio\n";
        let asked = one(file);
        assert_eq!((asked.threads, asked.gpus), (Some(32), vec![0, 2]));
        let fio = "# cat a.fio [rr] ioengine=psync rw=randread bs=4k filename=/dev/sdb\n\
                   # fio -f a.fio rr: (g=0): rw=randread, bs=4K-4K\n";
        let asked = one(fio);
        assert_eq!((asked.tool, asked.engine.as_deref()), ("fio", Some("psync")));
        assert_eq!((asked.random, asked.places), (Some(true), vec!["/dev/sdb".to_owned()]));
    }

    #[test]
    fn job_files_that_nothing_runs_are_requests() {
        let file = "[global]\nname=nfs\nxfer_type=0\nrw=randread\n#size\nbs=4k\nsize=500M\n\
                    [job1]\ngpu_dev_id=0\nnum_threads=16\ndirectory=/a\n\
                    [job2]\ngpu_dev_id=2\nnum_threads=16\ndirectory=/b\n";
        let post = crate::post::read("rr.gdsio", file);
        let asked: Vec<&Asked> = post.runs.iter().filter_map(|run| run.asked.as_ref()).collect();
        let gpus: Vec<u32> = asked.iter().flat_map(|asked| asked.gpus.clone()).collect();
        assert_eq!((gpus, asked[1].places.as_slice()), (vec![0, 2], &["/b".to_owned()][..]));
        assert!(asked.iter().all(|asked| asked.is_request && asked.tool == "gdsio"));
        let mut page = gpuio_base::document::Document::new("");
        page.push(crate::post::section(&[post], &[]).unwrap());
        let page = page.terminal(100);
        assert!(page.contains("gdsio randread gds, requested"), "{page}");
        let fio = crate::post::read("a.fio", "[rr]\nioengine=psync\nrw=read\nbs=1M\n");
        assert_eq!(fio.runs[0].asked.as_ref().map(|asked| asked.tool), Some("fio"));
        // A run says more than its request; other files of this form are none.
        let result = "IoType: READ XferType: GPUD Threads: 8 DataSetSize: 80070656/8388608(KiB) \
                      IOSize: 1024(KiB) Throughput: 6.524658 GiB/sec, Avg_Latency: 1197.370995 \
                      usecs ops: 78194 total_time 11.703368 secs";
        let ran = crate::post::read("x", &format!("{file}\n{result}\n"));
        assert!(ran.runs.len() == 1 && ran.runs[0].asked.is_none(), "{:?}", ran.runs);
        // Switches, comments and keys that gpuio does not know are no end of a file.
        for (text, load) in [
            (
                "[global]\nbs=512\nrw=randread\ntime_based\niodepth=16\n\
                 [test]\nfilename=/a\nnumjobs=2\n",
                (2, 512),
            ),
            (
                "[global]\nbs=8k # a\nrw=randread\niodepth=1\n\n\
                 some_new_switch\nsome_key=1\n[a]\nfilename=/a\n",
                (1, 8192),
            ),
            (
                "[global]\ngroup_reporting\nbs=1M\nrw=read\nthread\n\
                 numjobs=48\nfilename=/dev/nvme0n1\n",
                (48, 1 << 20),
            ),
        ] {
            let post =
                crate::post::read("x", &format!("I ran this:\n{text}\nOn my machine it is slow."));
            let asked = post.runs[0].asked.as_ref().unwrap();
            let block = asked.block_or_usual();
            assert_eq!((asked.threads, block), (Some(load.0), Some(load.1)), "{text}");
            assert!(asked.direction == Some(Direction::Read) && asked.is_request, "{asked:?}");
        }
        for other in [
            "[global]\nworkgroup = X\n",
            "[job]\nrw=read\nbs=1M\n",
            "[global]\nioengine=libaio\nbs=any\nrw=read\nfilename=/a\n",
        ] {
            assert!(crate::post::read("x", other).is_empty(), "{other}");
        }
    }

    #[test]
    fn flags_of_fio_and_elbencho_are_read() {
        let asked = one("$ fio --name=a --rw=read --bs=1M --iodepth 32 --numjobs=4 --direct=1 \
                         --ioengine=libaio --output=x.json --filename=/dev/nvme0n1");
        assert_eq!((asked.depth, asked.threads, asked.direct), (Some(32), Some(4), Some(true)));
        assert_eq!(asked.block, Some((1 << 20, 1 << 20)));
        let asked = one("$ fio --name=a --rw=randread -bs=8k --iodepth=64 --filename=/dev/nvme0n1");
        assert_eq!(asked.block, Some((8 << 10, 8 << 10)));
        let asked = one("$ fio --bs=4k --name=a --rw=read --numjobs=8 --name=b --rw=write");
        assert_eq!((asked.threads, asked.direction, asked.block), (None, None, None));
        let asked = one("$ elbencho -r -t 16 -b 1m --gds --gpuids 0,1 --timelimit 30 /mnt/a");
        assert_eq!((asked.threads, asked.gpus, asked.seconds), (Some(16), vec![0, 1], Some(30.0)));
        assert_eq!((asked.path.as_deref(), asked.places.len()), (Some("gds"), 1));
        let asked = one("$ elbencho -r --direct -b2m --cufile --rand -t $((32*8)) /mnt/large");
        assert_eq!((asked.threads, asked.block), (Some(256), Some((2 << 20, 2 << 20))));
    }
}
