//! The lines, in the layout of release 1.16.

use std::fmt::{Display, Write};

use gpuio_base::units::printable_short;
use gpuio_record::facts::{Fact, GdsCheck, GdsGpu, GdsLine};

use super::OfFile;

/// The output of `-p`.
pub fn text(check: &GdsCheck, version: &str) -> String {
    let mut page = Lines(versions(check, version));
    page.line(format_args!("Platform: {}", Shown(&check.platform)));
    page.heading("ENVIRONMENT:");
    page.lines(&check.environment, 0);
    page.heading("DRIVER CONFIGURATION:");
    let (rdma, storage): (Vec<&GdsLine>, Vec<&GdsLine>) =
        check.drivers.iter().partition(|line| line.name.starts_with("--"));
    page.lines(storage, 19);
    page.lines(rdma, 22);
    page.heading("CUFILE CONFIGURATION:");
    page.lines(&check.settings, 0);
    page.heading("GPU INFO:");
    check.gpus.iter().for_each(|gpu| page.gpu(gpu));
    page.heading("PLATFORM INFO:");
    for switch in &check.acs {
        page.line(format_args!("Found ACS enabled for switch {switch}"));
    }
    for note in &check.notes {
        page.line(&note.text);
    }
    page.line(format_args!("IOMMU: {}", Shown(&check.iommu)));
    page.line(format_args!("Nvidia Driver Info Status: {}", Shown(&check.driver_status)));
    page.line(format_args!("Cuda Driver Version Installed:  {}", Shown(&check.cuda_version)));
    page.line(format_args!("Platform: {}", Shown(&check.machine)));
    page.line(format_args!("Platform verification {}", Shown(&check.verification)));
    page.0
}

/// The output of `-v`: the name of the program, and versions.
pub fn versions(check: &GdsCheck, version: &str) -> String {
    let mut page = Lines(String::new());
    // At the margin, and the first line of all: so that it can't be mistaken for NVIDIA's.
    let _ = writeln!(
        page.0,
        "gpuio gdscheck {version} (not NVIDIA's tool; from what gpuio read, see docs/check.md)"
    );
    page.line(format_args!("GDS release version: {}", Shown(&check.release)));
    page.line(format_args!(
        "nvidia_fs version:  {} libcufile version: {}",
        Shown(&check.nvidia_fs),
        Shown(&check.libcufile)
    ));
    page.0
}

/// The output of `-f`.
pub fn file_text(of: &OfFile) -> String {
    let mut page = Lines(String::new());
    page.line(format_args!("File: {}", of.path));
    page.line(format_args!("Mount: {}", of.mount));
    page.line(format_args!("{} : {}", of.storage, Shown(&of.value)));
    page.line("GDS register Unknown (the file was not registered; gpuio bench --path gds does)");
    page.0
}

/// A value, or `Unknown (why)`.
struct Shown<'f, T>(&'f Fact<T>);

impl<T: Display> Display for Shown<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Fact::Known(value) => write!(f, "{value}"),
            Fact::Unknown(why) => write!(f, "Unknown ({why})"),
        }
    }
}

struct Lines(String);

impl Lines {
    // Writing to a String can't fail.
    fn line(&mut self, line: impl Display) {
        // Names and values are the machine's, and of a configuration that anybody may have written.
        let _ = writeln!(self.0, " {}", printable_short(&line.to_string()));
    }

    fn heading(&mut self, name: &str) {
        let rule = "=".repeat(name.len());
        [&rule, name, &rule].into_iter().for_each(|line| self.line(line));
    }

    fn lines<'l>(&mut self, lines: impl IntoIterator<Item = &'l GdsLine>, width: usize) {
        for line in lines {
            // Settings and variables have no columns.
            let name = format!("{:<width$}", line.name);
            let gap = if width > 0 { "" } else { " " };
            self.line(format_args!("{name}{gap}: {}", Shown(&line.value)));
        }
    }

    fn gpu(&mut self, gpu: &GdsGpu) {
        let size = match &gpu.bar1_bytes {
            Fact::Known(bytes) => Fact::Known(bytes >> 20),
            Fact::Unknown(why) => Fact::unknown(why.clone()),
        };
        self.line(format_args!(
            "GPU index {} {} bar:1 bar size (MiB):{} {}, IOMMU State: {}",
            Shown(&gpu.index),
            Shown(&gpu.name),
            Shown(&size),
            Shown(&gpu.support),
            Shown(&gpu.iommu)
        ));
    }
}
