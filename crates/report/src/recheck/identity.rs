//! Names and numbers of one thing that stand in several places of a record, and counts of storage
//! that are one reading.

use std::collections::BTreeMap;

use gpuio_record::facts::BlockFacts;
use gpuio_record::{JobResult, Record, StorageReading};

use super::{ROUNDING, Recheck};
use crate::number::float;

impl Recheck {
    /// Each fact of a thing is the same wherever the record has it.
    pub(super) fn identity(&mut self, record: &Record) {
        let mut facts: BTreeMap<String, String> = BTreeMap::new();
        for (thing, fact) in stated(record) {
            let first = facts.entry(thing.clone()).or_insert_with(|| fact.clone());
            self.check(&thing, *first == fact, || format!("'{first}' recorded, and '{fact}'"));
        }
        let names: Vec<&str> = devices(record).iter().map(|device| device.name.as_str()).collect();
        let named = record.jobs.iter().flat_map(|job| {
            let counted = job.cache.storage.iter().map(|one| one.device.as_str());
            let evidence = job.proof.iter().flat_map(|proof| &proof.evidence);
            let of_block = evidence.filter(|one| one.name == "block");
            let read = of_block.filter_map(|one| one.before.as_deref()?.split_once('('));
            let read = read.flat_map(|(_, names)| names.trim_end_matches(')').split('+'));
            counted.chain(read).map(move |name| (&job.name, name))
        });
        for (job, name) in named {
            self.check(&format!("job '{job}'"), names.is_empty() || names.contains(&name), || {
                format!("counts of {name}: its storage is {}", names.join(", "))
            });
        }
    }

    /// Counts of devices are of all jobs of a group, by the same readings as the rates over time
    /// where both begin together.
    pub(super) fn storage(&mut self, record: &Record) {
        let of_group = |group| record.jobs.iter().filter(move |job| job.group == group);
        for job in &record.jobs {
            let Some(first) = of_group(job.group).next() else { continue };
            let about = format!("job '{}'", job.name);
            let counts = |job: &JobResult| {
                let cache = &job.cache;
                (cache.process_read_bytes, cache.process_write_bytes, cache.storage.clone())
            };
            self.check(&about, counts(job) == counts(first), || {
                format!("counts of storage: other ones than those of job '{}'", first.name)
            });
        }
        for group in record.watched.iter().flat_map(|watched| &watched.groups) {
            let Some(job) = of_group(group.group).next() else { continue };
            for counted in &job.cache.storage {
                let of = |key: &str| {
                    let mut devices = group.devices.iter();
                    let device =
                        devices.find(|one| one.probe == "block" && one.device == counted.device)?;
                    device.figures.iter().find(|one| one.key == key)?.whole
                };
                let StorageReading { reads, read_bytes, writes, write_bytes, .. } = *counted;
                let counts = [
                    ("reads", reads, of("reads_per_second")),
                    ("read_bytes", read_bytes, of("read_bytes_per_second")),
                    ("writes", writes, of("writes_per_second")),
                    ("write_bytes", write_bytes, of("written_bytes_per_second")),
                ];
                let known = counts.iter().filter_map(|(name, count, rate)| {
                    let rate = rate.filter(|rate| *rate > 0.0)?;
                    Some((*name, *count, rate, float(*count) / rate))
                });
                let times: Vec<(&str, u64, f64, f64)> = known.collect();
                // The time that most have: one count or rate that was changed has another.
                let is_same = |a: f64, b: f64| (a - b).abs() <= b * ROUNDING;
                let like = |time: f64| times.iter().filter(|one| is_same(one.3, time)).count();
                let Some(time) = times.iter().map(|one| one.3).rev().max_by_key(|at| like(*at))
                else {
                    continue;
                };
                let about = format!("devices of group {}, {}", group.group, counted.device);
                // Counts begin with the first I/O; rates where the jobs begin to count, which may
                // be later.
                let least = float(group.length_ns()) / 1e9 * 0.9;
                for (name, count, rate, other) in &times {
                    let fits = match group.began_ns {
                        0 => is_same(*other, time),
                        _ => *other >= least,
                    };
                    self.check(&about, fits, || {
                        format!(
                            "{name}: {count} recorded, and {rate} per second over the run (whole), \
                             which is not both possible in {time:.3} s"
                        )
                    });
                }
            }
        }
    }
}

fn listed(cpus: &[u32]) -> String {
    cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// Each thing that a record describes, and the description, as often as it stands there.
fn stated(record: &Record) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for device in devices(record) {
        let number = format!("{}:{}", device.device.major, device.device.minor);
        let model = device.model.clone().unwrap_or_default();
        all.push((format!("storage, number of {}", device.name), number.clone()));
        all.push((format!("storage, name of device {number}"), device.name.clone()));
        all.push((format!("storage, model of {}", device.name), model));
    }
    for one in &record.storage {
        // Without a block device a file system may have several numbers.
        let Some(mount) = one.mount.as_ref().filter(|mount| mount.device.major != 0) else {
            continue;
        };
        let number = |of: gpuio_record::facts::DeviceNumber| format!("{}:{}", of.major, of.minor);
        let numbers = [Some(mount.device), one.file.as_ref().map(|file| file.device)];
        let below = one.device.as_ref().map(|device| device.device);
        for of in numbers.into_iter().flatten().chain(below) {
            all.push((format!("storage of {}, number", one.path), number(of)));
        }
        let device = number(mount.device);
        all.push((format!("storage, file system of device {device}"), mount.fs_type.clone()));
    }
    for gpu in record.plan.jobs.iter().flat_map(|job| &job.gpus) {
        let facts = format!("{} {} {} {}", gpu.name, gpu.uuid, gpu.pci, gpu.memory_bytes);
        all.push((format!("GPU {}", gpu.index), facts));
        all.push((format!("GPU {}", gpu.uuid), gpu.index.to_string()));
    }
    let host = &record.host;
    let nodes: Option<Vec<&Vec<u32>>> =
        host.numa.nodes.iter().map(|node| node.cpus.as_ref()).collect();
    if let (Some(nodes), Some(online)) = (nodes.filter(|all| !all.is_empty()), &host.cpu.online) {
        let mut cpus: Vec<u32> = nodes.into_iter().flatten().copied().collect();
        cpus.sort_unstable();
        all.extend([online, &cpus].map(|cpus| ("host, processors".to_owned(), listed(cpus))));
    }
    for node in &host.numa.nodes {
        let distances = node.distances.as_ref().map(Vec::len);
        let nodes = distances.map(|_| host.numa.nodes.len());
        let both = [distances, nodes].into_iter().flatten();
        let thing = format!("host, distances of node {}", node.node);
        all.extend(both.map(|count| (thing.clone(), count.to_string())));
    }
    all
}

/// All block devices under files, members included.
fn devices(record: &Record) -> Vec<&BlockFacts> {
    let mut all: Vec<&BlockFacts> =
        record.storage.iter().filter_map(|one| one.device.as_ref()).collect();
    let mut nth = 0;
    while let Some(device) = all.get(nth) {
        all.extend(&device.members);
        nth += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A record of a run on a disk whose counts over time are known too.
    fn record() -> Value {
        let text = include_str!("../../tests/report/compare/fixtures/staged_on_software_gpu.json");
        let mut record: Value = serde_json::from_str(text).unwrap();
        let counted = &record["jobs"][0]["cache"]["storage"][0];
        let figure = |key: &str, count: &str| {
            let rate = counted[count].as_f64().unwrap() / 2.0;
            json!({"key": key, "whole": rate, "values": [rate]})
        };
        let figures = [
            figure("reads_per_second", "reads"),
            figure("read_bytes_per_second", "read_bytes"),
            figure("writes_per_second", "writes"),
            figure("written_bytes_per_second", "write_bytes"),
        ];
        let device = json!({"probe": "block", "device": counted["device"], "figures": figures});
        let group = json!({"group": 0, "ends_ns": [2_000_000_000_u64], "devices": [device]});
        record["watched"] =
            json!({"interval_ns": 1_000_000_000, "samples": 2, "cpu_ns": 0, "groups": [group]});
        let again = record["storage"][0].clone();
        record["storage"].as_array_mut().unwrap().push(again);
        record
    }

    fn wrong(record: &Value) -> String {
        let record: Record = serde_json::from_value(record.clone()).unwrap();
        let mut all = Recheck::default();
        all.identity(&record);
        all.storage(&record);
        all.wrong.join("; ")
    }

    #[test]
    fn what_a_thing_is_called_and_counted_is_the_same_everywhere() {
        assert_eq!(wrong(&record()), "");
        for (place, value, of) in [
            ("/storage/0/device/name", json!("nvme9n1"), "storage, name of device 254:0: 'nvme9"),
            ("/storage/0/device/model", json!("fast"), "storage, model of vda: 'fast' recorded"),
            (
                "/storage/0/mount/device/minor",
                json!(7),
                "storage of data, number: '254:7' recorded",
            ),
            ("/storage/0/file/device/minor", json!(7), "storage of data, number: '254:0' recorded"),
            ("/storage/1/mount/fs_type", json!("xfs"), "file system of device 254:0: 'ext4'"),
            (
                "/host/numa/nodes/0/cpus",
                json!([0, 70]),
                "host, processors: '0,1' recorded, and '0,70'",
            ),
            ("/host/numa/nodes/0/distances", json!([10, 21, 9]), "host, distances of node 0: '3'"),
            ("/jobs/0/cache/storage/0/device", json!("sdz"), "counts of sdz: its storage is vda"),
            (
                "/jobs/0/cache/storage/0/read_bytes",
                json!(512),
                "vda: read_bytes: 512 recorded, and ",
            ),
            ("/jobs/0/cache/storage/0/writes", json!(512), "vda: writes: 512 recorded, and "),
            (
                "/jobs/0/cache/storage/0/write_bytes",
                json!(512),
                "vda: write_bytes: 512 recorded, and ",
            ),
        ] {
            let mut changed = record();
            *changed.pointer_mut(place).unwrap_or_else(|| panic!("no {place}")) = value;
            let found = wrong(&changed);
            assert!(found.contains(of), "{place}: {found}");
        }
        // The figure that was changed is blamed, also where it is the first, and no other.
        for place in
            ["/jobs/0/cache/storage/0/reads", "/watched/groups/0/devices/0/figures/0/whole"]
        {
            let mut changed = record();
            *changed.pointer_mut(place).unwrap() = json!(12_345);
            let found = wrong(&changed);
            assert!(found.contains(", vda: reads: ") && !found.contains("; "), "{place}: {found}");
        }
    }
}
