//! The flags.

use std::path::PathBuf;
use std::time::Duration;

use gpuio_gpu::{MemoryKind, Which};
use gpuio_transfer::{Settings, UncachedReads};

pub(crate) struct Args {
    pub(crate) settings: Settings,
    pub(crate) file: PathBuf,
    pub(crate) size: u64,
    pub(crate) threads: Vec<u64>,
    pub(crate) blocks: Vec<usize>,
    pub(crate) methods: Vec<String>,
    pub(crate) batch: u32,
    pub(crate) seconds: Duration,
    pub(crate) kind: MemoryKind,
    pub(crate) direct: bool,
    pub(crate) write: bool,
    pub(crate) sequential: bool,
    pub(crate) cold: bool,
    pub(crate) shared: bool,
}

const HELP: &str = "rate [--gpu system|software] --file PATH [--size 4g] [--threads 1,16] \
    [--block 4k,64k,1m,4m] [--way transfer,plain,stream] [--batch ENTRIES] [--seconds 2] \
    [--memory device|vmm|pinned|malloc] [--direct] [--write] [--sequential] [--cold] [--shared] \
    [--workers N] [--busy N] [--crowd N] [--chunk 1m] [--ring 256m] [--resident on|off] \
    [--words on|off] [--poller on|off] [--as-opened]";

impl Args {
    pub(crate) fn read() -> Self {
        let mut args = Self {
            settings: Settings::default(),
            file: PathBuf::new(),
            size: 1 << 30,
            threads: vec![1, 4, 16],
            blocks: vec![4 << 10, 64 << 10, 1 << 20, 4 << 20],
            methods: vec!["transfer".into(), "plain".into()],
            batch: 0,
            seconds: Duration::from_secs(2),
            kind: MemoryKind::Device,
            direct: false,
            write: false,
            sequential: false,
            cold: false,
            shared: false,
        };
        let mut words = std::env::args().skip(1);
        while let Some(flag) = words.next() {
            if !args.switch(&flag) {
                let value = words.next().unwrap_or_else(|| panic!("{flag} takes a value; {HELP}"));
                args.set(&flag, &value);
            }
        }
        assert!(!args.file.as_os_str().is_empty(), "which file? {HELP}");
        args
    }

    fn switch(&mut self, flag: &str) -> bool {
        match flag {
            "--direct" => self.direct = true,
            "--write" => self.write = true,
            "--sequential" => self.sequential = true,
            "--cold" => self.cold = true,
            "--shared" => self.shared = true,
            "--as-opened" => self.settings.uncached = UncachedReads::AsOpened,
            _ => return false,
        }
        true
    }

    fn set(&mut self, flag: &str, value: &str) {
        let small = || u32::try_from(number(value)).unwrap();
        match flag {
            "--gpu" if value == "system" => self.settings.driver = Which::System,
            "--gpu" if value == "software" => self.settings.driver = Which::Software,
            "--gpu" => self.settings.driver = Which::Library(value.into()),
            "--file" => self.file = value.into(),
            "--size" => self.size = number(value),
            "--threads" => self.threads = value.split(',').map(number).collect(),
            "--block" => {
                let one = |text| usize::try_from(number(text)).unwrap();
                self.blocks = value.split(',').map(one).collect();
            }
            "--way" => self.methods = value.split(',').map(str::to_owned).collect(),
            "--batch" => self.batch = small(),
            "--seconds" => self.seconds = Duration::from_secs_f64(value.parse().unwrap()),
            "--memory" => self.kind = value.parse().unwrap(),
            "--workers" => {
                self.settings.max_workers = small();
                self.settings.workers_per_gpu = small();
            }
            "--busy" => self.settings.max_active = small(),
            "--crowd" => self.settings.oversubscription = Some(small()),
            "--chunk" => self.settings.max_piece_bytes = small(),
            "--ring" => self.settings.max_staging_bytes = number(value),
            "--words" => self.settings.stream_semaphores = value == "on",
            "--poller" => self.settings.stream_poller = value == "on",
            "--resident" => self.settings.resident = value == "on",
            _ => panic!("{flag}? {HELP}"),
        }
    }
}

/// `4k`, `1m`, `2g` or plain.
fn number(text: &str) -> u64 {
    let (digits, shift) = match text.char_indices().last() {
        Some((at, 'k')) => (&text[..at], 10),
        Some((at, 'm')) => (&text[..at], 20),
        Some((at, 'g')) => (&text[..at], 30),
        _ => (text, 0),
    };
    digits.parse::<u64>().unwrap_or_else(|_| panic!("{text} is no number; {HELP}")) << shift
}
