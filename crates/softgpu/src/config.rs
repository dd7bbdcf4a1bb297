//! The settings in the environment.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::code::Code;

/// The most devices: each has 1 TiB of addresses below where Linux puts programs.
const MOST_DEVICES: u32 = 64;

/// The settings of the whole library.
#[derive(Debug)]
pub(crate) struct Config {
    /// How many devices there are.
    pub(crate) devices: u32,
    /// Memory of each device in bytes.
    pub(crate) memory: u64,
    /// Whether devices can be given access to each other's memory.
    pub(crate) peer: bool,
    /// Whether managed memory takes hints (concurrent managed access).
    pub(crate) managed: bool,
    /// Whether memory that may only be read can be registered.
    pub(crate) read_only_register: bool,
    /// Memory registered to be read only keeps the bytes of its registration, other pages of files
    /// are lost when they leave the page table.
    pub(crate) keeps_pages: bool,
    /// Whether streams can wait for words of memory.
    pub(crate) stream_words: bool,
    /// The wait of each copy and kernel before it touches memory.
    pub(crate) delay: Duration,
    pub(crate) multiprocessors: u32,
    /// The time that each copy and kernel takes from kernels that keep the device busy during it.
    pub(crate) steal: Duration,
    /// The wait of each copy and kernel while such a kernel runs.
    pub(crate) contention: Duration,
    /// How much later the work of a synchronous call is done that may return before it.
    pub(crate) lag: Duration,
    /// Whether `cuInit` forks and waits for the child.
    pub(crate) forks: bool,
    faults: Vec<Fault>,
    spoils: Vec<Spoil>,
}

/// A call that shall fail.
#[derive(Debug)]
struct Fault {
    call: String,
    code: Code,
    after: u64,
    times: u64,
    seen: AtomicU64,
}

/// A copy that shall get a bit wrong.
#[derive(Debug)]
struct Spoil {
    call: String,
    after: u64,
    seen: AtomicU64,
}

impl Config {
    /// Reads the settings; `get` looks a variable up. The error names the variable that is wrong.
    pub(crate) fn read(get: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let number = |name: &str, default: u64| match get(name) {
            None => Ok(default),
            Some(text) => text
                .parse::<u64>()
                .map_err(|_| format!("{name}={text}: give a whole number, 0 or more")),
        };
        let devices = number("GPUIO_SOFT_GPUS", 1)?;
        let devices =
            u32::try_from(devices).ok().filter(|&n| n <= MOST_DEVICES).ok_or_else(|| {
                format!("GPUIO_SOFT_GPUS={devices}: {MOST_DEVICES} devices are the most")
            })?;
        let switch = |name: &str| match number(name, 1)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(format!("{name}={other}: 0 is off and 1 is on")),
        };
        let forks = get("GPUIO_SOFT_FORK").is_some_and(|value| value == "1");
        let faults = get("GPUIO_SOFT_FAIL").unwrap_or_default();
        let spoils = get("GPUIO_SOFT_CORRUPT").unwrap_or_default();
        Ok(Self {
            devices,
            memory: number("GPUIO_SOFT_MEM", 4 << 30)?,
            peer: switch("GPUIO_SOFT_PEER")?,
            managed: switch("GPUIO_SOFT_MANAGED")?,
            read_only_register: switch("GPUIO_SOFT_READ_ONLY_REGISTER")?,
            keeps_pages: get("GPUIO_SOFT_KEEP_PAGES").is_some_and(|value| value == "1"),
            stream_words: switch("GPUIO_SOFT_STREAM_WORDS")?,
            delay: Duration::from_micros(number("GPUIO_SOFT_DELAY_US", 0)?),
            multiprocessors: multiprocessors(number("GPUIO_SOFT_SMS", 1)?)?,
            steal: Duration::from_micros(number("GPUIO_SOFT_STEAL_US", 0)?),
            contention: Duration::from_micros(number("GPUIO_SOFT_CROWD_US", 0)?),
            lag: Duration::from_micros(number("GPUIO_SOFT_LAG_US", 0)?),
            forks,
            faults: faults
                .split(',')
                .filter(|part| !part.is_empty())
                .map(Fault::read)
                .collect::<Result<_, _>>()?,
            spoils: spoils
                .split(',')
                .filter(|part| !part.is_empty())
                .map(Spoil::read)
                .collect::<Result<_, _>>()?,
        })
    }

    /// Counts one more `call` and returns whether it shall fail.
    pub(crate) fn fault(&self, call: &str) -> Option<Code> {
        let fault = self.faults.iter().find(|fault| fault.call == call)?;
        // Only the count matters; it orders nothing else.
        let before = fault.seen.fetch_add(1, Ordering::Relaxed);
        let failed = before.checked_sub(fault.after)?;
        (failed < fault.times).then_some(fault.code)
    }

    /// Counts one more copy by `call` and returns whether it is the one to corrupt.
    pub(crate) fn spoils(&self, call: &str) -> bool {
        let of_call = self.spoils.iter().filter(|spoil| spoil.call == call);
        // No `any`: every one of them counts.
        of_call.fold(false, |hit, spoil| {
            (spoil.seen.fetch_add(1, Ordering::Relaxed) == spoil.after) | hit
        })
    }
}

fn multiprocessors(count: u64) -> Result<u32, String> {
    let count = u32::try_from(count).ok().filter(|count| (1..=1024).contains(count));
    count.ok_or_else(|| "GPUIO_SOFT_SMS: give a number from 1 to 1024".to_owned())
}

impl Spoil {
    fn read(text: &str) -> Result<Self, String> {
        let wrong = || format!("GPUIO_SOFT_CORRUPT: {text:?} is not call:after_n");
        let (call, after) = text.split_once(':').ok_or_else(wrong)?;
        if call.is_empty() {
            return Err(wrong());
        }
        Ok(Self {
            call: call.to_owned(),
            after: after.parse().map_err(|_| wrong())?,
            seen: AtomicU64::new(0),
        })
    }
}

impl Fault {
    fn read(text: &str) -> Result<Self, String> {
        let wrong = || format!("GPUIO_SOFT_FAIL: {text:?} is not call:code[:after_n[:times]]");
        let mut parts = text.split(':');
        let call = parts.next().filter(|call| !call.is_empty()).ok_or_else(wrong)?;
        let code = parts.next().and_then(|code| code.parse::<i32>().ok());
        let code = code.filter(|&code| code > 0).ok_or_else(wrong)?;
        let mut count = |default: u64| match parts.next() {
            None => Ok(default),
            Some(count) => count.parse().map_err(|_| wrong()),
        };
        let (after, times) = (count(0)?, count(u64::MAX)?);
        if parts.next().is_some() {
            return Err(wrong());
        }
        Ok(Self { call: call.to_owned(), code: Code(code), after, times, seen: AtomicU64::new(0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &[(&str, &str)]) -> Result<Config, String> {
        Config::read(|name| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn nothing_set_is_one_device_of_four_gib() {
        let config = with(&[]).unwrap();
        assert_eq!((config.devices, config.memory), (1, 4 << 30));
        assert!(config.peer && config.managed && config.stream_words);
        assert_eq!(config.delay, Duration::ZERO);
        assert_eq!(config.fault("cuInit"), None);
    }

    #[test]
    fn a_fault_waits_for_its_count_and_stays() {
        let config = with(&[("GPUIO_SOFT_FAIL", "cuInit:100,cuMemAlloc_v2:2:2")]).unwrap();
        assert_eq!(config.fault("cuInit"), Some(Code(100)));
        assert_eq!(config.fault("cuMemAlloc_v2"), None);
        assert_eq!(config.fault("cuMemAlloc_v2"), None);
        assert_eq!(config.fault("cuMemAlloc_v2"), Some(Code(2)));
        assert_eq!(config.fault("cuMemAlloc_v2"), Some(Code(2)));
        assert_eq!(config.fault("cuMemFree_v2"), None);
    }

    #[test]
    fn a_fault_of_so_many_times_goes_away() {
        let config = with(&[("GPUIO_SOFT_FAIL", "cuEventRecord:1:1:2")]).unwrap();
        let answers: Vec<_> = (0..5).map(|_| config.fault("cuEventRecord")).collect();
        let one = Some(Code(1));
        assert_eq!(answers, [None, one, one, None, None]);
    }

    #[test]
    fn each_copy_to_be_spoiled_comes_once() {
        let config = with(&[("GPUIO_SOFT_CORRUPT", "cuMemcpyAsync:1,cuMemcpyAsync:3")]).unwrap();
        let hits: Vec<bool> = (0..6).map(|_| config.spoils("cuMemcpyAsync")).collect();
        assert_eq!(hits, [false, true, false, true, false, false]);
        assert!(!config.spoils("cuMemcpyHtoDAsync_v2"));
    }

    #[test]
    fn a_wrong_value_names_its_variable() {
        for (name, value) in [
            ("GPUIO_SOFT_GPUS", "two"),
            ("GPUIO_SOFT_GPUS", "65"),
            ("GPUIO_SOFT_MEM", "-1"),
            ("GPUIO_SOFT_PEER", "2"),
            ("GPUIO_SOFT_MANAGED", "off"),
            ("GPUIO_SOFT_STREAM_WORDS", "yes"),
            ("GPUIO_SOFT_DELAY_US", "1ms"),
            ("GPUIO_SOFT_LAG_US", "1ms"),
            ("GPUIO_SOFT_SMS", "0"),
            ("GPUIO_SOFT_SMS", "1025"),
            ("GPUIO_SOFT_STEAL_US", "1ms"),
            ("GPUIO_SOFT_CROWD_US", "1ms"),
            ("GPUIO_SOFT_FAIL", "cuInit"),
            ("GPUIO_SOFT_FAIL", "cuInit:0"),
            ("GPUIO_SOFT_FAIL", "cuInit:1:2:once"),
            ("GPUIO_SOFT_FAIL", "cuInit:1:2:3:4"),
            ("GPUIO_SOFT_CORRUPT", "cuMemcpyAsync"),
            ("GPUIO_SOFT_CORRUPT", ":1"),
            ("GPUIO_SOFT_CORRUPT", "cuMemcpyAsync:first"),
        ] {
            let error = with(&[(name, value)]).unwrap_err();
            assert!(error.starts_with(name), "{error}");
        }
    }
}
