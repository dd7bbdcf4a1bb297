//! File servers by description.

use crate::flow::FileError;
use crate::flow::ini::{Entry, Section};

/// The rates of a file server, or of several that are described together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerFigures {
    /// The server's name or address as the mount has it; with `*` in it, each server that fits.
    /// `None` describes the servers of all mounts that no other description names, together.
    pub name: Option<String>,
    /// Bytes per second that clients read.
    pub read: Option<f64>,
    /// Bytes per second that clients write.
    pub write: Option<f64>,
    /// Reads per second.
    pub read_iops: Option<f64>,
    /// Writes per second.
    pub write_iops: Option<f64>,
    /// Ports: how many, and bytes per second of each.
    pub ports: Option<(u64, f64)>,
    /// Access time of one read or write over the network, in nanoseconds.
    pub latency_ns: Option<f64>,
    pub source: String,
}

pub(crate) const KEYS: &[&str] =
    &["read", "write", "read-iops", "write-iops", "iops", "ports", "latency", "source"];

impl ServerFigures {
    pub(crate) fn of(file: &str, section: &Section<'_>) -> Result<Self, FileError> {
        let name = Some(section.name.to_owned()).filter(|name| !name.is_empty() && name != "*");
        let mut server = ServerFigures { name, source: file.to_owned(), ..Self::default() };
        section.entries.iter().try_for_each(|entry| server.set(file, entry))?;
        Ok(server)
    }

    fn set(&mut self, file: &str, entry: &Entry<'_>) -> Result<(), FileError> {
        match entry.key {
            "read" => self.read = Some(entry.rate(file)?),
            "write" => self.write = Some(entry.rate(file)?),
            "read-iops" => self.read_iops = Some(entry.ios(file)?),
            "write-iops" => self.write_iops = Some(entry.ios(file)?),
            "iops" => {
                self.read_iops = Some(entry.ios(file)?);
                self.write_iops = self.read_iops;
            }
            "latency" => self.latency_ns = Some(entry.ns(file)?),
            "ports" => self.ports = Some(ports(file, entry)?),
            "source" => entry.value.clone_into(&mut self.source),
            _ => return Err(entry.unknown_key(file, KEYS)),
        }
        Ok(())
    }

    /// Reads the value of `--server`: `read=24GB/s,write=12GB/s,ports=2x100Gb`, and
    /// `name=SERVER` where it is about one of several.
    ///
    /// # Errors
    ///
    /// An unknown key or a value that does not fit, with its column.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        let file = "--server";
        let mut server = ServerFigures { source: "--server".to_owned(), ..Self::default() };
        let mut column = 1;
        for part in text.split(',') {
            let Some((key, value)) = part.split_once('=') else {
                let what = format!("{part:?} is no key=value; keys are name, {}", KEYS.join(", "));
                return Err(crate::flow::ini::error(file, 1, column, what));
            };
            let width = |text: &str| u32::try_from(text.chars().count()).unwrap_or(u32::MAX - 1);
            let columns = (column, column + width(key) + 1);
            let entry = Entry { key: key.trim(), value: value.trim(), line: 1, columns };
            match entry.key {
                "name" => {
                    server.name = Some(entry.value.to_owned()).filter(|name| name != "*");
                }
                _ => server.set(file, &entry)?,
            }
            column += width(part) + 1;
        }
        Ok(server)
    }
}

/// `2x100Gb`: how many, and bytes per second of each.
pub(crate) fn ports(file: &str, entry: &Entry<'_>) -> Result<(u64, f64), FileError> {
    let (count, rate, at) = match entry.value.split_once('x') {
        Some((count, rate)) => (count.trim(), rate.trim(), count.len() + 1),
        None => ("1", entry.value, 0),
    };
    let wanted = "ports are COUNTxRATE, such as 2x100Gb";
    let count = count.parse::<u64>().ok().filter(|count| *count > 0);
    let count = count.ok_or_else(|| entry.bad(file, 0, wanted))?;
    let rate = gpuio_base::units::parse_bytes_per_second(rate)
        .map_err(|error| entry.bad(file, at + error.at, format!("{error}; {wanted}")))?;
    let rate = rate as f64;
    if rate == 0.0 {
        return Err(entry.bad(file, at, wanted));
    }
    Ok((count, rate))
}
