//! The shared object itself: its names, and what it needs.

use crate::client::{alone, built, name};

/// All public names of the interface, release 1.20 (both close symbols counted).
const NAMES: &str = "
    cuFileBatchIOCancel cuFileBatchIODestroy cuFileBatchIOGetStatus cuFileBatchIOSetUp
    cuFileBatchIOSubmit cuFileBufDeregister cuFileBufRegister cuFileDriverClose
    cuFileDriverClose_v2 cuFileDriverGetP2PFlags cuFileDriverGetProperties cuFileDriverOpen
    cuFileDriverSetMaxCacheSize cuFileDriverSetMaxDirectIOSize cuFileDriverSetMaxPinnedMemSize
    cuFileDriverSetP2PFlags cuFileDriverSetPollMode cuFileExportPCIeTopology cuFileGetBARSizeInKB
    cuFileGetParameterBool cuFileGetParameterGpuBounceBufferSlabArray
    cuFileGetParameterMinMaxValue cuFileGetParameterPosixPoolSlabArray cuFileGetParameterSizeT
    cuFileGetParameterString cuFileGetStatsL1 cuFileGetStatsL2 cuFileGetStatsL3
    cuFileGetStatsLevel cuFileGetVersion cuFileHandleDeregister cuFileHandleRegister cuFileRead
    cuFileReadAsync cuFileReadv cuFileSetParameterBool
    cuFileSetParameterGpuBounceBufferSlabArray cuFileSetParameterPosixPoolSlabArray
    cuFileSetParameterSizeT cuFileSetParameterString cuFileSetStatsLevel cuFileStatsReset
    cuFileStatsStart cuFileStatsStop cuFileStreamDeregister cuFileStreamRegister cuFileUseCount
    cuFileWrite cuFileWriteAsync cuFileWritev";

/// Tags of the dynamic section (`elf(5)`).
const NEEDED: u64 = 1;
const SONAME: u64 = 14;
const FLAGS_1: u64 = 0x6fff_fffb;
const VERDEF: u64 = 0x6fff_fffc;
const FLAG_NODELETE: u64 = 8;
/// Types of sections.
const DYNAMIC: u64 = 6;
const DYNSYM: u64 = 11;

/// A shared object's bytes, 64 bits, little endian.
struct Elf(Vec<u8>);

impl Elf {
    fn number(&self, at: usize, len: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes[..len].copy_from_slice(&self.0[at..at + len]);
        u64::from_le_bytes(bytes)
    }

    fn place(&self, at: usize, len: usize) -> usize {
        usize::try_from(self.number(at, len)).unwrap()
    }

    /// Start and length of a section, and the start of the texts that it refers to.
    fn section(&self, kind: u64) -> (usize, usize, usize) {
        let (table, each, count) = (self.place(40, 8), self.place(58, 2), self.place(60, 2));
        let header = |nth: usize| table + nth * each;
        let of_kind = |nth: &usize| self.number(header(*nth) + 4, 4) == kind;
        let found = header((0..count).find(of_kind).unwrap());
        let texts = header(self.place(found + 40, 4));
        (self.place(found + 24, 8), self.place(found + 32, 8), self.place(texts + 24, 8))
    }

    fn text(&self, at: usize) -> &str {
        let end = self.0[at..].iter().position(|byte| *byte == 0).unwrap();
        std::str::from_utf8(&self.0[at..at + end]).unwrap()
    }

    fn dynamic(&self, tag: u64) -> Vec<u64> {
        let (start, len, _) = self.section(DYNAMIC);
        let places = (start..start + len).step_by(16);
        places.filter(|at| self.number(*at, 8) == tag).map(|at| self.number(at + 8, 8)).collect()
    }

    fn dynamic_texts(&self, tag: u64) -> Vec<&str> {
        let (_, _, texts) = self.section(DYNAMIC);
        let place = |offset: &u64| texts + usize::try_from(*offset).unwrap();
        self.dynamic(tag).iter().map(|offset| self.text(place(offset))).collect()
    }

    /// Names that others may link to: of symbols that are defined and not local.
    fn exported(&self) -> Vec<&str> {
        let (start, len, texts) = self.section(DYNSYM);
        let symbols = (start..start + len).step_by(24);
        let defined = |at: &usize| self.number(at + 6, 2) != 0 && self.0[at + 4] >> 4 != 0;
        let mut names: Vec<&str> =
            symbols.filter(defined).map(|at| self.text(texts + self.place(at, 4))).collect();
        names.sort_unstable();
        names
    }
}

#[test]
fn all_names_of_cufile_are_exported_and_no_other() {
    let elf = Elf(std::fs::read(built("libcufile.so")).unwrap());
    let names: Vec<&str> = NAMES.split_whitespace().collect();
    assert_eq!(names.len(), 50);
    assert_eq!(elf.exported(), names);
    assert_eq!(elf.dynamic_texts(SONAME), ["libcufile.so.0"]);
    assert!(elf.dynamic(VERDEF).is_empty(), "no name has a version");
    assert!(elf.dynamic(FLAGS_1).iter().any(|flags| flags & FLAG_NODELETE != 0));
    let needed = elf.dynamic_texts(NEEDED);
    let known = ["libc.so", "libgcc_s.so", "libm.so", "ld-linux", "libpthread", "libdl"];
    let system = |name: &&str| known.iter().any(|known| name.starts_with(known));
    assert!(needed.iter().all(system), "{needed:?}");
}

#[test]
fn loading_and_closing_starts_nothing() {
    alone(name(loading_and_closing_starts_nothing), &[], || {
        let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
        let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        let before = (threads(), descriptors());
        for _ in 0..3 {
            // SAFETY: its initialisers are what is tested.
            let library = unsafe {
                libloading::os::unix::Library::open(Some(built("libcufile.so")), libc::RTLD_NOW)
            };
            library.unwrap().close().unwrap();
        }
        assert_eq!((threads(), descriptors()), before);
    });
}
