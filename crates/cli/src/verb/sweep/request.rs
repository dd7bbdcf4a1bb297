//! From flags to points, and to the arguments that run a point.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gpuio_base::stat::Percentile;
use gpuio_base::units::{parse_duration_ns, parse_percent};
use gpuio_host::answers::answers;
use gpuio_host::input;
use gpuio_job::spec::{self, CUFILE_PREFIX, JobSpec, Origin, Raises, Rw, Spec, Status, searched};
use gpuio_job::sweep::{
    Axis, Bound, Condition, LOOKS_FROM, Mode, PRESETS, Preset, Rule, grid, is_route,
};
use gpuio_job::workload::preset::Preset as Workload;

use super::cost::Cost;
use super::effects::{RANKS, TARGET, keyed};
use super::fall_back::fall_back;
use super::resolved::{ResolvedSweep, Search};
use super::{effects, routes};
use crate::args::{Given, Sweep, Vary, Work};
use crate::failure::Failure;
use crate::jobs;
use crate::ranks::Place;
use crate::unused;

/// Bytes per thread by default: too much for a drive's cache, little enough to write quickly.
const SIZE: &str = "128M";

/// `ranks` is how many a launcher started, where one did.
pub(super) fn resolve(sweep: Sweep, ranks: Option<u32>) -> Result<ResolvedSweep, Failure> {
    let Sweep { job_file, vary, work, ranks: limits, workload } = sweep;
    limits.share()?;
    let job_file = job_file.as_deref();
    unused::sweep(&vary)?;
    jobs::one_job(work.keys())?;
    let preset = vary.preset.as_deref().map(find).transpose()?;
    let of_file = target_of_file(job_file, &vary, preset.is_some())?;
    let words = vary.latency_target.as_deref().or(of_file.as_ref().map(|it| it.0.as_str()));
    let over = vary.over.as_deref().or(of_file.as_ref().map(|it| it.1.as_str()));
    let rule = rule(&vary, preset, words.is_some())?;
    let search = words.map(|words| search(words, over, (&vary, rule))).transpose()?;
    let mut axes = match &search {
        Some((axis, _)) => vec![axis.clone()],
        None => axes(&vary, preset)?,
    };
    let (name, directory) = names(&vary, preset, workload);
    let routes = match preset.filter(|preset| preset.routes && search.is_none()) {
        Some(_) => Some(routes::add(&mut axes, &work, job_file, &directory)?),
        None => None,
    };
    let mut keys = keys(&work, preset, &axes);
    let note = fall_back(&mut keys, &work, preset)?;
    let mut job = shared(job_file, workload, &keys)?;
    take_target(&mut job, search.is_some(), vary.quiet)?;
    check_ranks(&axes, ranks)?;
    check_values(&job, &axes)?;
    let cache = cache(&job, &axes);
    let placed = job.directory.is_some() || job.filenames.is_some() || has(&axes, PLACES);
    let own_data = (!placed).then(|| directory.join("data"));
    let added = added(&job, &axes, own_data.as_deref(), cache);
    keys.extend(added.iter().cloned());
    let points = match &search {
        Some(_) => Vec::new(),
        None => points(&axes, &vary, &keys, routes.is_some())?,
    };
    unused::grid(&vary, axes.len(), points.len())?;
    let ends = search.as_ref().map(|(_, search)| search.ends().to_vec());
    let tried = ends.as_ref().unwrap_or(&points);
    check_places(&job, &axes, tried)?;
    // A search has the cost of its highest load.
    let priced = if search.is_some() { &tried[1..] } else { tried };
    let cost = cost(&job, &added, &axes, priced)?;
    effects::forget(&mut job, preset, &work);
    effects::all(&job, &axes, tried, (&work, preset))?;
    let (via, note) = routes.map_or((None, note), |found| (Some(found.via), found.note));
    let has_file = job_file.is_some() || workload.is_some();
    Ok(ResolvedSweep {
        base: [base(&work, has_file, &keys, &directory), limits.words()].concat(),
        own_data: own_data.is_some(),
        via: via.filter(|_| job.via_gpu.is_none()),
        job_file: text(job_file, workload)?,
        rule,
        search: search.map(|(_, search)| search),
        order_seed: vary.order_seed.unwrap_or(1),
        budget: vary.budget.as_deref().map(|t| time("--budget", t)).transpose()?,
        cool_down: vary.cool_down.as_deref().map_or(Ok(Duration::ZERO), cool_down)?,
        cost,
        cache,
        note,
        name,
        directory,
        axes,
        points,
        job,
        ranks,
    })
}

/// Keys that the sweep adds to those of the command; `own_data` is the directory of its own data.
fn added(
    job: &JobSpec,
    axes: &[Axis],
    own_data: Option<&Path>,
    cache: &str,
) -> Vec<(String, String)> {
    let sized = job.size.is_some() || job.filenames.is_some() || job.feed.files.is_some();
    let sized = sized || has(axes, &["size", "filename", "files", TARGET]);
    let directory = own_data.map(|place| spec::one_name(&place.display().to_string()));
    let added = [
        ("directory", directory),
        ("size", (!sized).then(|| SIZE.to_owned())),
        ("keep", Some("1".to_owned())),
        ("cache_alike", (cache == ALIKE).then(|| "1".to_owned())),
    ];
    added.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

/// The cost of a run at each of these points, with the keys that the sweep adds by itself.
fn cost(
    job: &JobSpec,
    added: &[(String, String)],
    axes: &[Axis],
    points: &[Vec<String>],
) -> Result<Cost, Failure> {
    let mut job = job.clone();
    for (key, value) in added {
        jobs::set(&mut job, key, &Place::alone().fill(value), "--set")?;
    }
    Ok(Cost::of(&job, axes, points))
}

/// Looks at the directories of all points, as each run would.
fn check_places(job: &JobSpec, axes: &[Axis], points: &[Vec<String>]) -> Result<(), Failure> {
    let jobs = points.iter().filter_map(|point| effects::at(job, axes, point));
    jobs::answer(&mut Spec { name: None, jobs: jobs.collect() })
}

/// The sweep's name and directory.
fn names(vary: &Vary, preset: Option<&Preset>, workload: Option<&Workload>) -> (String, PathBuf) {
    let name = preset.map(|preset| preset.name).or(workload.map(|workload| workload.name));
    let directory = vary.output.clone().unwrap_or_else(|| match preset {
        Some(preset) => PathBuf::from(format!("gpuio-sweep-{}", preset.name)),
        None => PathBuf::from("gpuio-sweep"),
    });
    (name.unwrap_or("sweep").to_owned(), directory)
}

/// The points that the command line selects.
fn points(
    axes: &[Axis],
    vary: &Vary,
    keys: &[(String, String)],
    routes: bool,
) -> Result<Vec<Vec<String>>, Failure> {
    let condition = vary.r#where.as_deref().map(Condition::parse).transpose().map_err(wrong)?;
    let mode = if vary.one_at_a_time { Mode::OneAtATime } else { Mode::Full };
    let mut points = grid(axes, mode, condition.as_ref(), keys).map_err(wrong)?;
    points.retain(|point| !routes || is_route(axes, point));
    if points.is_empty() {
        return Err(Failure::Usage("--where: no point meets the condition".to_owned()));
    }
    Ok(points)
}

/// State of the page cache by default. Otherwise the first runs would leave data in it that speeds
/// up later runs, and `gpuio compare` refuses to compare warm with cold.
const ALIKE: &str = "the same for all (files are read into it before buffered runs, if half of \
    memory holds them, and dropped from it before all others)";

/// Describes the requested state of the page cache.
fn cache(job: &JobSpec, axes: &[Axis]) -> &'static str {
    if has(axes, &["pre_read", "invalidate", "cache_alike"]) {
        return "as set by the axis";
    }
    match (job.cache_alike, job.pre_read, job.invalidate) {
        (None, None, None) | (Some(true), None, None) => ALIKE,
        (_, Some(true), _) => "warm (files are read into it before each run)",
        (_, _, Some(true)) => "cold (files are dropped from it before each run)",
        _ => "as the previous run left it",
    }
}

/// Keys that say where the data is.
const PLACES: &[&str] = &["directory", "filename", "file", TARGET];

fn has(axes: &[Axis], keys: &[&str]) -> bool {
    axes.iter().any(|axis| keys.contains(&axis.key.as_str()))
}

fn wrong(error: impl std::fmt::Display) -> Failure {
    Failure::Usage(format!("--where: {error}"))
}

fn find(name: &str) -> Result<&'static Preset, Failure> {
    gpuio_job::sweep::preset(name).ok_or_else(|| {
        let known: Vec<String> =
            PRESETS.iter().map(|row| format!("  {}: {}", row.name, row.summary)).collect();
        Failure::Usage(format!("--preset {name}: presets are\n{}", known.join("\n")))
    })
}

/// The preset's axes; those of the command line replace or follow them.
fn axes(vary: &Vary, preset: Option<&Preset>) -> Result<Vec<Axis>, Failure> {
    let parse =
        |text: &str| Axis::parse(text).map_err(|error| Failure::Usage(format!("--vary: {error}")));
    let built_in = preset.map_or(&[][..], |preset| preset.axes);
    let mut axes = built_in.iter().map(|text| parse(text)).collect::<Result<Vec<_>, _>>()?;
    let mut named: Vec<String> = Vec::new();
    for text in &vary.vary {
        let axis = parse(text)?;
        if named.contains(&axis.key) {
            return Err(Failure::Usage(format!("--vary: {} is an axis already", axis.key)));
        }
        named.push(axis.key.clone());
        match axes.iter_mut().find(|other| other.key == axis.key) {
            Some(other) => *other = axis,
            None => axes.push(axis),
        }
    }
    for (key, why) in preset.map_or(&[][..], |preset| preset.needs) {
        if !has(&axes, &[key]) {
            let name = preset.map_or("", |preset| preset.name);
            return Err(Failure::Usage(format!("--preset {name} needs {why}")));
        }
    }
    // With repeats the one point is measured several times.
    if axes.is_empty() && vary.repeats.is_none() {
        return Err(Failure::Usage(format!(
            "nothing is varied; use --vary KEY=VALUES, --preset NAME or --latency-target \
                 {}=TIME, or --repeats N to run the one point several times",
            Percentile::TAIL.label()
        )));
    }
    Ok(axes)
}

/// The limit that a job file has for a search (fio's `latency_target`), and the range of it, whose
/// end is the depth of the job; where the flags vary nothing.
fn target_of_file(
    job_file: Option<&Path>,
    vary: &Vary,
    preset: bool,
) -> Result<Option<(String, String)>, Failure> {
    let (Some(path), true) = (job_file, vary.vary.is_empty() && !preset) else { return Ok(None) };
    let spec = jobs::read_jobs(path)?;
    let target = |job: &JobSpec| {
        let within = gpuio_base::units::format_duration_ns(job.latency_limit_ns()?);
        let at = gpuio_job::plan::latency_at(job);
        let depth = job.depth.filter(|depth| *depth > 1).unwrap_or(256);
        Some((format!("{at}={within}"), format!("depth=1..{depth}")))
    };
    Ok(spec.jobs.iter().find_map(target))
}

fn search(
    words: &str,
    over: Option<&str>,
    (vary, rule): (&Vary, Rule),
) -> Result<(Axis, Search), Failure> {
    let wrong = |error: String| Failure::Usage(format!("--latency-target: {error}"));
    let bound = Bound::parse(words).map_err(|error| wrong(error.to_string()))?;
    let over = over.unwrap_or("depth=1..256");
    let form = || {
        let known: Vec<&str> = searched().iter().map(|key| key.name).collect();
        let known = known.join(", ");
        wrong(format!("--over {over}: write KEY=FROM..TO with a key of {known}"))
    };
    let (key, range) = over.split_once('=').ok_or_else(form)?;
    let key = key.replace('-', "_");
    let (from, to) = range.split_once("..").ok_or_else(form)?;
    let number =
        |text: &str| gpuio_base::units::parse_bytes(text).ok().filter(|number| *number > 0);
    let (from, to) = number(from).zip(number(to)).ok_or_else(form)?;
    let searched = searched().into_iter().find(|it| it.name == key);
    let raises = searched.and_then(|key| key.raises).filter(|_| from <= to).ok_or_else(form)?;
    let words = format!("{words} over {key}={from}..{to}");
    let is_rate = raises == Raises::Rate;
    let axis = Axis { key, values: vec![from.to_string()] };
    let runs = vary.repeats.is_some().then_some(rule.min);
    Ok((axis, Search { bound, words, is_rate, from, to, runs }))
}

/// Keys and values that all points share: the preset's, then the flags', without those that vary.
fn keys(work: &Work, preset: Option<&Preset>, axes: &[Axis]) -> Vec<(String, String)> {
    // The same load has the same text, in whichever order its flags are given.
    let mut given: Vec<&Given> = work.keys().iter().collect();
    given.sort_by_key(|given| {
        (given.flag == "--set", place(&given.key).filter(|_| given.flag != "--set"))
    });
    let flags = given
        .into_iter()
        .map(|Given { key, value, .. }| (key.replace('-', "_"), jobs::local_gpu(key, value)));
    let settings = work.own.cufile.cufile_set.iter().map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (format!("{CUFILE_PREFIX}{}", key.trim()), value.trim().to_owned())
    });
    let mut own: Vec<(String, String)> = flags.chain(settings).collect();
    own.retain(|(key, _)| key != "keep");
    let built_in = preset.map_or(&[][..], |preset| preset.keys);
    let unsaid = |(key, _): &&(&str, &str)| !own.iter().any(|(other, _)| other == key);
    let mut all: Vec<(String, String)> = built_in
        .iter()
        .filter(unsaid)
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    all.extend(own);
    let field = |key: &str| spec::find(key).map(spec::Key::field);
    let varies = |key: &str| {
        axes.iter().any(|axis| {
            axis.key == key || field(key).is_some_and(|it| Some(it) == field(&axis.key))
        })
    };
    all.retain(|(key, _)| !varies(key));
    all
}

/// Where the table has the field that a key sets: of two keys of one field the later flag wins.
fn place(key: &str) -> Option<usize> {
    let field = spec::find(key)?.field();
    spec::keys().position(|key| key.field() == field)
}

/// The job that all points share.
fn shared(
    job_file: Option<&Path>,
    workload: Option<&Workload>,
    keys: &[(String, String)],
) -> Result<JobSpec, Failure> {
    let spec = match (workload, job_file) {
        (Some(workload), _) => jobs::of_preset(workload)?,
        (None, Some(path)) => jobs::read_jobs(path)?,
        (None, None) => Spec { name: None, jobs: vec![JobSpec::new("job")] },
    };
    let [job] = spec.jobs.as_slice() else {
        let jobs = spec.jobs.len();
        return Err(Failure::Usage(format!(
            "the job file has {jobs} jobs; a sweep needs one job, whose keys it varies"
        )));
    };
    let mut job = job.clone();
    // Values with {rank} are checked as those of rank 0.
    let here = Place::alone();
    for (key, value) in keys {
        jobs::set(&mut job, key, &here.fill(value), "--set")?;
    }
    spec::speak_fio(&mut job);
    if job.keep == Some(false) {
        return Err(Failure::Usage(
            "the runs of a sweep share their files, so no run may remove them (unlink, keep=0); \
             leave it out"
                .to_owned(),
        ));
    }
    if job.paths.as_ref().is_some_and(|paths| paths.len() > 1) {
        return Err(Failure::Usage(
            "several paths are several jobs; use --vary path=A,B,… instead".to_owned(),
        ));
    }
    Ok(job)
}

/// Takes the limit of a search out of the job: the search has it ([`target_of_file`]), and points
/// that are given have no use for it.
fn take_target(job: &mut JobSpec, searches: bool, quiet: bool) -> Result<(), Failure> {
    if let Some(given) = job.requested.get("latency_target_ns").filter(|_| !searches) {
        let why = "it has no effect here: --vary or --preset says which loads run; without them \
                   gpuio sweep FILE searches the highest load within it";
        match given.origin {
            Origin::Flag(_) => return Err(Failure::Usage(format!("{given}: {why}"))),
            _ if quiet => {}
            _ => message!("note: {given}: {why}"),
        }
    }
    for field in ["latency_target_ns", "latency_percentile"] {
        job.requested.remove(field);
    }
    (job.latency_target_ns, job.latency_percentile) = (None, None);
    Ok(())
}

/// Refuses numbers of ranks that can't take part.
fn check_ranks(axes: &[Axis], started: Option<u32>) -> Result<(), Failure> {
    let Some(axis) = axes.iter().find(|axis| axis.key == RANKS) else { return Ok(()) };
    let all = axis.values.join(",");
    let Some(started) = started else {
        return Err(Failure::Usage(format!(
            "--vary {RANKS}={all}: one process runs, and a sweep starts no ranks by itself; start \
             gpuio by mpirun or srun with as many as the largest value"
        )));
    };
    for value in &axis.values {
        if !value.parse::<u32>().is_ok_and(|ranks| (1..=started).contains(&ranks)) {
            return Err(Failure::Usage(format!(
                "--vary {RANKS}={all}: {value} of {started} ranks can't take part; values are 1 \
                 to {started}"
            )));
        }
    }
    Ok(())
}

/// Parses every value before the first run, so that a typing error does not waste an hour.
fn check_values(job: &JobSpec, axes: &[Axis]) -> Result<(), Failure> {
    for axis in axes.iter().filter(|axis| axis.key != RANKS) {
        // `thread` is a key of fio's, and `threads` is meant.
        if let Some(Status::NoEffect { why }) = spec::find(&axis.key).map(|key| key.status) {
            let key = &axis.key;
            return Err(Failure::Usage(format!("--vary: '{key}' has no effect here: {why}")));
        }
        for value in &axis.values {
            if axis.key == TARGET {
                answers(Path::new(value))?;
                is_placed(value, job, axes)?;
            }
            let (key, value) = keyed(&axis.key, value);
            let mut job = job.clone();
            jobs::set(&mut job, &key, &Place::alone().fill(&value), "--vary")?;
            let many = job.paths.as_ref().is_some_and(|paths| paths.len() > 1);
            if many || job.paths.as_ref().is_some_and(|paths| paths.iter().any(|p| p == "all")) {
                return Err(Failure::Usage(format!(
                    "--vary: path={value} is several jobs; name each path as a value"
                )));
            }
        }
    }
    Ok(())
}

/// Refuses a target that is not there, unless it can only be a file that the load writes.
fn is_placed(target: &str, job: &JobSpec, axes: &[Axis]) -> Result<(), Failure> {
    let path = Path::new(target);
    let absent = |path: &Path| path.metadata().is_err_and(|it| it.kind() == ErrorKind::NotFound);
    if !absent(path) {
        return Ok(());
    }
    let reads = matches!(job.rw, None | Some(Rw::Read | Rw::RandRead));
    let reads = reads && job.mix_percent.is_none() && !has(axes, &["rw", "readwrite"]);
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    let targets = || axes.iter().filter(|axis| axis.key == TARGET).flat_map(|axis| &axis.values);
    let why = if above.is_some_and(absent) {
        "nor is the directory above it"
    } else if job.size.is_none() && job.feed.files.is_none() {
        "and no size makes it a file"
    } else if targets().any(|other| Path::new(other).is_dir()) {
        "and others are directories"
    } else if reads && job.feed.files.is_none() {
        "and a load that only reads makes no file"
    } else {
        return Ok(());
    };
    Err(Failure::Usage(format!(
        "--vary target: {target} is not there, {why}; if a directory is meant, make it first: \
         mkdir -p {target}"
    )))
}

fn base(work: &Work, job_file: bool, keys: &[(String, String)], directory: &Path) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    if job_file {
        words.push(directory.join(super::directory::JOB_FILE).display().to_string());
    }
    let mut add = |flag: &str, value: String| words.extend([flag.to_owned(), value]);
    for (key, value) in keys {
        add("--set", if value.is_empty() { key.clone() } else { format!("{key}={value}") });
    }
    if let Some(library) = &work.own.cufile.cufile_lib {
        add("--cufile-lib", library.display().to_string());
    }
    for device in &work.own.destroy_data_on {
        add("--destroy-data-on", device.display().to_string());
    }
    if work.own.overwrite {
        words.push("--overwrite".to_owned());
    }
    words
}

/// The job file's text.
fn text(path: Option<&Path>, workload: Option<&Workload>) -> Result<Option<Vec<u8>>, Failure> {
    if let Some(workload) = workload {
        return Ok(Some(workload.text.as_bytes().to_vec()));
    }
    let read = |path: &Path| {
        input::read(path, input::MOST_WRITTEN)
            .map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
    };
    path.map(read).transpose()
}

fn cool_down(text: &str) -> Result<Duration, Failure> {
    time("--cool-down", text)
}

fn time(flag: &str, text: &str) -> Result<Duration, Failure> {
    let wrong = |error| Failure::Usage(format!("{flag} {text}: {error}"));
    Ok(Duration::from_nanos(parse_duration_ns(text).map_err(wrong)?))
}

fn rule(vary: &Vary, preset: Option<&Preset>, search: bool) -> Result<Rule, Failure> {
    if search && vary.confidence.is_some() {
        return Err(Failure::Usage(
            "--confidence: a search repeats loads until their latency is decided; --repeats N sets \
             how often each runs"
                .to_owned(),
        ));
    }
    let confidence = match vary.confidence.as_deref() {
        None => None,
        Some(text) => {
            let wrong = |error: String| Failure::Usage(format!("--confidence {text}: {error}"));
            let percent = parse_percent(text).map_err(|error| wrong(error.to_string()))?;
            if percent <= 0.0 {
                return Err(wrong("the interval must be wider than 0".to_owned()));
            }
            Some(percent / 100.0)
        }
    };
    let (least, most) = match vary.repeats.as_deref() {
        None if confidence.is_some() => (LOOKS_FROM, 10),
        // Its steps say which loads run again.
        None if search => (1, 1),
        None => {
            let repeats = preset.map_or(3, |preset| preset.repeats);
            (repeats, repeats)
        }
        Some(text) => {
            let number = |text: &str| text.parse::<u32>().ok().filter(|n| (1..=1000).contains(n));
            let (least, most) = text.split_once("..").unwrap_or((text, text));
            let both = number(least).zip(number(most)).filter(|(least, most)| least <= most);
            both.ok_or_else(|| {
                Failure::Usage(format!(
                    "--repeats {text}: write N or MIN..MAX, from 1 to 1000, such as 5..10"
                ))
            })?
        }
    };
    if least != most && confidence.is_none() {
        return Err(Failure::Usage(
            "--repeats: a range needs --confidence, which sets when to stop: 2%".to_owned(),
        ));
    }
    if confidence.is_some() && most < 2 {
        return Err(Failure::Usage("--confidence: one run has no confidence interval".to_owned()));
    }
    if least != most && least < LOOKS_FROM {
        return Err(Failure::Usage(format!(
            "--repeats {least}..{most}: with --confidence, at least {LOOKS_FROM} runs are needed \
             to estimate their spread; {least} are too few"
        )));
    }
    Ok(Rule { min: least, max: most, confidence })
}
