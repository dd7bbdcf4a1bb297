//! Modules: PTX text or compiled code (an ELF image), of which only the entries' names and
//! parameters are read.

use std::ffi::{CStr, c_void};
use std::time::Duration;

use crate::code::{
    Answer, INVALID_IMAGE, INVALID_PTX, INVALID_VALUE, NO_BINARY_FOR_GPU, NOT_FOUND,
};
use crate::kernel::{self, Kernel};
use crate::reach::Reach;

/// The first bytes of an ELF image (elf(5)).
const ELF: &[u8; 4] = b"\x7fELF";
/// `e_machine` of code for NVIDIA's GPUs.
const EM_CUDA: u64 = 190;
/// `sh_type` of a section that takes no bytes of the image.
const SHT_NOBITS: u64 = 8;
/// The attribute of `.nv.info.NAME` that describes one parameter; attributes of this format have
/// their length in the two bytes behind it.
const PARAMETER: [u8; 2] = [4, 0x17];
/// The architecture that images must be for: the compute capability that this driver reports.
const ARCHITECTURE: u64 = 80;

/// A loaded text or image.
#[derive(Debug)]
pub(crate) struct Module {
    entries: Vec<Entry>,
}

/// An entry point that the text declares.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    name: String,
    parameters: usize,
}

/// An entry point that has a software version.
#[derive(Debug)]
pub(crate) struct Function(pub(crate) &'static Kernel);

#[derive(Debug)]
pub(crate) struct Launch {
    kernel: &'static Kernel,
    args: Vec<u64>,
}

impl Module {
    /// Reads the entries of what `cuModuleLoadData` was given.
    ///
    /// # Safety
    /// `image` must be NUL-terminated text, or a whole ELF image.
    pub(crate) unsafe fn load(image: *const u8) -> Answer<Self> {
        // SAFETY: text ends with a NUL, so a byte may be read while those before it are of ELF's
        // magic number, which has none.
        let is_elf = (0..ELF.len()).all(|i| unsafe { image.wrapping_add(i).read() } == ELF[i]);
        if is_elf {
            // SAFETY: a whole image, by the caller's promise.
            return elf_entries(unsafe { whole(image) }).map(|entries| Self { entries });
        }
        // SAFETY: NUL-terminated text, by the caller's promise.
        let text = unsafe { CStr::from_ptr(image.cast()) };
        Self::text(text.to_str().map_err(|_| INVALID_PTX)?)
    }

    /// Reads the entries of a PTX text.
    fn text(text: &str) -> Answer<Self> {
        let directive = |word: &str| text.lines().any(|line| line.trim_start().starts_with(word));
        if !directive(".version") || !directive(".target") {
            return Err(INVALID_PTX);
        }
        let mut entries = Vec::new();
        for part in text.split(".entry").skip(1) {
            let (name, rest) = part.split_once('(').ok_or(INVALID_PTX)?;
            let (list, _) = rest.split_once(')').ok_or(INVALID_PTX)?;
            let parameters = list.matches(".param").count();
            entries.push(Entry { name: name.trim().to_owned(), parameters });
        }
        Ok(Self { entries })
    }

    /// The entry of this name, if it has a software version with as many parameters.
    pub(crate) fn function(&self, name: &str) -> Answer<Function> {
        let entry = self.entries.iter().find(|entry| entry.name == name).ok_or(NOT_FOUND)?;
        let kernel = kernel::named(name).ok_or(NOT_FOUND)?;
        if kernel.args != entry.parameters {
            return Err(INVALID_PTX);
        }
        Ok(Function(kernel))
    }
}

/// The bytes of an ELF image: its header, its sections and their table.
///
/// # Safety
/// A whole image lies at `image`, for as long as the result is used.
unsafe fn whole<'a>(image: *const u8) -> &'a [u8] {
    // SAFETY: a whole image has at least its header and its section table, and what that names.
    let upto = |len: u64| unsafe { std::slice::from_raw_parts(image, len.try_into().unwrap_or(0)) };
    let table_end = |image| number(image, 40, 8) + number(image, 58, 2) * number(image, 60, 2);
    let with_table = upto(table_end(upto(64)));
    let ends = sections(with_table).filter(|section| number(section, 4, 4) != SHT_NOBITS);
    let end = ends.map(|section| number(section, 24, 8) + number(section, 32, 8)).max();
    upto(end.unwrap_or(0).max(with_table.len() as u64))
}

/// A number of `len` bytes, in little endian; 0 past the end.
fn number(bytes: &[u8], at: usize, len: usize) -> u64 {
    let bytes = bytes.get(at..at + len).unwrap_or(&[]);
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The entries of the section table.
fn sections(image: &[u8]) -> impl Iterator<Item = &[u8]> {
    let size = usize::try_from(number(image, 58, 2)).unwrap_or(0).max(1);
    let table = usize::try_from(number(image, 40, 8)).ok().and_then(|at| image.get(at..));
    let count = usize::try_from(number(image, 60, 2)).unwrap_or(0);
    table.unwrap_or(&[]).chunks_exact(size).take(count)
}

/// Reads the entries of compiled code: each has a section `.nv.info.NAME`.
fn elf_entries(image: &[u8]) -> Answer<Vec<Entry>> {
    if number(image, 18, 2) != EM_CUDA {
        return Err(INVALID_IMAGE);
    }
    // By the version of the ABI, up to CUDA 12 and after.
    let shift = if number(image, 8, 1) < 8 { 0 } else { 8 };
    if number(image, 48, 4) >> shift & 0xff != ARCHITECTURE {
        return Err(NO_BINARY_FOR_GPU);
    }
    let content = |section: &[u8]| {
        let at = usize::try_from(number(section, 24, 8)).ok()?;
        image.get(at..)?.get(..usize::try_from(number(section, 32, 8)).ok()?)
    };
    let names = usize::try_from(number(image, 62, 2)).ok();
    let names = names.and_then(|at| content(sections(image).nth(at)?)).ok_or(INVALID_IMAGE)?;
    let mut entries = Vec::new();
    for section in sections(image) {
        let name = usize::try_from(number(section, 0, 4)).ok().and_then(|at| names.get(at..));
        let name = name.and_then(|name| CStr::from_bytes_until_nul(name).ok()?.to_str().ok());
        let Some(name) = name.ok_or(INVALID_IMAGE)?.strip_prefix(".nv.info.") else { continue };
        let mut attributes = content(section).ok_or(INVALID_IMAGE)?;
        let mut parameters = 0;
        while let [format, attribute, low, high, rest @ ..] = attributes {
            parameters += usize::from([*format, *attribute] == PARAMETER);
            let len = usize::from(u16::from_le_bytes([*low, *high]));
            attributes =
                if *format == PARAMETER[0] { rest.get(len..).unwrap_or(&[]) } else { rest };
        }
        entries.push(Entry { name: name.to_owned(), parameters });
    }
    Ok(entries)
}

impl Launch {
    /// Takes the arguments from `cuLaunchKernel`'s array of pointers to them.
    ///
    /// # Safety
    /// `params` must be null or point to as many pointers as the kernel has arguments, each to a
    /// readable `u64`.
    pub(crate) unsafe fn new(kernel: &'static Kernel, params: *const *mut c_void) -> Answer<Self> {
        if params.is_null() {
            return Err(INVALID_VALUE);
        }
        let mut args = Vec::with_capacity(kernel.args);
        for i in 0..kernel.args {
            // SAFETY: `i` is less than the number of pointers, by the caller's promise.
            let param = unsafe { params.wrapping_add(i).read() };
            if param.is_null() {
                return Err(INVALID_VALUE);
            }
            // SAFETY: it points to a readable u64, by the caller's promise.
            args.push(unsafe { param.cast::<u64>().read_unaligned() });
        }
        Ok(Self { kernel, args })
    }

    /// How long the device is at it, where that is what the kernel is for.
    pub(crate) fn lasts(&self, memory: &Reach<'_>) -> Option<Duration> {
        self.kernel.lasts.map(|lasts| lasts(memory, &self.args))
    }

    /// Runs the software version.
    pub(crate) fn run(&self, memory: &Reach<'_>) -> Answer<()> {
        (self.kernel.run)(memory, &self.args)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Code;

    const TEXT: &str = ".version 6.0\n.target sm_70\n.visible .entry gpuio_fill(\n.param .u64 a,\n\
                        .param .u64 b,\n.param .u64 c,\n.param .u64 d,\n.param .u64 e\n)\n\
                        { ret; }\n\
                        .entry other(.param .u32 x) { ret; }";

    #[test]
    fn entries_are_found_by_name_and_must_have_a_twin_of_their_shape() {
        let module = Module::text(TEXT).unwrap();
        assert_eq!(module.function("gpuio_fill").unwrap().0.name, "gpuio_fill");
        assert_eq!(module.function("other").unwrap_err(), NOT_FOUND);
        assert_eq!(module.function("gpuio_check").unwrap_err(), NOT_FOUND);
        let short = Module::text(&TEXT.replace(",\n.param .u64 e", "")).unwrap();
        assert_eq!(short.function("gpuio_fill").unwrap_err(), INVALID_PTX);
    }

    #[test]
    fn compiled_code_has_the_same_entries_as_its_ptx() {
        let kernels = concat!(env!("CARGO_MANIFEST_DIR"), "/../gpu/kernels");
        let read = |name: &str| std::fs::read(format!("{kernels}/{name}")).unwrap();
        for name in ["gather", "pattern", "resident_copy"] {
            let text = String::from_utf8(read(&format!("{name}.ptx"))).unwrap();
            let mut text = Module::text(&text).unwrap().entries;
            let image = read(&format!("compiled/{name}.sm_80.cubin"));
            // SAFETY: a whole image.
            let mut compiled = unsafe { Module::load(image.as_ptr()) }.unwrap().entries;
            for entries in [&mut text, &mut compiled] {
                entries.sort_by(|a, b| a.name.cmp(&b.name));
            }
            assert_eq!(text, compiled);
            let other = read(&format!("compiled/{name}.sm_90.cubin"));
            assert_eq!(elf_entries(&other).unwrap_err(), NO_BINARY_FOR_GPU);
            assert_eq!(elf_entries(&image[..image.len() / 8]).unwrap_err(), INVALID_IMAGE);
        }
    }

    #[test]
    fn other_text_is_refused() {
        assert_eq!(Module::text("int main() {}").unwrap_err(), Code(218));
        assert_eq!(Module::text(".version 6.0\n.target sm_70\n.entry x").unwrap_err(), INVALID_PTX);
    }
}
