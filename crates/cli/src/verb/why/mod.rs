//! `gpuio why`: whether GDS is on, and which way bytes go, for a mount and a GPU or for a process.
//!
//! Reads facts and prints the answer that `machine::check` makes of them.

mod process;

use std::path::Path;
use std::process::ExitCode;

use gpuio_base::document::{Format, json_of};
use gpuio_base::units::shell_word;
use gpuio_host::answers::answers;
use gpuio_machine::check::why::{Overview, Why as Answer, document};
use gpuio_machine::check::{Gpu, Pair, mount_of};
use gpuio_record::facts::{GpuFacts, Machine, MountKind, MountedStorage};
use gpuio_report::post::Post;
use serde_json::json;

use crate::args::{Subject, Why};
use crate::failure::Failure;
use crate::formats;
use crate::output::Delivery;
use crate::source;
use crate::verb::check::{own_machine, pair, results};

/// Name of the JSON's layout.
const SCHEMA: &str = "gpuio-why-v1";
/// File systems of images, which hold no data of users.
const IMAGES: [&str; 3] = ["squashfs", "iso9660", "erofs"];
/// More mounts are not judged in a table.
const MOUNTS: usize = 12;

pub(crate) fn run(args: &Why) -> Result<ExitCode, Failure> {
    let format = formats::saved(args.format.as_deref(), &args.save)?;
    match &args.subject {
        Some(Subject::Process(pid)) if args.gpu.is_some() || !args.from.is_empty() => {
            Err(Failure::Usage(format!(
                "{pid} is the number of a process, and --gpu and --from are about a machine; leave \
                 one out"
            )))
        }
        Some(Subject::Process(pid)) => process::run(*pid, format, Delivery::open(&args.save)?),
        Some(Subject::Place(path)) => of_machine(args, Some(path.as_path()), format),
        None => of_machine(args, args.mount.as_deref(), format),
    }
}

/// The answer for a place, where one is named, or for all.
fn of_machine(args: &Why, mount: Option<&Path>, format: &Format) -> Result<ExitCode, Failure> {
    let live = args.from.is_empty();
    let delivery = Delivery::open(&args.save)?;
    let mut source = None;
    let mut machine = if live {
        own_machine()
    } else {
        let read = source::only_one(&args.from, args.machine.as_deref())?;
        let machine = read.captured.machine.clone();
        source = Some(read);
        machine
    };
    if live {
        machine.cufile.library = pair::library();
    }
    // A command of the texts names its place and GPU.
    let posts: Vec<Post> = source.iter().flat_map(results::posts).collect();
    let asked = posts.iter().find_map(Post::requested).filter(|_| mount.is_none());
    let asked = asked.filter(|(place, _)| mount_of(&machine, place).is_some());
    let gpu = asked.and_then(|(_, gpu)| gpu).map(|gpu| gpu.to_string());
    let gpu = args.gpu.clone().or(gpu);
    let whole = mount.is_none() && args.gpu.is_none();
    let mounts = if live && !whole { Vec::new() } else { data_mounts(&machine, live) };
    let path = match (mount, first(&mounts)) {
        (Some(path), _) => pair::resolve(path, live)?,
        (None, _) if asked.is_some() => {
            asked.map(|(place, _)| place.to_owned()).unwrap_or_default()
        }
        (None, _) if live => pair::resolve(Path::new("."), true)?,
        (None, Some(first)) => first.mount.mount_point.clone(),
        (None, None) => {
            return Err(Failure::Unavailable(
                "no mount of data is among what was read; name a path with --mount".to_owned(),
            ));
        }
    };
    let pair = match mount {
        Some(_) => pair::find_named(&machine, (&path, live), gpu.as_deref())?,
        None => pair::find(&machine, &path, gpu.as_deref())?,
    };
    let answer = of_pair(&pair, &path);
    let overview = whole.then(|| overview(&machine, &mounts));
    let notes = source.map(|one| source::read_notes(&one.captured)).unwrap_or_default();
    delivery.put(&if format.name == "json" {
        json_of(&json!({
            "schema": SCHEMA, "answer": answer, "overview": overview, "notes": notes
        }))
    } else {
        let mut page = document(&answer, &next(&pair, &path, live));
        if let Some(overview) = overview.filter(|table| table.rows.len() > 1) {
            page.sections.insert(0, overview.section(mounts.len().saturating_sub(MOUNTS)));
        }
        let section = page.begin("notes", "NOTES");
        for note in notes {
            section.paragraph(note);
        }
        formats::print(format, "why", &page)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The mount that is asked for where none is named: of data before that of the system.
fn first<'m>(mounts: &[&'m MountedStorage]) -> Option<&'m MountedStorage> {
    let is_data = |mount: &&&MountedStorage| mount.mount.mount_point != "/";
    mounts.iter().find(is_data).or(mounts.first()).copied()
}

/// The conclusion for the first mount and the first GPU; `None` where one of them is missing.
pub(super) fn conclusion(machine: &Machine, live: bool) -> Option<String> {
    let mount = first(&data_mounts(machine, live))?;
    let gpu = Gpu::Real(machine.gpus.first()?);
    let answer = of_pair(&Pair { machine, mount, gpu }, &mount.mount.mount_point);
    Some(format!("{}. `gpuio why` has the evidence.", answer.conclusion))
}

fn of_pair(pair: &Pair<'_>, path: &str) -> Answer {
    gpuio_machine::check::why::of(&gpuio_machine::check::verdict(pair, path))
}

/// Mounts of storage, each file system once, by the shortest of its mount points.
fn data_mounts(machine: &Machine, live: bool) -> Vec<&MountedStorage> {
    let is_data = |mount: &&MountedStorage| {
        let held = !matches!(mount.kind, MountKind::Memory | MountKind::Overlay);
        let image = IMAGES.contains(&mount.mount.fs_type.as_str());
        // Containers mount single files.
        held && !image && (!live || is_directory(Path::new(&mount.mount.mount_point)))
    };
    let mut all: Vec<&MountedStorage> = machine.mounts.iter().filter(is_data).collect();
    all.sort_by_key(|mount| mount.mount.mount_point.len());
    let mut kept: Vec<&MountedStorage> = Vec::new();
    for mount in all {
        let same = |known: &&MountedStorage| {
            let (one, two) = (&known.mount, &mount.mount);
            (&one.source, &one.fs_type, one.device) == (&two.source, &two.fs_type, two.device)
        };
        if !kept.iter().any(same) {
            kept.push(mount);
        }
    }
    kept
}

/// Whether a mount is one of a directory; one that does not answer is named and left out.
fn is_directory(place: &Path) -> bool {
    match answers(place) {
        Ok(()) => place.is_dir(),
        Err(silent) => {
            message!("note: {silent}");
            false
        }
    }
}

fn overview(machine: &Machine, mounts: &[&MountedStorage]) -> Overview {
    let gpus: Vec<Gpu<'_>> = match machine.gpus.as_slice() {
        [] => vec![Gpu::None],
        gpus => gpus.iter().map(Gpu::Real).collect(),
    };
    let answers: Vec<(Answer, String)> = mounts
        .iter()
        .take(MOUNTS)
        .flat_map(|&mount| gpus.iter().map(move |&gpu| (mount, gpu)))
        .map(|(mount, gpu)| {
            let pair = Pair { machine, mount, gpu };
            let name = match gpu {
                Gpu::Real(gpu) => short(gpu),
                Gpu::Software => "software".to_owned(),
                Gpu::None => "none".to_owned(),
            };
            (of_pair(&pair, &mount.mount.mount_point), name)
        })
        .collect();
    Overview::of(answers.iter().map(|(why, name)| (why, name.clone())))
}

/// The GPU's number, else its address.
fn short(gpu: &GpuFacts) -> String {
    let number = gpu.index.known().map(u32::to_string);
    number.or_else(|| gpu.pci.clone()).unwrap_or_else(|| "?".to_owned())
}

/// Commands that answer what facts leave open.
fn next(pair: &Pair<'_>, path: &str, live: bool) -> Vec<String> {
    let path = shell_word(path);
    let gpu = match pair.gpu {
        Gpu::Real(gpu) => format!(" --gpu {}", short(gpu)),
        Gpu::Software => " --gpu software".to_owned(),
        // Texts without a GPU say nothing of the machine's.
        Gpu::None if !live => String::new(),
        Gpu::None => {
            return vec![
                "gpuio bench --gpu software   (tries gpuio's paths to GPU memory without a GPU)"
                    .to_owned(),
            ];
        }
    };
    let check = format!("gpuio check --mount {path}{gpu}");
    match live {
        true => vec![
            format!("{check} --prove   (real I/O on each way: proof, where this is from facts)"),
            format!("{check}   (what costs throughput between the two)"),
        ],
        false => vec![format!("{check} --prove on that machine   (real I/O on each way)")],
    }
}
