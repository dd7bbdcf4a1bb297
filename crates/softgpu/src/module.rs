//! Modules: PTX text, of which only the entries' names and parameters are read.

use std::ffi::c_void;
use std::time::Duration;

use crate::code::{Answer, INVALID_PTX, INVALID_VALUE, NOT_FOUND};
use crate::kernel::{self, Kernel};
use crate::reach::Reach;

/// A loaded text.
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
    /// Reads the entries of a PTX text.
    pub(crate) fn load(text: &str) -> Answer<Self> {
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

impl Launch {
    /// Takes the arguments from `cuLaunchKernel`'s array of pointers to them.
    ///
    /// # Safety
    ///
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
        let module = Module::load(TEXT).unwrap();
        assert_eq!(module.function("gpuio_fill").unwrap().0.name, "gpuio_fill");
        assert_eq!(module.function("other").unwrap_err(), NOT_FOUND);
        assert_eq!(module.function("gpuio_check").unwrap_err(), NOT_FOUND);
        let short = Module::load(&TEXT.replace(",\n.param .u64 e", "")).unwrap();
        assert_eq!(short.function("gpuio_fill").unwrap_err(), INVALID_PTX);
    }

    #[test]
    fn other_text_is_refused() {
        assert_eq!(Module::load("int main() {}").unwrap_err(), Code(218));
        assert_eq!(Module::load(".version 6.0\n.target sm_70\n.entry x").unwrap_err(), INVALID_PTX);
    }
}
