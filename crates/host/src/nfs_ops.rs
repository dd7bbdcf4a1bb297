//! The operations of NFS mounts, one by one: `/proc/self/mountstats` (`net/sunrpc/stats.c`).

use crate::{HostError, LineFault, Root};

/// One operation of one mount since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Operation {
    pub done: u64,
    /// Transmissions: more than requests where some were repeated.
    pub sent: u64,
    /// Requests that timed out.
    pub timeouts: u64,
    /// Milliseconds that requests waited to be sent, summed.
    pub queue_ms: u64,
    /// Milliseconds from sending to the answer, summed.
    pub round_trip_ms: u64,
    /// Milliseconds from the call to its end, summed.
    pub execute_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MountSample {
    pub mount_point: String,
    /// Bytes that the server delivered.
    pub read_bytes: u64,
    /// Bytes that the server took.
    pub written_bytes: u64,
    pub read: Operation,
    pub write: Operation,
    pub other: Operation,
}

/// Samples all NFS mounts, in the kernel's order.
///
/// # Errors
/// [`HostError`] when the file cannot be read or understood.
pub fn samples(root: &Root) -> Result<Vec<MountSample>, HostError> {
    let text = root.read("proc/self/mountstats")?;
    text.map_or_else(|| Ok(Vec::new()), |text| text.parse(parse))
}

/// Parses `/proc/self/mountstats`. Mounts of other kinds are passed over.
///
/// # Errors
/// [`LineFault`] when a line of bytes or of an operation has too few numbers.
pub fn parse(text: &str) -> Result<Vec<MountSample>, LineFault> {
    // The same file: only this function handles its first lines and its escapes.
    let bytes = crate::nfs::parse_mountstats(text.as_bytes())?;
    let mut found: Vec<MountSample> = Vec::new();
    let mut operations = false;
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("device ") {
            operations = false;
        } else if line.trim_start().starts_with("bytes:") {
            let Some(one) = bytes.get(found.len()) else { continue };
            found.push(MountSample {
                mount_point: one.mount_point.to_string_lossy().into_owned(),
                read_bytes: one.server_read_bytes,
                written_bytes: one.server_write_bytes,
                ..MountSample::default()
            });
        } else if line.trim() == "per-op statistics" {
            operations = true;
        } else if let (true, Some(mount), Some((name, numbers))) =
            (operations, found.last_mut(), line.split_once(':'))
        {
            let malformed = || LineFault::new(index, line.trim(), "eight or more numbers");
            let operation = operation(numbers).ok_or_else(malformed)?;
            match name.trim() {
                "READ" => mount.read = operation,
                "WRITE" => mount.write = operation,
                _ => add(&mut mount.other, operation),
            }
        }
    }
    Ok(found)
}

/// Requests, transmissions, timeouts, bytes sent, bytes received, and three times; since
/// statvers=1.1 (Linux 5.2) errors too.
fn operation(numbers: &str) -> Option<Operation> {
    let mut values = [0u64; 8];
    let mut words = numbers.split_whitespace();
    for value in &mut values {
        *value = words.next()?.parse().ok()?;
    }
    let [done, sent, timeouts, _, _, queue_ms, round_trip_ms, execute_ms] = values;
    Some(Operation { done, sent, timeouts, queue_ms, round_trip_ms, execute_ms })
}

fn add(sum: &mut Operation, one: Operation) {
    sum.done = sum.done.saturating_add(one.done);
    sum.sent = sum.sent.saturating_add(one.sent);
    sum.timeouts = sum.timeouts.saturating_add(one.timeouts);
    sum.queue_ms = sum.queue_ms.saturating_add(one.queue_ms);
    sum.round_trip_ms = sum.round_trip_ms.saturating_add(one.round_trip_ms);
    sum.execute_ms = sum.execute_ms.saturating_add(one.execute_ms);
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "device proc mounted on /proc with fstype proc
device srv:/a mounted on /mnt/a\\040b with fstype nfs4 statvers=1.1
\tbytes:\t1 2 3 4 500 600 7 8
\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)
\tper-op statistics
\t        NULL: 1 1 0 44 24 0 1 1 0
\t        READ: 10 11 1 1000 2000 5 30 40 0
\t       WRITE: 20 20 0 1000 2000 6 60 70 0
\t      GETATTR: 5 5 0 1 1 1 2 3 0

device tmpfs mounted on /tmp with fstype tmpfs
";

    #[test]
    fn operations_belong_to_their_mount() {
        let read = parse(TEXT).unwrap();
        assert_eq!(read.len(), 1);
        let mount = &read[0];
        assert_eq!(mount.mount_point, "/mnt/a b");
        assert_eq!((mount.read_bytes, mount.written_bytes), (500, 600));
        assert_eq!((mount.read.done, mount.read.sent, mount.read.timeouts), (10, 11, 1));
        assert_eq!((mount.write.round_trip_ms, mount.write.execute_ms), (60, 70));
        assert_eq!((mount.other.done, mount.other.round_trip_ms), (6, 3));
    }

    #[test]
    fn a_short_line_is_refused_by_its_number() {
        let broken = TEXT.replace("10 11 1 1000 2000 5 30 40 0", "10 11");
        assert!(parse(&broken).unwrap_err().to_string().contains("10 11"));
    }
}
