//! `gpuio report`: records and sweeps as an HTML page, or in a format for other programs.

mod pdf;
mod picture;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gpuio_base::units::many;
use gpuio_guard::outfile::Directory;
use gpuio_report::set::{SET_FORMATS, Set, SetFormat, find_set_format, fio_files};

use crate::args::Report;
use crate::failure::Failure;
use crate::formats::{self, PDF};
use crate::output::{self, Output, Replace};
use crate::{locale, records, unused};

/// Maximum size of compressed records in a page, by default.
const EMBED_LIMIT: &str = "16M";
/// Output file of a page by default: HTML is of no use on a terminal.
const PAGE: &str = "report.html";

pub(crate) fn run(report: &Report) -> Result<ExitCode, Failure> {
    if is_pdf(report) {
        return print(report);
    }
    let format = format(report)?;
    let dash = report.output.as_ref().is_some_and(|path| path.as_os_str() == "-");
    let to_stdout = dash || (report.output.is_none() && format.name != "html");
    unused::report(report, format.name, to_stdout)?;
    let mut set = read(report)?;
    set.title = match format.name {
        // A picture names its plots; a title is what its caller gives it.
        "svg" => report.title.clone().unwrap_or_default(),
        _ => title(report, &set),
    };
    if format.name == "html" {
        set.topology = picture::of(report, &set)?;
    }
    set.embed_limit = embed_limit(report)?;
    let path = match &report.output {
        Some(path) => Some(path.clone()),
        None => (format.name == "html").then(|| PathBuf::from(PAGE)),
    };
    locale::printed_as(format.name);
    match path {
        None => output::put(&(format.render)(&set))?,
        Some(path) if path.as_os_str() == "-" => output::put(&(format.render)(&set))?,
        Some(folder) if format.name == "fio-json" && is_directory(&folder) => {
            let files = fio_files(&set);
            for (name, text) in &files {
                save(&folder.join(name), text, format, report.force)?;
            }
            report_written(&folder, &format!("{} files, {}", files.len(), format.name));
        }
        Some(path) => {
            let text = (format.render)(&set);
            save(&path, &text, format, report.force)?;
            report_written(&path, &format!("{}, {} bytes", format.name, text.len()));
        }
    }
    Ok(done(&set))
}

/// Exit code 1 where a record that a sweep lists can't be read.
fn done(set: &Set) -> ExitCode {
    ExitCode::from(u8::from(!set.unreadable.is_empty()))
}

/// Whether the page is wanted as PDF, by the name of the format or of the file.
fn is_pdf(report: &Report) -> bool {
    let by_name = || {
        let path = report.output.as_ref()?;
        path.extension().map(|extension| extension == PDF)
    };
    report.format.as_ref().map_or_else(|| by_name() == Some(true), |name| name == PDF)
}

/// Prints the page into a file. The records are not on paper.
fn print(report: &Report) -> Result<ExitCode, Failure> {
    let path = report.output.clone().unwrap_or_else(|| PathBuf::from("report.pdf"));
    if path.as_os_str() == "-" {
        let what = "-o -: a PDF is written to a file; name one, or choose another format";
        return Err(Failure::Usage(what.to_owned()));
    }
    unused::report(report, PDF, false)?;
    let mut set = read(report)?;
    let browser = pdf::browser()?;
    let output = Output::begin("-o", &path, Replace::forced(report.force))?;
    set.title = title(report, &set);
    set.topology = picture::of(report, &set)?;
    // Paper has no buttons, so that the limit is of no concern.
    set.embed_limit = None;
    let bytes = pdf::print(&browser, &(SET_FORMATS[0].render)(&set))?;
    let path = output.save("the report", &bytes)?;
    report_written(
        &path,
        &format!("{PDF}, {} bytes, printed by {}", bytes.len(), browser.display()),
    );
    Ok(done(&set))
}

/// The records; a line on runs that are not here, and on figures that do not follow from counts.
fn read(report: &Report) -> Result<Set, Failure> {
    let mut set = records::read(&report.inputs)?;
    let none = |flag: &str, what: &str| {
        let flag = flag.to_owned() + ": these records differ in no " + what;
        move |known: Vec<String>| {
            Failure::Usage(match known.join(", ") {
                none if none.is_empty() => flag,
                known => format!("{flag} of that name, but in {known}"),
            })
        }
    };
    if let Some(name) = &report.x {
        set.draw_across(name).map_err(none(&format!("--x {name}"), "number"))?;
    }
    if let Some(name) = &report.lines {
        set.draw_lines(name).map_err(none(&format!("--lines {name}"), "key"))?;
    }
    let doubts = [set.incomplete(), set.doubt()].into_iter().flatten();
    for text in doubts.chain(set.unreadable.iter().skip(1).cloned()) {
        message!("{text}");
    }
    Ok(set)
}

fn report_written(path: &Path, what: &str) {
    message!("Report: {} ({what})", path.display());
}

/// By name, by the extension of the file, or HTML.
fn format(report: &Report) -> Result<&'static SetFormat, Failure> {
    let names = formats::names_of_reports;
    if let Some(name) = &report.format {
        return find_set_format(name).ok_or_else(|| formats::unknown(name, &names()));
    }
    let Some(path) = &report.output else { return Ok(&SET_FORMATS[0]) };
    let extension = path.extension().and_then(|extension| extension.to_str());
    let by_extension = |format: &&SetFormat| Some(format.extension) == extension;
    SET_FORMATS.iter().find(by_extension).ok_or_else(|| {
        let path = path.display();
        let names = names().join(", ");
        Failure::Usage(format!(
            "-o {path}: the file name has no known extension; add --format: {names}"
        ))
    })
}

/// The title that was given, or the name of the set.
fn title(report: &Report, set: &Set) -> String {
    if let Some(title) = &report.title {
        return title.clone();
    }
    match (set.sweeps.as_slice(), set.members.as_slice()) {
        ([sweep], _) => sweep.name.clone(),
        (_, [one]) => one.record.plan.name.clone().unwrap_or_else(|| one.name.clone()),
        (_, all) => many(all.len() as u64, "record"),
    }
}

fn embed_limit(report: &Report) -> Result<Option<usize>, Failure> {
    let given = report.embed_limit.as_deref().unwrap_or(EMBED_LIMIT);
    if given == "none" {
        return Ok(None);
    }
    let bytes = gpuio_base::units::parse_bytes(given)
        .map_err(|error| Failure::Usage(format!("--embed-limit {given}: {error}")))?;
    Ok(usize::try_from(bytes).ok())
}

fn is_directory(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().to_string_lossy().ends_with('/')
}

/// Writes the file completely or not at all. A report that gpuio wrote and nothing changed since is
/// replaced, as is with --force anything else that gpuio wrote; no other file is.
fn save(path: &Path, text: &str, format: &SetFormat, force: bool) -> Result<(), Failure> {
    let replace = match force {
        true => Replace::Forced,
        false if is_report(path, format) => Replace::Always,
        false => Replace::No,
    };
    Output::begin("-o", path, replace)?.save_text("the report", text).map(drop)
}

/// Whether the first 4 KiB of the file have the format's mark.
fn is_report(path: &Path, format: &SetFormat) -> bool {
    let read = || {
        let (directory, name) = Directory::of(path)?;
        let mut head = Vec::new();
        if let Some(file) = directory.file(&name)? {
            file.take(4096).read_to_end(&mut head)?;
        }
        Ok::<_, std::io::Error>(head)
    };
    read().is_ok_and(|head| String::from_utf8_lossy(&head).contains(format.mark))
}
