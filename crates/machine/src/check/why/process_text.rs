//! The answer for a process as a document.

use gpuio_base::document::{Document, Item, first};
use gpuio_base::units::human_rate;
use gpuio_record::facts::{Fact, LibraryMaker, MappedLibrary, OpenFile};

use super::process::{is_cufile, size};
use super::text::{changes, list, next};
use super::{Moved, NvidiaFs, ProcessWhy};

/// More files than this are cut, and the number of the rest is printed.
const FILES: usize = 6;

/// The conclusion, each fact, and the next commands to run.
pub fn process_document(why: &ProcessWhy, commands: &[String]) -> Document {
    let mut page = Document::new(format!("Process {}", why.pid));
    let command = why.command.as_deref().unwrap_or("its command line is not known");
    let head = page.begin("", "");
    head.paragraph(format!("Process {} ({command})", why.pid));
    head.paragraph(format!("{}.", why.conclusion.trim_end_matches('.')));
    let evidence = page.begin("evidence", "Evidence");
    let of_mounts = why
        .mounts
        .iter()
        .map(|mount| Item::new(format!("mount {}", mount.mount_point), mount.conclusion.as_str()));
    let unjudged = why.unjudged.iter().map(|reason| Item::new("mount", reason.as_str()));
    let facts = [libraries, live_page, requests, devices, files, counters, settings];
    let facts = facts.into_iter().flat_map(|facts| facts(why));
    evidence.list(list(facts.chain(of_mounts).chain(unjudged)));
    if let Some(mount) = why.mounts.first() {
        changes(&mut page, &mount.changes);
    }
    next(&mut page, commands);
    page
}

fn unknown(head: &str, why: &str) -> Vec<Item> {
    vec![Item::new(head, format!("unknown: {why}"))]
}

/// Lines behind a label that stands once.
fn behind<T: Into<String>>(label: &str, lines: impl IntoIterator<Item = T>) -> Vec<Item> {
    let label = |nth: usize| if nth == 0 { label } else { "" };
    let lines = lines.into_iter().enumerate();
    lines.map(|(nth, line)| Item::new(label(nth), line.into())).collect()
}

fn libraries(why: &ProcessWhy) -> Vec<Item> {
    let all = match &why.process.libraries {
        Fact::Known(all) => all,
        Fact::Unknown(why) => return unknown("libcufile", why),
    };
    let none = (!all.iter().any(is_cufile)).then(|| Item::new("libcufile", "none is mapped"));
    let of = |library: &MappedLibrary| {
        let label = if is_cufile(library) { "libcufile" } else { "library" };
        Item::new(label, of_library(why, library))
    };
    none.into_iter().chain(all.iter().map(of)).collect()
}

fn of_library(why: &ProcessWhy, library: &MappedLibrary) -> String {
    let release = why.page.known().map(|page| page.release.as_str());
    let made_by = match &library.made_by {
        _ if !is_cufile(library) => String::new(),
        Fact::Known(LibraryMaker::Gpuio) => {
            format!(": gpuio's{}", release.map(|release| format!(" {release}")).unwrap_or_default())
        }
        Fact::Known(LibraryMaker::Other) => ": not made by gpuio; NVIDIA's or another".to_owned(),
        Fact::Unknown(why) => format!(": whose it is, is unknown ({why})"),
    };
    let version =
        library.version.as_ref().map(|version| format!(", version {version} by its name"));
    let deleted = if library.deleted { ", removed or replaced since" } else { "" };
    format!("{}{made_by}{}{deleted}", library.path, version.unwrap_or_default())
}

fn live_page(why: &ProcessWhy) -> Vec<Item> {
    let page = match &why.page {
        Fact::Known(page) => page,
        Fact::Unknown(why) => return unknown("live page", why),
    };
    let moved = page.moved.iter().filter(|moved| moved.read_bytes > 0 || moved.written_bytes > 0);
    let mut lines: Vec<String> = moved.map(|moved| moved.words()).collect();
    if lines.is_empty() {
        lines.push("no bytes yet".to_owned());
    }
    behind("live page", lines)
}

/// Sizes of requests, and how many are in flight.
fn requests(why: &ProcessWhy) -> Vec<Item> {
    let Some(page) = why.page.known() else {
        return unknown(
            "requests",
            "a live page alone counts their sizes and how many are in flight",
        );
    };
    let mut lines: Vec<String> =
        page.moved.iter().filter(|moved| moved.requests > 0).map(Moved::requests).collect();
    if lines.is_empty() {
        lines.push("none has completed yet".to_owned());
    }
    behind("requests", lines)
}

fn devices(why: &ProcessWhy) -> Vec<Item> {
    let nodes = match &why.process.devices {
        Fact::Known(nodes) => nodes,
        Fact::Unknown(why) => return unknown("device nodes", why),
    };
    let is_nvidia_fs = |node: &&String| node.starts_with("/dev/nvidia-fs");
    let (nvidia_fs, others): (Vec<&String>, Vec<&String>) = nodes.iter().partition(is_nvidia_fs);
    let others: Vec<&str> = others.into_iter().map(String::as_str).collect();
    let others =
        if others.is_empty() { "none of NVIDIA's driver".to_owned() } else { others.join(", ") };
    let nvidia_fs = match nvidia_fs.len() {
        0 => "none of nvidia-fs".to_owned(),
        count => format!("{count} of nvidia-fs"),
    };
    behind("device nodes", [format!("{others}; {nvidia_fs}")])
}

fn files(why: &ProcessWhy) -> Vec<Item> {
    let files = match &why.process.files {
        Fact::Known(files) => files,
        Fact::Unknown(why) => return unknown("open files", why),
    };
    let mut lines = first(files.iter().map(of_file), FILES);
    if files.is_empty() {
        lines.push("none on storage".to_owned());
    }
    behind("open files", lines)
}

fn of_file(file: &OpenFile) -> String {
    let access = match (file.reads, file.writes) {
        (true, true) => "read and write",
        (false, true) => "write",
        _ => "read",
    };
    let direct = if file.direct { "O_DIRECT" } else { "no O_DIRECT" };
    let mount = match (&file.mount_point, &file.fs_type) {
        (Some(at), Some(fs_type)) => format!("{fs_type} at {at}"),
        _ if file.path.starts_with("/dev/") => "a block device".to_owned(),
        _ => "its mount is not known".to_owned(),
    };
    let descriptors = match file.descriptors {
        1 => String::new(),
        many => format!(", {many} descriptors"),
    };
    format!("{} ({mount}): {direct}, {access}{descriptors}", file.path)
}

fn counters(why: &ProcessWhy) -> Vec<Item> {
    let mut items = match &why.io_now {
        Fact::Unknown(why) => unknown("I/O now", why),
        Fact::Known(now) => {
            let rate = |bytes: u64| human_rate(bytes as f64 / now.seconds.max(1e-9));
            let moved = &now.moved;
            let mut lines = vec![format!(
                "read calls returned {}, storage delivered {}; write calls took {}, storage got {} \
                 (/proc/PID/io in {:.1} s; io_uring, libaio, mapped files and nvidia-fs are in the \
                 figures of storage alone)",
                rate(moved.read_call_bytes),
                rate(moved.storage_read_bytes),
                rate(moved.write_call_bytes),
                rate(moved.storage_write_bytes),
                now.seconds
            )];
            let cached = moved.read_call_bytes.saturating_sub(moved.storage_read_bytes);
            if cached > moved.read_call_bytes / 2 && cached > 0 {
                lines.push(format!(
                    "at least {} of the read calls' bytes did not come from storage now: page \
                     cache, pipes or sockets",
                    rate(cached)
                ));
            }
            behind("I/O now", lines)
        }
    };
    let words = match &why.nvidia_fs {
        NvidiaFs::NotLoaded => "not loaded".to_owned(),
        NvidiaFs::Unknown(why) => format!("loaded; what it moves is unknown: {why}"),
        NvidiaFs::Moved { read_bytes, written_bytes } => format!(
            "moved {} to GPUs and {} from GPUs in that time, for all processes together",
            size(*read_bytes),
            size(*written_bytes)
        ),
    };
    items.push(Item::new("nvidia-fs", words));
    items
}

fn settings(why: &ProcessWhy) -> Vec<Item> {
    let all = match &why.process.environment {
        Fact::Known(all) => all,
        Fact::Unknown(why) => return unknown("variables", why),
    };
    let all: Vec<String> = all.iter().map(|(name, value)| format!("{name}={value}")).collect();
    behind(
        "variables",
        [match all.as_slice() {
            [] => "none that choose the way, at its start".to_owned(),
            all => format!("{} (at its start)", all.join(" ")),
        }],
    )
}
