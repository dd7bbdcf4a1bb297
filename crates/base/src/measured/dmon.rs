//! `nvidia-smi dmon` and `dcgmi dmon`: a line per GPU and interval below a head of two lines.

use super::{Measured, Reader, Tables, Tool, number};

const OF_NVIDIA: &str = "nvidia-smi dmon";
const OF_DCGM: &str = "dcgmi dmon";

pub(super) const NVIDIA: Tool = Tool {
    command: OF_NVIDIA,
    begins: is_head,
    wanted: "a GPU below dmon's head",
    reader: || {
        let tables = Tables::new(OF_NVIDIA);
        Box::new(Nvidia { names: Vec::new(), columns: Vec::new(), tables })
    },
};

pub(super) const DCGM: Tool = Tool {
    command: OF_DCGM,
    begins: is_head_of_dcgm,
    wanted: "GPU 0 and its values",
    reader: || Box::new(Dcgm { names: Vec::new(), tables: Tables::new(OF_DCGM) }),
};

/// `# gpu   pwr gtemp …`, also with dates and times before.
fn is_head(line: &str) -> bool {
    let Some(rest) = line.trim_start().strip_prefix('#') else { return false };
    let mut words = rest.split_whitespace();
    let first = words.find(|word| !matches!(*word, "Date" | "Time" | "YYYYMMDD"));
    let known = ["pwr", "sm", "rxpci", "mclk", "fb", "pviol", "sbecc", "mem", "gtemp"];
    first == Some("gpu") && words.any(|word| known.contains(&word))
}

struct Nvidia {
    names: Vec<String>,
    /// The names with their units, where these stand below.
    columns: Vec<String>,
    tables: Tables,
}

impl Reader for Nvidia {
    fn line(&mut self, line: &str) -> bool {
        let words: Vec<&str> =
            line.trim_start().trim_start_matches('#').split_whitespace().collect();
        if is_head(line) {
            self.names = words.into_iter().map(str::to_owned).collect();
            self.columns.clone_from(&self.names);
            return true;
        }
        if words.len() != self.names.len() {
            return false;
        }
        if line.trim_start().starts_with('#') {
            let named = self.names.iter().zip(&words);
            self.columns = named.map(|(name, unit)| format!("{name} {unit}")).collect();
            return true;
        }
        let gpu = self.names.iter().position(|name| name == "gpu");
        let Some(gpu) = gpu.and_then(|at| words[at].parse::<u32>().ok()) else { return false };
        let kept = |at: &usize| !matches!(self.names[*at].as_str(), "gpu" | "Date" | "Time");
        let places: Vec<usize> = (0..self.names.len()).filter(kept).collect();
        let columns: Vec<String> = places.iter().map(|at| self.columns[*at].clone()).collect();
        let values = places.iter().map(|at| number(words[*at])).collect();
        self.tables.push(&columns, &format!("GPU{gpu}"), values);
        true
    }

    fn tables(&mut self) -> Vec<Measured> {
        self.tables.take()
    }
}

/// `# Entity   PCITX  PCIRX`, in later releases `#Entity`.
fn is_head_of_dcgm(line: &str) -> bool {
    let rest = line.trim_start().strip_prefix('#').map(str::trim_start);
    rest.is_some_and(|rest| rest.starts_with("Entity") && rest.split_whitespace().count() > 1)
}

struct Dcgm {
    names: Vec<String>,
    tables: Tables,
}

impl Reader for Dcgm {
    fn line(&mut self, line: &str) -> bool {
        let words: Vec<&str> = line.split_whitespace().collect();
        if is_head_of_dcgm(line) {
            let names = line.trim_start().trim_start_matches('#').split_whitespace().skip(1);
            self.names = names.map(str::to_owned).collect();
            return true;
        }
        let whole = words.len() == self.names.len() + 2;
        match words.as_slice() {
            [kind @ ("GPU" | "GPU-I" | "GPU-CI" | "Switch" | "Link" | "CPU"), of, ..] if whole => {
                let values = words[2..].iter().map(|word| number(word)).collect();
                self.tables.push(&self.names, &format!("{kind}{of}"), values);
                true
            }
            // `Id`, and units of some releases, stand below the head alone.
            words => {
                let plain = words.iter().all(|word| number(word).is_none());
                plain && words.len() <= self.names.len() + 1 && !self.names.is_empty()
            }
        }
    }

    fn tables(&mut self) -> Vec<Measured> {
        self.tables.take()
    }
}
