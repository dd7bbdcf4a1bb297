//! The bytes on network interfaces: `/proc/net/dev` (proc_pid_net(5)), 64 bits since Linux 2.6.35.

use crate::{HostError, LineFault, Root};

/// Counters of one interface since it appeared.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InterfaceSample {
    pub name: String,
    pub received_bytes: u64,
    pub received_packets: u64,
    /// Packets that came broken.
    pub receive_errors: u64,
    /// Packets that came and were dropped.
    pub receive_dropped: u64,
    pub sent_bytes: u64,
    pub sent_packets: u64,
    /// Packets that could not be sent.
    pub send_errors: u64,
    /// Packets dropped before they were sent.
    pub send_dropped: u64,
}

/// Samples all interfaces of this network namespace, in the kernel's order.
///
/// # Errors
/// [`HostError`] when the file cannot be read or understood.
pub fn samples(root: &Root) -> Result<Vec<InterfaceSample>, HostError> {
    let text = root.read("proc/net/dev")?;
    text.map_or_else(|| Ok(Vec::new()), |text| text.parse(parse))
}

/// Parses `/proc/net/dev`: two lines of heading, then `name:` and sixteen numbers.
///
/// # Errors
/// [`LineFault`] when a line has not its sixteen numbers.
pub fn parse(text: &str) -> Result<Vec<InterfaceSample>, LineFault> {
    let lines = text.lines().enumerate().skip(2).filter(|(_, line)| !line.trim().is_empty());
    let one = |(index, line): (usize, &str)| {
        let malformed = || LineFault::new(index, line.trim(), "name: and sixteen numbers");
        // An alias has a colon in its name (`eth0:1`), numbers have none.
        let (name, numbers) = line.rsplit_once(':').ok_or_else(malformed)?;
        let mut values = [0u64; 16];
        let mut words = numbers.split_whitespace();
        for value in &mut values {
            *value = words.next().ok_or_else(malformed)?.parse().map_err(|_| malformed())?;
        }
        Ok(InterfaceSample {
            name: name.trim().to_owned(),
            received_bytes: values[0],
            received_packets: values[1],
            receive_errors: values[2],
            receive_dropped: values[3],
            sent_bytes: values[8],
            sent_packets: values[9],
            send_errors: values[10],
            send_dropped: values[11],
        })
    };
    lines.map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receive_and_send_are_distinguished() {
        let text =
            "Inter-|   Receive\n face |bytes\n  eth0:1: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n";
        let read = parse(text).unwrap();
        assert_eq!((read[0].name.as_str(), read[0].received_bytes), ("eth0:1", 1));
        assert_eq!((read[0].sent_bytes, read[0].sent_packets, read[0].send_errors), (9, 10, 11));
        assert!(parse("a\nb\neth0: 1 2 3\n").is_err());
    }
}
