//! `gdscheck -p` (NVIDIA GPUDirect Storage), in its three layouts: 0.9 without rules between
//! sections and with 0 and 1, 1.0 to 1.13 with `Supported`, from 1.16 on with lists like
//! `nvfs, compat`. gpuio's own face prints the last.
//!
//! Lines are recognised by their content, not by their section: users filter captures.
//! Other lines are kept as notes. In PDFs names lose their underscores and lines of GPUs break;
//! both are put right, since nothing is guessed by it. A row whose name was lost is a note.

use gpuio_record::facts::{Fact, GdsCheck, GdsGpu, GdsLine, GdsNote, Machine, PciFacts};

use crate::{CaptureError, Captured, Kind, MOST_DEVICES, MOST_GPUS, kind_of, pci_names};

pub(crate) const KIND: Kind = Kind {
    command: "gdscheck -p",
    gives: "what cuFile sees, for `gpuio check`",
    most_bytes: crate::SHORT,
    looks_like: |text| text.lines().any(is_mark),
    add,
};

/// A report. Where one was read before, it gives what it has, line by line, and takes nothing away;
/// a section of a whole one takes the place of the earlier section. Differences are noted.
fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let known = captured.machine.gdscheck.clone().unwrap_or_default();
    let text = &without_others(without_cut_line(text, &known, captured), captured)?;
    let (new, _) = parse(text, GdsCheck::default())?;
    let (mut merged, changed) = parse(text, known.clone())?;
    let gpus = known.gpus.iter().filter_map(|old| {
        let now = merged.gpus.iter().find(|now| now.index == old.index)?;
        Some(format!("GPU index {}", old.index.known().filter(|_| now != old)?))
    });
    let mut changed: Vec<String> = changed.iter().map(Change::words).chain(gpus).collect();
    // Its last line is there, and so are those before it.
    if new.release.known().and(new.verification.known()).is_some() {
        merged.by_gpuio = new.by_gpuio;
        (merged.acs, merged.notes) = (new.acs, new.notes);
        whole(&mut merged.environment, new.environment);
        whole(&mut merged.drivers, new.drivers);
        whole(&mut merged.settings, new.settings);
        whole(&mut merged.gpus, new.gpus);
    }
    if merged.gpus.iter().all(|gpu| gpu.index.known().is_some()) {
        merged.gpus.sort_by_key(|gpu| gpu.index.known().copied());
    }
    captured.machine.gdscheck = Some(merged);
    if !changed.is_empty() {
        let more = changed.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!("; {more} more") } else { String::new() };
        changed.truncate(SHOWN);
        let changed = changed.join("; ");
        captured.differ(format!(
            "gdscheck's reports ({changed}{more}; for an earlier one give its lines alone)"
        ));
    }
    Ok(())
}

fn whole<T>(old: &mut Vec<T>, new: Vec<T>) {
    if !new.is_empty() {
        *old = new;
    }
}

/// The text without its last line, where that is the begin of a line that is known: a copy was cut
/// there (`IOMMU: Di`). The line is passed over.
fn without_cut_line<'t>(text: &'t str, known: &GdsCheck, captured: &mut Captured) -> &'t str {
    let text = text.trim_end();
    let (before, line) = text.split_at(text.rfind('\n').map_or(0, |end| end + 1));
    let index = before.lines().count();
    let is_cut = match (parse(before, known.clone()), parse(text, known.clone())) {
        (Err(_), _) => false,
        (Ok(_), Err(_)) => *known != GdsCheck::default(),
        (Ok((_, first)), Ok((one, changed))) => {
            let gpu = one.gpus.last();
            let old = known.gpus.iter().find(|old| gpu.is_some_and(|gpu| gpu.index == old.index));
            let is_gpu = line.trim_start().starts_with("GPU index ");
            let gpu_cut = old.zip(gpu).filter(|_| is_gpu).is_some_and(|(old, gpu)| {
                let iommu = (old.iommu.known(), gpu.iommu.known());
                iommu.0.is_some_and(|old| iommu.1.is_none_or(|new| is_begin(new, old)))
            });
            let names = known.environment.iter().chain(&known.drivers).chain(&known.settings);
            // A note of an earlier text may have the same number.
            let note = one.notes.last();
            let note = note.filter(|it| it.line == index as u64 + 1 && it.text == line.trim());
            let note_cut = note.is_some_and(|note| {
                let name = note.text.trim_end_matches([':', ' ']);
                let known = names.map(|one| one.name.as_str()).chain(MARKS);
                { known }.any(|known| known.starts_with(name))
            });
            let lines = changed.iter().skip(first.len());
            gpu_cut || note_cut || { lines }.any(|one| is_begin(&one.new, &one.old))
        }
    };
    if !is_cut {
        return text;
    }
    let wanted = "a whole line: the text ends within it";
    captured.skip(CaptureError::new(index, line, 0, wanted));
    before
}

/// Whether a value is cut from the other, and no shorter list of paths (`nvfs` of `nvfs, compat`).
fn is_begin(short: &str, long: &str) -> bool {
    long.strip_prefix(short).is_some_and(|rest| {
        let list = rest.starts_with(',') && short.split(',').all(|one| PATHS.contains(&one.trim()));
        !rest.is_empty() && !list
    })
}

/// Lines of two reports that differ, which are named before the others are counted.
const SHOWN: usize = 6;

/// The text without lines that are another tool's, which are passed over for it.
fn without_others(text: &str, captured: &mut Captured) -> Result<String, CaptureError> {
    let (GdsCheck { notes, .. }, _) = parse(text, GdsCheck::default())?;
    let is_note = |at: usize| notes.iter().any(|note| note.line == at as u64 + 1);
    let mut lines: Vec<&str> = text.lines().collect();
    let mut from = 0;
    while from < lines.len() {
        let others = lines[from..].iter().enumerate();
        let run = others.take_while(|(at, line)| is_note(from + at) || line.trim().is_empty());
        let to = from + run.count();
        if kind_of(&lines[from..to].join("\n")).is_some() {
            for (at, line) in lines.iter_mut().enumerate().take(to).skip(from) {
                if !line.trim().is_empty() {
                    let wanted = "a line of gdscheck's";
                    captured.skip(CaptureError::new(at, std::mem::take(line), 0, wanted));
                }
            }
        }
        from = to + 1;
    }
    Ok(lines.join("\n"))
}

/// PCI's class of displays, GPUs among them.
const DISPLAY: u32 = 3;

/// How lines begin that only gdscheck prints.
const MARKS: [&str; 10] = [
    "GDS release version",
    "DRIVER CONFIGURATION:",
    "CUFILE CONFIGURATION:",
    "cuFile CONFIGURATION:",
    "properties.use_",
    "GPU index ",
    "Found ACS enabled for switch",
    "Platform verification",
    "Nvidia Driver Info Status:",
    "Cuda Driver Version Installed:",
];

/// Kinds of storage, as the layouts call them: rows that are recognised without their section.
const STORAGE: [&str; 19] = [
    "NVMe P2PDMA",
    "NVMe",
    "NVMeOF",
    "SCSI",
    "ScaleFlux CSD",
    "SCALEFLUX CSD",
    "NVMesh",
    "DDN EXAScaler",
    "LUSTRE",
    "IBM Spectrum Scale",
    "NFS",
    "BeeGFS",
    "ScaTeFS",
    "VIRTIOFS",
    "PanFS",
    "WekaFS",
    "WEKAFS",
    "Userspace RDMA",
    "USERSPACE RDMA",
];

/// Groups of cuFile's settings.
const GROUPS: [&str; 8] =
    ["properties", "fs", "block", "profile", "miscellaneous", "execution", "logging", "denylist"];

/// gdscheck's words for a kind of storage.
const PATHS: [&str; 6] = ["Supported", "Unsupported", "nvfs", "compat", "p2pdma", "c2c"];

/// Settings that gdscheck calls by other names than cuFile's file.
const OWN_NAMES: [&str; 2] = ["properties.use_compat_mode", "properties.max_batch_io_size"];

/// Whether no other tool prints such a line: by its begin, or as a row of storage or a setting that
/// people have cut out of the output.
fn is_mark(line: &str) -> bool {
    let line = line.trim();
    let row = line.split_once(':').is_some_and(|(name, value)| {
        let (name, value) = (name.trim(), value.trim());
        let path = value.split(',').next().unwrap_or_default().trim();
        let setting = OWN_NAMES.contains(&name) || gpuio_base::cufilejson::find(name).is_some();
        STORAGE.contains(&name) && PATHS.contains(&path) || setting && !value.is_empty()
    });
    row || MARKS.iter().any(|mark| line.starts_with(mark))
}

/// Which section the lines belong to; only those of environment and drivers need it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Head,
    Environment,
    Drivers,
    Other,
}

/// Whether two reports list other GPUs, by number or by product, or name other products as the
/// machine: then they are of two machines. Reports without such lines show nothing.
pub(crate) fn is_of_another(a: &GdsCheck, b: &GdsCheck) -> bool {
    let gpus = |check: &GdsCheck| -> Vec<Fact<String>> {
        check.gpus.iter().map(|gpu| gpu.name.clone()).collect()
    };
    let product = |check: &GdsCheck| -> Option<String> {
        Some(check.machine.known()?.split(", Arch:").next()?.to_owned())
    };
    let (gpus, products) = ((gpus(a), gpus(b)), product(a).zip(product(b)));
    let listed = !gpus.0.is_empty() && !gpus.1.is_empty();
    listed && gpus.0 != gpus.1 || products.is_some_and(|(a, b)| a != b)
}

/// The kernel's release: `Platform: R8868 G13, Arch: x86_64(Linux 5.15.0-105-generic)`.
pub(crate) fn release(check: &GdsCheck) -> Option<String> {
    let (_, behind) = check.machine.known()?.split_once("(Linux ")?;
    Some(behind.split_once(')')?.0.trim().to_owned())
}

/// The first models of gdscheck's GPUs and of the machine's, where they have none in common: then
/// the report is of another machine. GPUs of unknown models show nothing.
pub(crate) fn other_models(check: &GdsCheck, machine: &Machine) -> Option<(String, String)> {
    let printed: Vec<String> =
        check.gpus.iter().filter_map(|gpu| model(gpu.name.known()?)).collect();
    let gpus = machine.gpus.iter().filter_map(|gpu| model(gpu.name.known()?));
    let nvidia = |one: &&PciFacts| {
        one.vendor == Some(pci_names::NVIDIA)
            && one.class.is_some_and(|class| class >> 16 == DISPLAY)
    };
    let functions = machine.pci.iter().filter(nvidia).filter_map(|one| {
        let (_, name) = one.name.as_ref()?.split_once('[')?;
        model(name.split(']').next()?)
    });
    let own: Vec<String> = gpus.chain(functions).collect();
    let apart = !own.iter().any(|one| printed.contains(one));
    printed.into_iter().next().zip(own.into_iter().next()).filter(|_| apart)
}

/// The word of a product's name that all tools print: `A100` of `NVIDIA A100 80GB PCIe` and of
/// `A100-SXM4-40GB`. `None` for names without such a word, like `GeForce RTX 5090`.
pub(crate) fn model(name: &str) -> Option<String> {
    name.split([' ', '-', '/']).find_map(|word| {
        let digits = word.trim_start_matches(|c: char| c.is_ascii_uppercase());
        let series = &word[..word.len() - digits.len()];
        let number = digits.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        ((1..=2).contains(&series.len()) && is_number).then(|| format!("{series}{number}"))
    })
}

/// A value that a later text changed.
struct Change {
    name: String,
    old: String,
    new: String,
}

impl Change {
    /// `NVMe: Supported, then Unsupported`.
    fn words(&self) -> String {
        format!("{}: {}, then {}", self.name, self.old, self.new)
    }
}

/// Takes a value; an unknown one takes nothing away.
fn take<T: PartialEq + ToString>(
    (old, new): (&mut Fact<T>, Fact<T>),
    name: &str,
    changed: &mut Vec<Change>,
) {
    if let Some((old, new)) = old.known().zip(new.known()).filter(|(old, new)| old != new) {
        let (old, new) = (old.to_string(), new.to_string());
        changed.push(Change { name: name.to_owned(), old, new });
    }
    if new.known().is_some() || old.known().is_none() {
        *old = new;
    }
}

/// A report with the lines of a text in it, and those of its lines that the text changes.
fn parse(text: &str, out: GdsCheck) -> Result<(GdsCheck, Vec<Change>), CaptureError> {
    let mut reader = Reader { out, changed: Vec::new(), section: Section::Head, known: 0 };
    for (index, whole) in text.lines().enumerate() {
        let line = whole.trim();
        let rule = line.bytes().all(|byte| b"=_-. ".contains(&byte));
        let prompt = line.contains("gdscheck") && line.starts_with(['#', '$', '[', '(', '>']);
        if rule || prompt {
            continue;
        }
        let at = At { index, whole };
        if reader.line(&at, line)? {
            reader.known += 1;
        } else {
            let number = u64::try_from(index + 1).unwrap_or(u64::MAX);
            if !(reader.out.notes.iter()).any(|one| one.line == number && one.text == line) {
                reader.out.notes.push(GdsNote { line: number, text: line.to_owned() });
            }
        }
        if reader.known + reader.out.notes.len() > MOST_DEVICES {
            return Err(at.wrong(whole, "fewer lines"));
        }
    }
    if reader.known == 0 {
        let first = text.lines().next().unwrap_or_default();
        return Err(CaptureError::new(0, first, 0, "a line of gdscheck's, like NVMe : Supported"));
    }
    Ok((reader.out, reader.changed))
}

struct At<'t> {
    index: usize,
    whole: &'t str,
}

impl At<'_> {
    fn wrong(&self, part: &str, wanted: &'static str) -> CaptureError {
        CaptureError::at(self.index, self.whole, part, wanted)
    }

    /// A number, or the reason why there is none.
    fn number<T: std::str::FromStr>(
        &self,
        text: &str,
        wanted: &'static str,
    ) -> Result<Fact<T>, CaptureError> {
        match value(text) {
            Fact::Known(word) => {
                word.parse().map(Fact::Known).map_err(|_| self.wrong(text, wanted))
            }
            Fact::Unknown(why) => Ok(Fact::Unknown(why)),
        }
    }
}

/// A value; `Unknown (why)`, as gpuio's face prints what it can't know, is unknown for that reason.
fn value(text: &str) -> Fact<String> {
    let text = text.trim();
    let why = text.strip_prefix("Unknown (").and_then(|rest| rest.strip_suffix(')'));
    why.map_or_else(|| Fact::Known(text.to_owned()), Fact::unknown)
}

struct Reader {
    out: GdsCheck,
    changed: Vec<Change>,
    section: Section,
    /// Lines that were understood.
    known: usize,
}

impl Reader {
    /// Reads one line; false where it is none of those that are known.
    fn line(&mut self, at: &At<'_>, line: &str) -> Result<bool, CaptureError> {
        if self.heading(line) || self.head(line) || self.platform(at, line)? {
            return Ok(true);
        }
        if let Some(rest) = line.strip_prefix("GPU index ") {
            self.gpu(at, rest)?;
            return Ok(true);
        }
        if self.rest_of_gpu(line) {
            return Ok(true);
        }
        let Some((name, text)) = line.split_once(':') else { return Ok(false) };
        let (name, text) = (name.trim(), text.trim());
        if name.is_empty() || text.is_empty() {
            return Ok(false);
        }
        let group = name.split_once('.').is_some_and(|(group, _)| GROUPS.contains(&group));
        let is_driver = name.starts_with("--") || STORAGE.contains(&name);
        let (list, name) = if group {
            (&mut self.out.settings, name.to_owned())
        } else if name.starts_with("CUFILE_") || name.starts_with("CUOBJ_") {
            (&mut self.out.environment, name.to_owned())
        } else if is_driver || self.section == Section::Drivers && !is_warning(name) {
            (&mut self.out.drivers, name.to_owned())
        } else {
            return Ok(false);
        };
        let value = value(text);
        let Some(old) = list.iter_mut().find(|old| old.is(&name)) else {
            list.push(GdsLine { name, value });
            return Ok(true);
        };
        take((&mut old.value, value), &name, &mut self.changed);
        Ok(true)
    }

    fn heading(&mut self, line: &str) -> bool {
        self.section = match line {
            "ENVIRONMENT:" => Section::Environment,
            // The oldest layout has kinds of storage below this, and settings that are recognised
            // by name.
            "DRIVER CONFIGURATION:" | "cuFile CONFIGURATION:" => Section::Drivers,
            "CUFILE CONFIGURATION:" | "GPU INFO:" | "PLATFORM INFO:" => Section::Other,
            _ => return false,
        };
        true
    }

    /// Versions, and whose output it is.
    fn head(&mut self, line: &str) -> bool {
        let changed = &mut self.changed;
        if line.starts_with("gpuio gdscheck ") {
            self.out.by_gpuio = true;
            return true;
        }
        if let Some((_, release)) = behind(line, "GDS release version") {
            take((&mut self.out.release, value(release)), "release", changed);
            return true;
        }
        // PDFs print a blank for the underscore.
        let least = line.strip_prefix("nvidia_fs minimum version:");
        if let Some(version) = least {
            take(
                (&mut self.out.nvidia_fs_least, value(version)),
                "nvidia_fs minimum version",
                changed,
            );
            return true;
        }
        let versions =
            line.strip_prefix("nvidia_fs version:").or(line.strip_prefix("nvidia fs version:"));
        let Some(versions) = versions else { return false };
        match versions.split_once("libcufile version:") {
            Some((module, library)) => {
                take((&mut self.out.nvidia_fs, value(module)), "nvidia_fs version", changed);
                take((&mut self.out.libcufile, value(library)), "libcufile version", changed);
            }
            None => take((&mut self.out.nvidia_fs, value(versions)), "nvidia_fs version", changed),
        }
        true
    }

    fn platform(&mut self, at: &At<'_>, line: &str) -> Result<bool, CaptureError> {
        let changed = &mut self.changed;
        if let Some(address) = line.strip_prefix("Found ACS enabled for switch") {
            let address = address.trim();
            if address.is_empty()
                || !address.bytes().all(|b| b.is_ascii_hexdigit() || b":.".contains(&b))
            {
                return Err(at.wrong(address, "a switch, like 0000:40:01.1"));
            }
            if !self.out.acs.iter().any(|known| known == address) {
                self.out.acs.push(address.to_owned());
            }
        } else if let Some(word) = line.strip_prefix("Platform verification") {
            let word = word.trim().trim_end_matches(['.', ':']).trim_end();
            if word.is_empty() {
                return Err(at.wrong(word, "a result, like succeeded"));
            }
            take((&mut self.out.verification, value(word)), "Platform verification", changed);
        } else if let Some((_, state)) = behind(line, "IOMMU") {
            take((&mut self.out.iommu, value(state)), "IOMMU", changed);
        } else if let Some((_, status)) = behind(line, "Nvidia Driver Info Status") {
            take(
                (&mut self.out.driver_status, value(status)),
                "Nvidia Driver Info Status",
                changed,
            );
        } else if let Some((_, version)) = behind(line, "Cuda Driver Version Installed") {
            take(
                (&mut self.out.cuda_version, at.number(version, "a version, like 12080")?),
                "Cuda Driver Version Installed",
                changed,
            );
        } else if let Some((_, platform)) = behind(line, "Platform") {
            if platform.contains("Arch:") || self.section == Section::Other {
                take((&mut self.out.machine, value(platform)), "Platform", changed);
            } else {
                take(
                    (&mut self.out.platform, value(&platform.replace("x86 64", "x86_64"))),
                    "platform",
                    changed,
                );
            }
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// `N NAME bar:B bar size (MiB):S supports GDS, IOMMU State: Disabled`
    fn gpu(&mut self, at: &At<'_>, line: &str) -> Result<(), CaptureError> {
        let Some((device, rest)) = line.split_once(" bar:") else {
            return Err(at.wrong(line, "a GPU with its bar, like 0 NVIDIA H100 bar:1"));
        };
        let Some((_, rest)) = rest.split_once("bar size (MiB):") else {
            return Err(at.wrong(rest, "the bar's size, like bar size (MiB):131072"));
        };
        if self.out.gpus.len() == MOST_GPUS {
            return Err(at.wrong(line, "fewer GPUs"));
        }
        let (index, name) = first(device);
        let (size, rest) = first(rest);
        let size: Fact<u64> = at.number(size, "a size in MiB, like 131072")?;
        let (support, iommu) = verdict(rest);
        let gpu = GdsGpu {
            index: at.number(index, "a GPU's number")?,
            name: value(name),
            bar1_bytes: match size {
                Fact::Known(mib) => Fact::Known(mib.saturating_mul(1 << 20)),
                Fact::Unknown(why) => Fact::Unknown(why),
            },
            support,
            iommu,
        };
        // One that is listed again takes the place of the old entry.
        self.out.gpus.retain(|old| old.index.known().is_none() || old.index != gpu.index);
        self.out.gpus.push(gpu);
        Ok(())
    }

    /// The text on a line of its own where a document broke the line of a GPU.
    fn rest_of_gpu(&mut self, line: &str) -> bool {
        let Some(gpu) = self.out.gpus.last_mut() else { return false };
        if !line.contains("GDS") || line.contains("WARN") || gpu.support.known().is_some() {
            return false;
        }
        (gpu.support, gpu.iommu) = verdict(line);
        true
    }
}

/// The first value and the rest: a word, or `Unknown (why)` up to its bracket.
fn first(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = match text.strip_prefix("Unknown (").and_then(|_| text.find(')')) {
        Some(bracket) => bracket + 1,
        None => text.find(' ').unwrap_or(text.len()),
    };
    let (first, rest) = text.split_at(end);
    (first, rest.trim_start())
}

/// Whether a GPU is taken, and its IOMMU.
fn verdict(text: &str) -> (Fact<String>, Fact<String>) {
    let absent = || Fact::unknown("gdscheck did not print it");
    let fact = |text: &str| if text.trim().is_empty() { absent() } else { value(text) };
    match text.split_once("IOMMU State:") {
        Some((support, iommu)) => (fact(support.trim().trim_end_matches(',')), fact(iommu)),
        None => (fact(text), absent()),
    }
}

/// The parts before and behind the colon of a line whose name begins so.
fn behind<'t>(line: &'t str, name: &str) -> Option<(&'t str, &'t str)> {
    let (left, right) = line.split_once(':')?;
    let rest = left.trim().strip_prefix(name)?;
    // `GDS release version (beta)`, and nothing else behind the name.
    let bare = rest.is_empty() || rest.trim() == "(beta)";
    (bare && !right.trim().is_empty()).then_some((left, right))
}

fn is_warning(name: &str) -> bool {
    let word = name.split(' ').next().unwrap_or_default().to_ascii_lowercase();
    ["warn", "warning", "error", "err", "info", "note"].contains(&word.as_str())
}
