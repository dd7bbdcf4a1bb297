//! NFS mounts: `/proc/self/mountstats`. Bytes are those from and to the server.

use crate::metric::{self, Figure, Form, Metric, bytes, count, figure, milliseconds};
use crate::probe::{Eye, Probe, Reading, both};

const METRICS: [Metric; 11] = [
    bytes("read_bytes", "Bytes that the server delivered"),
    bytes("written_bytes", "Bytes that the server took"),
    count("reads", "READ requests done"),
    count("writes", "WRITE requests done"),
    count("other", "Other requests done"),
    milliseconds("read_round_trip_seconds", "Time from sending READs to their answers, summed"),
    milliseconds("write_round_trip_seconds", "Time from sending WRITEs to their answers, summed"),
    milliseconds("read_execute_seconds", "Time from the call of READs to their end, summed"),
    milliseconds("write_execute_seconds", "Time from the call of WRITEs to their end, summed"),
    count("repeated", "Transmissions beyond the first of a request"),
    count("timeouts", "Requests that timed out"),
];

const FIGURES: [Figure; 10] = [
    metric::READS,
    metric::WRITES,
    figure("other_per_second", "other/s", Form::Number, false, |c| c.rate("other")),
    metric::READ_BYTES,
    metric::WRITTEN_BYTES,
    figure("read_round_trip_seconds", "r_rtt ms", Form::Milliseconds, true, |c| {
        c.per("read_round_trip_seconds", "reads")
    }),
    figure("write_round_trip_seconds", "w_rtt ms", Form::Milliseconds, true, |c| {
        c.per("write_round_trip_seconds", "writes")
    }),
    figure("read_execute_seconds", "r_exe ms", Form::Milliseconds, false, |c| {
        c.per("read_execute_seconds", "reads")
    }),
    figure("write_execute_seconds", "w_exe ms", Form::Milliseconds, false, |c| {
        c.per("write_execute_seconds", "writes")
    }),
    figure("repeated", "again", Form::Number, false, |c| c.of("repeated")),
];

pub(super) const PROBE: Probe = Probe {
    name: "nfs",
    title: "NFS mounts",
    source: "/proc/self/mountstats",
    metrics: &METRICS,
    figures: &FIGURES,
    trend: both(metric::moved),
    most: usize::MAX,
    rank: None,
    read,
};

fn read(eye: &mut Eye) -> Result<Vec<Reading>, String> {
    let mounts = gpuio_host::nfs_ops::samples(&eye.root).map_err(|error| error.to_string())?;
    eye.counters.mounts.clone_from(&mounts);
    if mounts.is_empty() {
        return Err("nothing is mounted over NFS".to_owned());
    }
    let reading = |mount: gpuio_host::nfs_ops::MountSample| {
        let (read, write, other) = (mount.read, mount.write, mount.other);
        let all = [read, write, other];
        let again = all.iter().map(|one| one.sent.saturating_sub(one.done)).sum();
        let values = [
            mount.read_bytes,
            mount.written_bytes,
            read.done,
            write.done,
            other.done,
            read.round_trip_ms,
            write.round_trip_ms,
            read.execute_ms,
            write.execute_ms,
            again,
            all.iter().map(|one| one.timeouts).sum(),
        ];
        Reading::new(mount.mount_point, values.map(Some).to_vec())
    };
    Ok(mounts.into_iter().map(reading).collect())
}
