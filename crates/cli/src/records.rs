//! Reads records and sweeps from disk as a set.

use std::path::{Path, PathBuf};

use gpuio_base::units::ShellLine;
use gpuio_host::input;
use gpuio_record::{ContentDigest, Record, RunOf, SWEEP_FILE, SWEEP_VERSION, Sweep};
use gpuio_report::format::json;
use gpuio_report::set::{Member, Set};
use gpuio_report::{Recheck, foreign};
use sha2::Digest as _;

use crate::failure::Failure;
use crate::last;

/// [`read_all`], with each run once and short names.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Set, Failure> {
    let mut set = read_all(paths)?;
    set.keep_runs();
    shorten(&mut set.members);
    Ok(set)
}

/// Reads each of `paths`: a record, a journal, a sweep's directory or its `sweep.json`, or a
/// directory of records. Other files in a directory are listed in [`Set::unread`]; a file that was
/// named itself must be a record.
pub(crate) fn read_all(paths: &[PathBuf]) -> Result<Set, Failure> {
    let mut set = Set::default();
    for path in paths {
        let is_sweep = path.file_name().is_some_and(|name| name == SWEEP_FILE);
        match path.parent().filter(|_| is_sweep) {
            Some(directory) => sweep(directory, &mut set)?,
            None if path.join(SWEEP_FILE).is_file() => sweep(path, &mut set)?,
            None if path.is_dir() => directory(path, &mut set)?,
            None => set.members.push(member(path)?),
        }
    }
    Ok(set)
}

/// [`read_all`] of several, of which those that can't be read are listed in [`Set::unread`].
pub(crate) fn read_each(paths: &[PathBuf]) -> Result<Set, Failure> {
    if let [_] = paths {
        return read_all(paths);
    }
    let mut set = Set::default();
    for path in paths {
        match read_all(std::slice::from_ref(path)) {
            Ok(one) => {
                set.members.extend(one.members);
                set.unread.extend(one.unread);
                set.left_out.extend(one.left_out);
                set.sweeps.extend(one.sweeps);
                set.lacks.extend(one.lacks);
                set.unreadable.extend(one.unreadable);
            }
            Err(failure) => set.unread.push(format!("Not checked: {failure}")),
        }
    }
    Ok(set)
}

/// Reads a record or a journal.
pub(crate) fn record(path: &Path) -> Result<Record, Failure> {
    Ok(parsed(path)?.1)
}

/// Holds a record's figures and statements against each other.
pub(crate) fn recheck(record: &Record) -> Recheck {
    let mut all = gpuio_report::recheck(record);
    hold_conclusions(&mut all, record);
    all
}

/// Holds its conclusions against what they follow from.
fn hold_conclusions(recheck: &mut Recheck, record: &Record) {
    let time = record.started_at.parse::<jiff::Timestamp>();
    let mut said = vec![time.err().map(|error| format!("the run: started_at: {error}"))];
    said.extend(gpuio_load::run::restated(record));
    recheck.compared += said.len();
    recheck.wrong.extend(said.into_iter().flatten());
}

/// The first words of a page.
const HTML: [&str; 2] = ["<!doctype html", "<!DOCTYPE html"];

/// That a directory holds a sweep, and the commands that show it.
fn is_sweep(directory: &Path) -> String {
    let report = ShellLine::new("gpuio report").file(directory);
    format!(
        "{}: this is a sweep, many records: {report} --format markdown prints its table, and \
         {report} makes its page; {} shows one record",
        directory.display(),
        ShellLine::new("gpuio show").file(directory.join("NAME.json"))
    )
}

fn member(path: &Path) -> Result<Member, Failure> {
    let (text, record) = parsed(path)?;
    let digest = sha2::Sha256::digest(text.as_bytes());
    let digest = Some(digest.iter().map(|byte| format!("{byte:02x}")).collect());
    let at = side(&record);
    let mut member = Member { digest, at, ..Member::new(path.display().to_string(), record) };
    hold_conclusions(&mut member.recheck, &member.record);
    member.recheck.unknown = gpuio_report::unknown_fields(&text);
    Ok(member)
}

/// A record's text, and the record.
fn parsed(path: &Path) -> Result<(String, Record), Failure> {
    let path = &last::meant(path);
    let name = path.display();
    if path.is_dir() {
        return Err(Failure::Usage(match path.join(SWEEP_FILE).is_file() {
            true => is_sweep(path),
            false => format!(
                "{name}: a directory is no record; {} shows the records in it, {} checks them",
                ShellLine::new("gpuio report").file(path),
                ShellLine::new("gpuio show --check").file(path)
            ),
        }));
    }
    let text = text(path)?;
    let record = json::parse(&text).map_err(|error| {
        let is_shape = matches!(error, json::ParseError::Shape(_));
        let other = foreign::TOOLS.iter().find(|tool| is_shape && (tool.looks)(&text));
        Failure::Usage(match other {
            Some(tool) => format!(
                "{name}: this is a result of {}, and no record of gpuio; {} OTHER compares it with \
                 one",
                tool.name,
                ShellLine::new("gpuio compare").file(path)
            ),
            None if is_shape && path.file_name().is_some_and(|name| name == SWEEP_FILE) => {
                is_sweep(path.parent().filter(|at| *at != Path::new("")).unwrap_or(Path::new(".")))
            }
            None if HTML.iter().any(|start| text.trim_start().starts_with(start)) => format!(
                "{name}: this is a page, and no record; open it in a browser, and save its \
                 records there (Save records), or name the files that it was made of"
            ),
            None if is_shape => {
                format!("{name}: {error}; name a file saved with -o NAME.json, or a journal")
            }
            None => format!("{name}: {error}"),
        })
    })?;
    Ok((text, record))
}

fn text(path: &Path) -> Result<String, Failure> {
    input::read_text(path, input::MOST_RESULT).map_err(|error| {
        Failure::Usage(format!("{}: the record can't be read: {error}", path.display()))
    })
}

fn sweep(directory: &Path, set: &mut Set) -> Result<(), Failure> {
    let Swept { sweep, records, missing, lacks } = swept(directory)?;
    set.lacks.extend(lacks);
    for Listed { path, at, within_limit, digest } in records {
        let member = match member(&path) {
            Ok(member) => member,
            Err(failure) => {
                set.unreadable.push(failure.to_string());
                continue;
            }
        };
        let mut member = Member { at, within_limit, ..member };
        if let Some(listed) = digest {
            hold_listed(&mut member.recheck, &path, &listed)?;
        }
        set.members.push(member);
    }
    set.left_out.extend(missing);
    set.sweeps.push(sweep);
    Ok(())
}

/// Holds the digest of a record against the one that its sweep listed when it was made.
pub(crate) fn hold_listed(recheck: &mut Recheck, path: &Path, listed: &str) -> Result<(), Failure> {
    let found = content_digest(path)?;
    let why = (found.as_deref() != Some(listed)).then(|| {
        let found = found.unwrap_or_else(|| "none".to_owned());
        format!(
            "it is not the one that the sweep made: {SWEEP_FILE} lists content_sha256 {listed}, \
             the file has {found}"
        )
    });
    recheck.misplace(why.as_deref());
    Ok(())
}

/// The digest in a record's file.
pub(crate) fn content_digest(path: &Path) -> Result<Option<String>, Failure> {
    #[derive(serde::Deserialize)]
    struct Digested {
        content_sha256: Option<String>,
    }
    let text = text(path)?;
    let found = serde_json::from_str::<Digested>(&text);
    found.map(|record| record.content_sha256).map_err(|error| {
        Failure::Usage(format!("{}: this is not a gpuio record: {error}", path.display()))
    })
}

/// The name of the file of a sweep's run: of a point by its number or load, runs from 1 on.
pub(crate) fn run_name(point: &str, run: usize) -> String {
    format!("point-{point}-run-{run:03}.json")
}

/// Whether a name may be one of [`run_name`].
fn is_run_name(name: &str) -> bool {
    name.strip_prefix("point-").is_some_and(|rest| rest.contains("-run-"))
        && name.ends_with(".json")
}

/// That a sweep's list was changed after gpuio wrote it: runs may be missing in it, or others be in
/// their place.
fn edited(file: &Path, sweep: &Sweep) -> Option<String> {
    let why = match &sweep.content_sha256 {
        ContentDigest::Intact => return None,
        ContentDigest::Changed(_) => "its content is not that of its digest (content_sha256)",
        ContentDigest::NoDigest if sweep.tool.version != env!("CARGO_PKG_VERSION") => return None,
        ContentDigest::NoDigest => "it has no digest, as each list of this version has",
    };
    let name = file.display();
    Some(format!("{name}: the list was changed after gpuio wrote it: {why}"))
}

/// Runs of a sweep in its directory that its list lacks: a median of the others would be of chosen
/// runs.
fn unlisted(directory: &Path, listed: &[Listed]) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let is_listed = |path: &PathBuf| listed.iter().any(|one| one.path == *path);
    let paths = entries.flatten().map(|entry| entry.path()).filter(|path| {
        path.file_name().is_some_and(|name| is_run_name(&name.to_string_lossy()))
            && !is_listed(path)
    });
    let mut paths: Vec<PathBuf> = paths.collect();
    paths.sort();
    let say = |path: &PathBuf| {
        format!(
            "{}: not shown: a run of this sweep that {SWEEP_FILE} does not list: it was taken out \
             of the list, or the sweep was killed before it was put in",
            path.display()
        )
    };
    paths.iter().map(say).collect()
}

/// A point of a sweep: axes and values.
type Place = Vec<(String, String)>;

/// A record that a sweep lists.
pub(crate) struct Listed {
    pub(crate) path: PathBuf,
    pub(crate) at: Place,
    /// Whether its point is within the limit of a search.
    within_limit: Option<String>,
    /// The digest that it had when it was made; none in older sweeps.
    pub(crate) digest: Option<String>,
}

/// A sweep in a directory.
pub(crate) struct Swept {
    pub(crate) sweep: Sweep,
    pub(crate) records: Vec<Listed>,
    /// The points without one, and why.
    pub(crate) missing: Vec<String>,
    /// Why the records are not, or may not be, all those that the sweep made.
    pub(crate) lacks: Vec<String>,
}

/// Reads the list of a sweep's records.
pub(crate) fn swept(directory: &Path) -> Result<Swept, Failure> {
    let file = directory.join(SWEEP_FILE);
    let name = file.display().to_string();
    let wrong = |what: String| Failure::Usage(format!("{name}: {what}"));
    let text = input::read_text(&file, input::MOST_RESULT);
    let text = text.map_err(|error| wrong(error.to_string()))?;
    let sweep = json::parse_sweep(&text)
        .map_err(|error| wrong(format!("this is not a gpuio sweep: {error}")))?;
    if sweep.gpuio_sweep != SWEEP_VERSION {
        let found = sweep.gpuio_sweep;
        return Err(wrong(format!(
            "this sweep has version {found}, but this gpuio reads {SWEEP_VERSION}; use the gpuio \
             that wrote it, {}",
            sweep.tool.version
        )));
    }
    let (mut records, mut missing) = (Vec::new(), Vec::new());
    for point in &sweep.points {
        let keys = sweep.axes.iter().map(|axis| axis.key.clone());
        let at: Place = keys.zip(point.at.iter().cloned()).collect();
        if point.records.is_empty() {
            let why = point.ended.as_deref().unwrap_or("its runs are missing");
            missing.push(format!("No record of {}: {why}", sweep.point(&point.at)));
        }
        let record = |file: &String| Listed {
            path: directory.join(file),
            at: at.clone(),
            within_limit: point.within_limit.clone(),
            digest: point.content_sha256.get(file).cloned(),
        };
        records.extend(point.records.iter().map(record));
    }
    let mut lacks: Vec<String> = edited(&file, &sweep).into_iter().collect();
    lacks.extend(unlisted(directory, &records));
    Ok(Swept { sweep, records, missing, lacks })
}

/// The side of a comparison of two job files (`--ab`) that a record is of: they may differ in what
/// no axis shows.
fn side(record: &Record) -> Place {
    let of = record.run_of.as_ref().filter(|run_of| run_of.of.starts_with(RunOf::AB));
    of.map(|run_of| ("side".to_owned(), run_of.point.clone())).into_iter().collect()
}

fn directory(directory: &Path, set: &mut Set) -> Result<(), Failure> {
    let name = directory.display();
    let unread = |error: std::io::Error| Failure::Usage(format!("{name}: {error}"));
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(unread)? {
        let path = entry.map_err(unread)?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    files.sort();
    let before = set.members.len();
    for path in files {
        match member(&path) {
            Ok(member) => set.members.push(member),
            Err(failure) => set.unread.push(format!("Not shown: {failure}")),
        }
    }
    match set.members.len() > before {
        true => Ok(()),
        false => Err(Failure::Usage(format!(
            "{name}: it has no {SWEEP_FILE} and no record; name a sweep's directory or a \
             directory of records"
        ))),
    }
}

/// Removes the directories that all names share, and `.json`.
fn shorten(members: &mut [Member]) {
    let parent = |member: &Member| {
        Path::new(&member.name).parent().map(Path::to_path_buf).unwrap_or_default()
    };
    let Some(mut shared) = members.first().map(parent) else { return };
    for member in members.iter() {
        while !Path::new(&member.name).starts_with(&shared) {
            if !shared.pop() {
                break;
            }
        }
    }
    for member in members {
        let path = Path::new(&member.name);
        let short = path.strip_prefix(&shared).unwrap_or(path).display().to_string();
        member.name = short.strip_suffix(".json").unwrap_or(&short).to_owned();
        member.file = short;
    }
}
