//! gdscheck's sections from our own facts, in the values of [`GdsCheck`], and their text.
//!
//! Facts that gdscheck learns by opening NVIDIA's library can't be known from files: such a value
//! is unknown with its reason, never a guessed `Supported`. The lines and their order are those of
//! release 1.16, as scripts parse them; the words of [`text()`] beside values are gpuio's.

mod drivers;
mod file;
pub(crate) mod interpret;
mod platform;
mod settings;
mod text;

use std::collections::BTreeMap;

use gpuio_record::facts::{Fact, GdsCheck, GdsLine, Machine};

pub use file::{OfFile, of_file};
pub use text::{file_text, text, versions};

/// Facts about the software, in addition to the machine's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Software {
    /// Release of GPUDirect Storage, as nvidia-fs reports it.
    pub release: Fact<String>,
    /// Modules of storage that have registered with nvidia-fs.
    pub registered: Fact<Vec<String>>,
    /// Whether NVIDIA's kernel driver is the open one.
    pub open_driver: Fact<bool>,
    /// File name of cuFile's library (`libcufile.so.1.13.0`), found and not loaded.
    pub libcufile: Fact<String>,
    /// cuFile's configuration.
    pub config: Fact<Config>,
    /// cuFile's environment variables.
    pub environment: BTreeMap<String, String>,
    /// The processors' architecture (`x86_64`).
    pub architecture: Fact<String>,
    /// The report of the open library; `None` where it was not queried.
    pub library: Option<LibraryReport>,
}

/// The report of cuFile's open library.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LibraryReport {
    pub release: Option<(u32, u32)>,
    /// Kinds of storage to which it knows a direct way (`dstatusflags`), in the words of
    /// `gpuio_drivers::cufile`.
    pub storage: Vec<String>,
    /// Whether it may go through host memory.
    pub compat: bool,
}

/// cuFile's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Config {
    /// Its file; `None` where there is none, so that all is built in.
    pub file: Option<String>,
    /// Keys joined by dots, values as JSON.
    pub keys: BTreeMap<String, String>,
}

/// gdscheck's lines, made from our facts.
pub fn of(machine: &Machine, software: &Software) -> GdsCheck {
    let settings = settings::lines(software);
    let mut check = GdsCheck {
        by_gpuio: true,
        release: release(software),
        nvidia_fs: nvidia_fs(machine),
        libcufile: libcufile(software),
        platform: software.architecture.clone(),
        environment: software.environment.iter().map(|(name, value)| line(name, value)).collect(),
        drivers: drivers::lines(machine, software, &settings),
        settings,
        gpus: platform::gpus(machine),
        iommu: platform::iommu(machine),
        driver_status: platform::driver_status(machine, software),
        cuda_version: Fact::unknown("NVIDIA's CUDA driver was not queried"),
        machine: platform::product(machine, software),
        ..GdsCheck::default()
    };
    (check.acs, check.notes) = platform::acs(machine);
    check.verification = platform::verification(machine, &check);
    clean(&mut check);
    check
}

/// The library's, which goes by the same number, where it was queried.
fn release(software: &Software) -> Fact<String> {
    let library = software.library.as_ref().and_then(|library| library.release);
    match library {
        Some((major, minor)) => Fact::Known(format!("{major}.{minor}")),
        None => software.release.clone(),
    }
}

fn line(name: &str, value: &str) -> GdsLine {
    GdsLine { name: name.to_owned(), value: Fact::Known(value.to_owned()) }
}

/// Nothing that is not loaded has a version.
fn nvidia_fs(machine: &Machine) -> Fact<String> {
    use crate::check::machine::{known_module, modules_not_read};
    match known_module(machine, "nvidia_fs") {
        None => Fact::unknown(modules_not_read(machine)),
        Some(module) if !module.loaded => Fact::Known(NOT_LOADED.to_owned()),
        Some(module) => Fact::or_unknown(module.version.clone(), "it reports none"),
    }
}

/// Stands for nvidia-fs's version where the module is known to be absent.
pub(crate) const NOT_LOADED: &str = "not loaded";

fn libcufile(software: &Software) -> Fact<String> {
    match &software.libcufile {
        _ if software.library.is_some() => {
            Fact::unknown("the library reports its release, not its interface's version")
        }
        Fact::Known(file) => Fact::unknown(format!("{file} is there and was not loaded")),
        Fact::Unknown(why) => Fact::unknown(why.clone()),
    }
}

/// Reasons stand between brackets on one line: brackets and line ends in them are taken out, so
/// that what is printed can be read back.
fn clean(check: &mut GdsCheck) {
    fn one<T>(fact: &mut Fact<T>) {
        if let Fact::Unknown(why) = fact {
            *why = why.replace('(', "[").replace(')', "]").replace(['\n', ':'], ",");
        }
    }
    for fact in [
        &mut check.release,
        &mut check.nvidia_fs,
        &mut check.libcufile,
        &mut check.platform,
        &mut check.iommu,
        &mut check.driver_status,
        &mut check.machine,
        &mut check.verification,
    ] {
        one(fact);
    }
    one(&mut check.cuda_version);
    let lines = check.environment.iter_mut().chain(&mut check.drivers).chain(&mut check.settings);
    lines.for_each(|line| one(&mut line.value));
    for gpu in &mut check.gpus {
        one(&mut gpu.index);
        one(&mut gpu.bar1_bytes);
        [&mut gpu.name, &mut gpu.support, &mut gpu.iommu].into_iter().for_each(one);
    }
}
