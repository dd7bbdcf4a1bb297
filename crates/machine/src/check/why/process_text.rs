//! The answer for a process as text.

use gpuio_base::units::human_rate;
use gpuio_record::facts::{Fact, LibraryMaker, MappedLibrary, OpenFile};

use super::process::{is_cufile, size};
use super::text::{changes, line};
use super::{NvidiaFs, ProcessWhy};
use crate::check::text::wrap;

/// More files than this are cut, and the number of the rest is printed.
const FILES: usize = 6;

/// The conclusion, each fact, and the next command, in lines of at most `width` characters, where
/// words allow it. `next` are commands to run.
#[must_use]
pub fn render_process(why: &ProcessWhy, next: &[String], width: usize) -> String {
    let mut out = String::new();
    let command = why.command.as_deref().unwrap_or("its command line is not known");
    wrap(&mut out, "", &format!("Process {} ({command})", why.pid), width);
    wrap(&mut out, "", &format!("{}.", why.conclusion.trim_end_matches('.')), width);
    out.push_str("\nEvidence\n");
    libraries(&mut out, why, width);
    page(&mut out, why, width);
    devices(&mut out, why, width);
    files(&mut out, why, width);
    counters(&mut out, why, width);
    settings(&mut out, why, width);
    for mount in &why.mounts {
        line(&mut out, &format!("mount {}", mount.mount_point), &mount.conclusion, width);
    }
    for reason in &why.unjudged {
        line(&mut out, "mount", reason, width);
    }
    if let Some(mount) = why.mounts.first() {
        changes(&mut out, &mount.changes, width);
    }
    for (at, command) in next.iter().enumerate() {
        wrap(&mut out, if at == 0 { "\nNext: " } else { "      " }, command, width);
    }
    out
}

fn unknown(out: &mut String, head: &str, why: &str, width: usize) {
    line(out, head, &format!("unknown: {why}"), width);
}

fn libraries(out: &mut String, why: &ProcessWhy, width: usize) {
    let all = match &why.process.libraries {
        Fact::Known(all) => all,
        Fact::Unknown(why) => return unknown(out, "libcufile", why, width),
    };
    if !all.iter().any(is_cufile) {
        line(out, "libcufile", "none is mapped", width);
    }
    for library in all {
        line(
            out,
            if is_cufile(library) { "libcufile" } else { "library" },
            &of_library(why, library),
            width,
        );
    }
}

fn of_library(why: &ProcessWhy, library: &MappedLibrary) -> String {
    let release = why.page.known().map(|page| page.release.as_str());
    let made_by = match &library.made_by {
        _ if !is_cufile(library) => String::new(),
        Fact::Known(LibraryMaker::Gpuio) => {
            format!(": gpuio's{}", release.map(|release| format!(" {release}")).unwrap_or_default())
        }
        Fact::Known(LibraryMaker::Other) => ": not gpuio's, as NVIDIA's is".to_owned(),
        Fact::Unknown(why) => format!(": whose it is, is unknown ({why})"),
    };
    let version =
        library.version.as_ref().map(|version| format!(", version {version} by its name"));
    let deleted = if library.deleted { ", removed or replaced since" } else { "" };
    format!("{}{made_by}{}{deleted}", library.path, version.unwrap_or_default())
}

fn page(out: &mut String, why: &ProcessWhy, width: usize) {
    let page = match &why.page {
        Fact::Known(page) => page,
        Fact::Unknown(why) => return unknown(out, "live page", why, width),
    };
    let moved: Vec<_> =
        page.moved.iter().filter(|moved| moved.read_bytes > 0 || moved.written_bytes > 0).collect();
    if moved.is_empty() {
        line(out, "live page", "no bytes yet", width);
    }
    for (at, moved) in moved.into_iter().enumerate() {
        line(out, if at == 0 { "live page" } else { "" }, &moved.words(), width);
    }
}

fn devices(out: &mut String, why: &ProcessWhy, width: usize) {
    let nodes = match &why.process.devices {
        Fact::Known(nodes) => nodes,
        Fact::Unknown(why) => return unknown(out, "device nodes", why, width),
    };
    let nvidia_fs = nodes.iter().filter(|node| node.starts_with("/dev/nvidia-fs")).count();
    let others: Vec<&str> = nodes
        .iter()
        .filter(|node| !node.starts_with("/dev/nvidia-fs"))
        .map(String::as_str)
        .collect();
    let others =
        if others.is_empty() { "none of NVIDIA's driver".to_owned() } else { others.join(", ") };
    let nvidia_fs = match nvidia_fs {
        0 => "none of nvidia-fs".to_owned(),
        count => format!("{count} of nvidia-fs"),
    };
    line(out, "device nodes", &format!("{others}; {nvidia_fs}"), width);
}

fn files(out: &mut String, why: &ProcessWhy, width: usize) {
    let files = match &why.process.files {
        Fact::Known(files) => files,
        Fact::Unknown(why) => return unknown(out, "open files", why, width),
    };
    if files.is_empty() {
        line(out, "open files", "none on storage", width);
    }
    for (at, file) in files.iter().take(FILES).enumerate() {
        line(out, if at == 0 { "open files" } else { "" }, &of_file(file), width);
    }
    if files.len() > FILES {
        line(out, "", &format!("and {} more", files.len() - FILES), width);
    }
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

fn counters(out: &mut String, why: &ProcessWhy, width: usize) {
    match &why.io_now {
        Fact::Unknown(why) => unknown(out, "I/O now", why, width),
        Fact::Known(now) => {
            #[expect(clippy::cast_precision_loss, reason = "rounded for people")]
            let rate = |bytes: u64| human_rate(bytes as f64 / now.seconds.max(1e-9));
            let moved = &now.moved;
            let words = format!(
                "read calls returned {}, storage delivered {}; write calls took {}, storage got {} \
                 (/proc/PID/io in {:.1} s; io_uring, libaio, mapped files and nvidia-fs are in the \
                 figures of storage alone)",
                rate(moved.read_call_bytes),
                rate(moved.storage_read_bytes),
                rate(moved.write_call_bytes),
                rate(moved.storage_write_bytes),
                now.seconds
            );
            line(out, "I/O now", &words, width);
            let cached = moved.read_call_bytes.saturating_sub(moved.storage_read_bytes);
            if cached > moved.read_call_bytes / 2 && cached > 0 {
                let words = format!(
                    "at least {} of the read calls' bytes did not come from storage now: page \
                     cache, pipes or sockets",
                    rate(cached)
                );
                line(out, "", &words, width);
            }
        }
    }
    let words = match &why.nvidia_fs {
        NvidiaFs::NotLoaded => "not loaded".to_owned(),
        NvidiaFs::Unknown(why) => format!("loaded; what it moves is unknown: {why}"),
        NvidiaFs::Moved { read_bytes, written_bytes } => format!(
            "moved {} to GPUs and {} from GPUs in that time, for all processes together",
            size(*read_bytes),
            size(*written_bytes)
        ),
    };
    line(out, "nvidia-fs", &words, width);
}

fn settings(out: &mut String, why: &ProcessWhy, width: usize) {
    match &why.process.environment {
        Fact::Unknown(why) => unknown(out, "variables", why, width),
        Fact::Known(all) if all.is_empty() => {
            line(out, "variables", "none that choose the way, at its start", width);
        }
        Fact::Known(all) => {
            let all: Vec<String> =
                all.iter().map(|(name, value)| format!("{name}={value}")).collect();
            line(out, "variables", &format!("{} (at its start)", all.join(" ")), width);
        }
    }
}
