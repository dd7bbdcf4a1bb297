//! Warnings of all ranks, each once.

use std::collections::{BTreeMap, BTreeSet};

use gpuio_base::units::float;

use crate::{OTHER_CPU_SHARE, Warning, WarningKind};

use crate::merge::rank_list;

/// Differences of counters that several ranks of one host explain, at most.
const EXPLAINED_PERCENT: u64 = 5;

/// Host, device, direction, job.
type Device = (String, String, String, Option<String>);

#[derive(Debug, Default)]
pub(crate) struct Warnings {
    /// Warnings with the ranks that have them, in the order in which they came.
    all: Vec<(Warning, Vec<u32>)>,
    /// Warnings whose figures are not the same on all of their ranks, by job and text.
    varied: BTreeSet<(Option<String>, String)>,
    /// Traffic of a device, and time of processors, that is not of the rank alone, by host, device,
    /// direction and job: the warning, what all ranks moved or took, and the ranks.
    traffic: BTreeMap<Device, (Warning, u64, Vec<u32>)>,
}

impl Warnings {
    pub(crate) fn add(&mut self, rank: u32, host: &str, warnings: &[Warning]) {
        for warning in warnings {
            let ours = match &warning.kind {
                WarningKind::OtherTraffic { device, direction, ours_bytes, .. } => {
                    Some((device.clone(), direction.clone(), *ours_bytes))
                }
                WarningKind::OtherCpuTime { ours_ns, .. } => {
                    Some((String::new(), String::new(), *ours_ns))
                }
                _ => None,
            };
            if let Some((device, direction, ours)) = ours {
                let key = (host.to_owned(), device, direction, warning.job.clone());
                let entry =
                    self.traffic.entry(key).or_insert_with(|| (warning.clone(), 0, Vec::new()));
                entry.1 += ours;
                entry.2.push(rank);
                continue;
            }
            // Only one of a kind about one job is kept: a thousand ranks differ in its figures.
            let same = |known: &&mut (Warning, Vec<u32>)| {
                known.0.job == warning.job && is_same(&known.0, warning)
            };
            match self.all.iter_mut().find(same) {
                Some((known, ranks)) => {
                    if known.text != warning.text {
                        self.varied.insert((known.job.clone(), known.text.clone()));
                    }
                    ranks.push(rank);
                }
                None => self.all.push((warning.clone(), vec![rank])),
            }
        }
    }

    /// All of them; those that not all ranks have name theirs.
    /// Where nothing was received of a rank, traffic of others may be its.
    pub(crate) fn finish(
        mut self,
        received: usize,
        ranks: usize,
        many_hosts: bool,
    ) -> Vec<Warning> {
        let whole = received == ranks;
        for ((host, ..), (warning, ours, of)) in self.traffic.into_iter().filter(|_| whole) {
            // The other ranks of the host were the other programs.
            let Some(kind) = unexplained(&warning.kind, ours) else { continue };
            let text = if many_hosts { format!("host {host}: {kind}") } else { kind.to_string() };
            self.all.push((Warning { job: warning.job, kind, text }, of));
        }
        let named = |(mut warning, mut of): (Warning, Vec<u32>)| {
            of.sort_unstable();
            of.dedup();
            let varied = self.varied.contains(&(warning.job.clone(), warning.text.clone()));
            if let Some(first) = of.first().filter(|_| varied) {
                let ranks = rank_list(&of);
                warning.text = format!("{ranks}, here as on rank {first}: {}", warning.text);
            } else if of.len() < received {
                warning.text = format!("{}: {}", rank_list(&of), warning.text);
            }
            warning
        };
        self.all.into_iter().map(named).collect()
    }
}

/// The same where all ranks of the host had so much of it; nothing where that explains it.
fn unexplained(kind: &WarningKind, ours: u64) -> Option<WarningKind> {
    let mut kind = kind.clone();
    let all = match &mut kind {
        WarningKind::OtherTraffic { ours_bytes, device_bytes, .. } => {
            *ours_bytes = ours;
            *device_bytes
        }
        WarningKind::OtherCpuTime {
            all_ns, ours_ns, programs_ns, kernel_ns, stolen_ns, ..
        } => {
            let mut more = ours.saturating_sub(*ours_ns);
            *ours_ns = ours;
            for theirs in [&mut *programs_ns, &mut *kernel_ns] {
                let taken = more.min(*theirs);
                (*theirs, more) = (*theirs - taken, more - taken);
            }
            let others = float(*programs_ns + *kernel_ns + *stolen_ns);
            return (others >= float(*all_ns) * OTHER_CPU_SHARE).then_some(kind);
        }
        _ => return None,
    };
    (ours < all - all * EXPLAINED_PERCENT / 100).then_some(kind)
}

/// Whether two warnings about one job say the same, figures aside.
fn is_same(a: &Warning, b: &Warning) -> bool {
    match (&a.kind, &b.kind) {
        (WarningKind::Note { note: a }, WarningKind::Note { note: b }) => a == b,
        (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
    }
}
