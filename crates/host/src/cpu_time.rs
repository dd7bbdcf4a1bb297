//! Time of processors: `/proc/stat` (proc_stat(5)), in ticks of `sysconf(_SC_CLK_TCK)`.

use crate::{HostError, LineFault, Root};

/// Ticks of one processor since the system began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuSample {
    /// The processor's number.
    pub cpu: u32,
    /// In programs, nice ones and guests included.
    pub user: u64,
    /// In the kernel on their behalf.
    pub system: u64,
    /// In interrupts, soft ones included.
    pub interrupt: u64,
    /// Idle while some I/O was awaited: a hint only, since a waiting task is on no processor.
    pub io_wait: u64,
    /// Idle otherwise.
    pub idle: u64,
    /// Taken by the hypervisor for others.
    pub stolen: u64,
}

/// Samples all processors that are online.
///
/// # Errors
/// [`HostError`] when the file cannot be read or understood.
pub fn samples(root: &Root) -> Result<Vec<CpuSample>, HostError> {
    let text = root.read("proc/stat")?;
    text.map_or_else(|| Ok(Vec::new()), |text| text.parse(parse))
}

/// Parses `/proc/stat`: lines `cpuN` with user, nice, system, idle, iowait, irq, softirq, steal.
///
/// # Errors
/// [`LineFault`] when such a line has fewer than four numbers.
pub fn parse(text: &str) -> Result<Vec<CpuSample>, LineFault> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let Some(rest) = line.strip_prefix("cpu") else { continue };
        let malformed = || LineFault::new(index, line, "cpuN and four or more numbers");
        let (number, rest) = rest.split_once(' ').ok_or_else(malformed)?;
        if number.is_empty() {
            continue;
        }
        let mut values = [0u64; 8];
        let mut words = 0;
        for (value, word) in values.iter_mut().zip(rest.split_whitespace()) {
            *value = word.parse().map_err(|_| malformed())?;
            words += 1;
        }
        if words < 4 {
            return Err(malformed());
        }
        let [user, nice, system, idle, io_wait, irq, soft, stolen] = values;
        found.push(CpuSample {
            cpu: number.parse().map_err(|_| malformed())?,
            user: user.saturating_add(nice),
            system,
            interrupt: irq.saturating_add(soft),
            io_wait,
            idle,
            stolen,
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_processors_are_read_and_the_sum_is_not() {
        let text = "cpu  9 9 9 9\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu12 1 0 0 4\nintr 5\n";
        let read = parse(text).unwrap();
        assert_eq!(read.len(), 2);
        let first =
            CpuSample { cpu: 0, user: 3, system: 3, interrupt: 13, io_wait: 5, idle: 4, stolen: 8 };
        assert_eq!((read[0], read[1].cpu), (first, 12));
        assert!(parse("cpu0 1 2\n").is_err());
    }
}
