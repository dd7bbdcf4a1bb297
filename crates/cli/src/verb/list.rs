//! `gpuio list`: what is built in, and which of it can run here.

use std::process::ExitCode;

use gpuio_base::document::{Document, Item, Layout, List, grouped, json_of};
use gpuio_drivers::cufile::{Library, Vendor};
use gpuio_gpu::{Driver, Which};
use gpuio_host::{Root, nvidia_fs};
use gpuio_io::engine::ENGINES;
use gpuio_io::path::{self, Backend, PATHS};
use gpuio_job::plan::auto_in_words;
use gpuio_record::SCHEMA_VERSION;
use gpuio_report::format::FORMATS;
use serde_json::json;

use crate::args::{self, CufileFlags};
use crate::failure::Failure;
use crate::formats;
use crate::output;
use crate::terminal;

/// `gpuio version`.
pub(crate) fn version(args: &args::List) -> Result<ExitCode, Failure> {
    let format = formats::document(args.format.as_deref())?;
    let version = env!("CARGO_PKG_VERSION");
    let text = match format.name {
        "json" => json_of(&json!({"version": version, "record_version": SCHEMA_VERSION})),
        _ => {
            let mut page = Document::default();
            page.begin("", "").paragraph(format!("gpuio {version}"));
            (format.render)(&page, "version", terminal::width_or_whole())
        }
    };
    output::put(&text).map(|()| ExitCode::SUCCESS)
}

/// Whether something is available, or why not.
type State = Result<(), String>;

/// The facts about this machine that paths need.
struct Needs {
    gpus: Result<u32, String>,
    /// The same of the software GPU.
    software: Result<u32, String>,
    cufile: Result<Library, String>,
    nvidia_fs: State,
}

impl Needs {
    fn look() -> Needs {
        let driver = |which| {
            let driver = Driver::load(&which).map_err(|absent| absent.to_string());
            driver.map(|driver| driver.device_count())
        };
        let search = crate::cufile::search(&CufileFlags::default(), false);
        Needs {
            gpus: driver(Which::System),
            software: driver(Which::Software),
            // The library is loaded, not opened: opening starts threads and reads the whole
            // machine.
            cufile: Library::load(&search).map_err(|absent| absent.to_string()),
            nvidia_fs: match nvidia_fs::sample(&Root::live()) {
                Ok(Some(_)) => Ok(()),
                Ok(None) => Err("it is not loaded".to_owned()),
                Err(error) => Err(error.to_string()),
            },
        }
    }

    /// The needs that a path lacks; each item names the section with the reason.
    fn lacks(&self, row: &path::PathEntry) -> State {
        let least = if row.info.via_gpu { 2 } else { u32::from(row.info.needs_gpu) };
        let gpu = match self.gpus {
            _ if least == 0 => None,
            Err(_) if least == 2 => Some("two GPUs (see GPUS)".to_owned()),
            Err(_) => Some("a GPU (see GPUS)".to_owned()),
            Ok(count) if count < least => Some("a second GPU".to_owned()),
            Ok(_) => None,
        };
        let cufile = match (row.info.backend, &self.cufile) {
            (Backend::Engine | Backend::Library(_) | Backend::Mapping, _) => None,
            (Backend::Rings, _) => {
                let why = path::rings_available().err();
                why.map(|why| format!("rings that the GPU fills ({why})"))
            }
            (Backend::Cufile(_), Err(_)) => Some("NVIDIA's cuFile (see CUFILE)".to_owned()),
            (Backend::Cufile(calls), Ok(library)) => {
                library.missing_function(calls).map(|lacks| format!("calls of cuFile ({lacks})"))
            }
        };
        let lacking: Vec<String> = gpu.into_iter().chain(cufile).collect();
        if lacking.is_empty() {
            return Ok(());
        }
        let tried = match self.software {
            Ok(_) if row.info.via_gpu => {
                "; with software GPUs: GPUIO_SOFT_GPUS=2 and --gpu software"
            }
            Ok(_) => "; with a software GPU: --gpu software",
            Err(_) => "",
        };
        Err(format!("needs {}{tried}", lacking.join(" and ")))
    }
}

fn entry(name: &str, summary: &str, state: &State) -> Item {
    Item::new(name, summary).and("not available", state.as_ref().err().map(String::as_str))
}

pub(crate) fn run(args: &args::List) -> Result<ExitCode, Failure> {
    let format = formats::document(args.format.as_deref())?;
    let needs = Needs::look();
    let mut page = Document::new("Paths, engines, formats and texts");
    let mut add = |title: &'static str, items: Vec<Item>| {
        let section = page.begin("", title);
        section.list(List::new(Layout { indent: 2, ..Layout::columns(16, 2) }, items));
    };
    add("PATHS between a file and the destination, host or GPU memory", paths(&needs));
    let engines = ENGINES.iter();
    let engines =
        engines.map(|row| entry(row.info.name, row.info.summary, &(row.available)())).collect();
    add("ENGINES between files and host memory", engines);
    let software = "gpuio's software GPU, for trying job files: --gpu software";
    let drivers = vec![
        entry("system", "libcuda.so.1 of this machine", &needs.gpus.clone().map(|_| ())),
        entry("software", software, &needs.software.clone().map(|_| ())),
    ];
    add("GPUS: CUDA drivers", drivers);
    let cufile = needs.cufile.as_ref().map(|_| ()).map_err(String::clone);
    let vendor = match needs.cufile.as_ref().map(Library::vendor) {
        Ok(Vendor::Gpuio) => "gpuio's own libcufile.so.0, which is found first",
        _ => "libcufile.so.0 of this machine",
    };
    let module = "kernel module; without it cuFile copies through host memory or uses \
        peer-to-peer DMA";
    let cufile =
        vec![entry("libcufile", vendor, &cufile), entry("nvidia-fs", module, &needs.nvidia_fs)];
    add("CUFILE: requirements of NVIDIA's cuFile paths", cufile);
    let formats = FORMATS.iter().map(|row| {
        let checks = row.checks.map(|checks| format!(" (show --check: {checks})"));
        Item::new(row.name, format!("{}{}", row.summary, checks.unwrap_or_default()))
    });
    add("FORMATS of results", formats.collect());
    let texts = gpuio_capture::KINDS.iter().map(|kind| Item::new(kind.command, kind.gives));
    let layout = Layout { indent: 2, ..Layout::columns(34, 2) };
    page.begin("", "TEXTS: outputs of tools that --from reads").list(List::new(layout, texts));
    output::put(&(format.render)(&page, "list", terminal::width_or_whole()))?;
    Ok(ExitCode::SUCCESS)
}

fn paths(needs: &Needs) -> Vec<Item> {
    let mut page = Vec::new();
    for row in PATHS {
        let number = match row.info.gdsio {
            Some(number) => format!("gdsio -x {number}"),
            None => "no gdsio equivalent".to_owned(),
        };
        page.push(Item::new(row.info.name, format!("{} ({number})", row.info.summary)));
    }
    let here = match needs.gpus {
        Ok(_) => auto_in_words(),
        Err(_) => "host, because there is no GPU".to_owned(),
    };
    let auto =
        format!("chooses one of these by block size and what works, and says why; here: {here}");
    page.push(Item::new("auto", auto));
    page.push(Item::new("all", "runs each path that works on this machine, cuFile's last"));
    let lacks = PATHS.iter().filter_map(|row| Some((needs.lacks(row).err()?, row.info.name)));
    let absent = grouped(lacks).into_iter();
    page.extend(
        absent.map(|(why, paths)| {
            Item::new("", format!("not available: {}: {why}", paths.join(", ")))
        }),
    );
    page
}
