//! gdsio's flags and the keys they stand for.

use crate::spec::keys::{Key, Status, find};
use crate::spec::vocabulary::is_alike;

/// One flag.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Flag {
    /// The flag: a dash and a letter.
    pub(super) name: &'static str,
    pub(super) takes: Takes,
    /// Description of its value, for errors.
    pub(super) what: &'static str,
}

impl Flag {
    pub(super) fn letter(&self) -> char {
        // Every name is a dash and a letter, so there is a second character.
        self.name.chars().nth(1).unwrap_or('-')
    }
}

/// The value of a flag.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// None: the key is switched on.
    Nothing(&'static str),
    /// A value in the key's format.
    Value(&'static str),
    /// One name, colons and all.
    Name(&'static str),
    /// A number that stands for a value of the key.
    Number(&'static str, &'static [(&'static str, &'static str)]),
    /// None: `-J`, which is about the report and not a job.
    PerJob,
}

const fn flag(name: &'static str, takes: Takes, what: &'static str) -> Flag {
    Flag { name, takes, what }
}

const DIRECTIONS: &[(&str, &str)] =
    &[("0", "read"), ("1", "write"), ("2", "randread"), ("3", "randwrite")];
const MEMORIES: &[(&str, &str)] =
    &[("0", "device"), ("1", "vmm"), ("2", "pinned"), ("3", "malloc"), ("4", "mmap")];
/// `-O 1` opens without `O_DIRECT`.
const OPENS: &[(&str, &str)] = &[("0", "1"), ("1", "0")];

pub(super) static FLAGS: &[Flag] = &[
    flag("-f", Takes::Name("filename"), "a file name"),
    flag("-D", Takes::Name("directory"), "a directory name"),
    flag("-d", Takes::Value("gpu_dev_id"), "a GPU number"),
    flag("-n", Takes::Value("numa_node"), "a NUMA node number"),
    flag(
        "-m",
        Takes::Number("memory", MEMORIES),
        "0 (device memory), 1 (virtual memory calls), 2 (pinned), 3 (malloc) or 4 (mmap)",
    ),
    flag("-w", Takes::Value("num_threads"), "a number of threads, at least 1"),
    flag("-s", Takes::Value("size"), "a size such as 1G"),
    flag("-o", Takes::Value("start_offset"), "an offset such as 0 or 1G"),
    flag("-i", Takes::Value("bs"), "a size such as 1M, or min:max:step"),
    flag("-p", Takes::Nothing("enable_nvlinks"), ""),
    flag("-b", Takes::Nothing("skip_bufregister"), ""),
    flag("-V", Takes::Nothing("do_verify"), ""),
    flag("-x", Takes::Value("xfer_type"), "a transfer type from 0 to 7"),
    flag("-B", Takes::Value("batch"), "a number of I/Os per batch"),
    flag(
        "-I",
        Takes::Number("rw", DIRECTIONS),
        "0 (read), 1 (write), 2 (randread) or 3 (randwrite)",
    ),
    flag("-T", Takes::Value("runtime"), "a number of seconds"),
    flag("-k", Takes::Value("random_seed"), "a number such as 3456"),
    flag("-U", Takes::Nothing("unaligned_random"), ""),
    flag("-R", Takes::Nothing("fill_random"), ""),
    flag("-F", Takes::Nothing("refill_buffer"), ""),
    flag("-a", Takes::Value("align"), "an alignment such as 4k"),
    flag("-M", Takes::Value("mix_percent"), "a percentage from 0 to 100"),
    flag("-P", Takes::Value("rdma_url"), "a URL"),
    flag("-O", Takes::Number("direct", OPENS), "0 (O_DIRECT) or 1 (page cache)"),
    flag("-J", Takes::PerJob, ""),
];

/// gpuio's own options of the command that set the key of the same name.
pub const GDSIO_KEYS: &[&str] =
    &["--gpu", "--engine", "--depth", "--streams", "--ramp", "--set", "--cpus"];

/// gdsio's flag for a setting: with the value that it has there, if one is given.
pub(crate) fn flag_of(key: &Key, value: Option<&str>) -> Option<String> {
    let value = value.or_else(|| match key.status {
        Status::Supported(setter) => setter.bare(),
        _ => None,
    });
    FLAGS.iter().find_map(|flag| {
        let alike = |other: &str, its: &str| {
            find(other).is_some_and(|other| is_alike(key, value, other, Some(its)))
        };
        let numbered = |number: &str| match value {
            Some(_) => format!("{} {number}", flag.name),
            None => flag.name.to_owned(),
        };
        match flag.takes {
            Takes::PerJob => None,
            Takes::Nothing(other) => alike(other, "1").then(|| flag.name.to_owned()),
            Takes::Number(other, names) => {
                let (number, _) = names.iter().find(|(_, name)| alike(other, name))?;
                Some(numbered(number))
            }
            Takes::Value("xfer_type") => {
                let number = ('0'..='7').map(String::from).find(|it| alike("xfer_type", it))?;
                Some(numbered(&number))
            }
            Takes::Value(other) | Takes::Name(other) => {
                alike(other, value.unwrap_or("1")).then(|| numbered(value.unwrap_or_default()))
            }
        }
    })
}

/// Whether gdsio has this flag: a dash and a letter.
pub fn is_flag(word: &str) -> bool {
    FLAGS.iter().any(|flag| flag.name == word)
}

/// All flags, for the error about an unknown one.
pub(super) fn letters() -> String {
    let names: Vec<_> = FLAGS.iter().map(|flag| flag.name).collect();
    names.join(" ")
}
