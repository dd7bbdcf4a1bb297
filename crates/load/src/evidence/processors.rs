//! The time of the processors that this process may use, and to whom it went.

use gpuio_host::cpu_time::{self, CpuSample};
use gpuio_host::{Root, cpu, process_time};
use gpuio_record::ProcessorTime;

/// Ticks of those processors, and of this process, at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Processors {
    cpus: Vec<CpuSample>,
    /// In its own code, and in the kernel.
    own: [u64; 2],
}

impl Processors {
    /// Reads the counters; `None` where some are absent.
    pub(crate) fn read(root: &Root) -> Option<Processors> {
        let allowed = cpu::allowed(root).ok()??;
        let mut cpus = cpu_time::samples(root).ok()?;
        cpus.retain(|one| allowed.contains(&one.cpu));
        let own = root.read("proc/self/stat").ok()??.parse(process_time::parse).ok()?;
        Some(Processors { cpus, own: [own.user, own.system] })
    }

    /// The time from `self` to `later`, in ticks of which a second has so many.
    pub(crate) fn until(&self, later: &Processors, ticks_per_second: u64) -> Option<ProcessorTime> {
        let pair = |now: &CpuSample| {
            let then = self.cpus.iter().find(|then| then.cpu == now.cpu)?;
            Some((*then, *now))
        };
        let pairs: Vec<(CpuSample, CpuSample)> = later.cpus.iter().filter_map(pair).collect();
        let sum = |of: fn(&CpuSample) -> u64| -> u64 {
            // Idle times of the kernel may go back a little.
            pairs.iter().map(|(then, now)| of(now).saturating_sub(of(then))).sum()
        };
        let [user, system] = [sum(|cpu| cpu.user), sum(|cpu| cpu.system)];
        let idle = sum(|cpu| cpu.idle) + sum(|cpu| cpu.io_wait);
        let stolen = sum(|cpu| cpu.stolen);
        let all = user + system + idle + stolen + sum(|cpu| cpu.interrupt);
        let [own_user, own_system] = [0, 1].map(|at| later.own[at].saturating_sub(self.own[at]));
        let ours = own_user + own_system;
        // Which part was in the kernel is known worse than the sum: ticks are samples of it.
        let others = (user + system).saturating_sub(ours);
        let programs = user.saturating_sub(own_user).min(others);
        let time = |ticks: u64| {
            let ns = u128::from(ticks) * 1_000_000_000 / u128::from(ticks_per_second.max(1));
            u64::try_from(ns).unwrap_or(u64::MAX)
        };
        (all > 0 && ticks_per_second > 0).then(|| ProcessorTime {
            cpus: u32::try_from(pairs.len()).unwrap_or(u32::MAX),
            all_ns: time(all),
            idle_ns: time(idle),
            ours_ns: time(ours),
            programs_ns: time(programs),
            kernel_ns: time(others - programs),
            stolen_ns: time(stolen),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(cpu: u32, [user, system, idle, stolen]: [u64; 4]) -> CpuSample {
        CpuSample { cpu, user, system, idle, stolen, ..CpuSample::default() }
    }

    /// Ten seconds of two processors: this process had 300 ticks of 2000, 60 of them in the kernel.
    #[test]
    fn what_is_not_ours_is_others() {
        let before = Processors { cpus: vec![cpu(0, [5; 4]), cpu(1, [0; 4])], own: [10, 20] };
        let cpus = vec![cpu(0, [805, 105, 105, 5]), cpu(1, [500, 200, 200, 100]), cpu(2, [9; 4])];
        let after = Processors { cpus, own: [250, 80] };
        let seconds = |tenths: u64| tenths * 100_000_000;
        let time = before.until(&after, 100).unwrap();
        let expected = ProcessorTime {
            cpus: 2,
            all_ns: seconds(200),
            idle_ns: seconds(30),
            ours_ns: seconds(30),
            programs_ns: seconds(106),
            kernel_ns: seconds(24),
            stolen_ns: seconds(10),
        };
        assert_eq!(time, expected);
        // More than all processors counted is a matter of ticks, and nothing of others.
        let busy = Processors { own: [9_000, 9_000], ..after.clone() };
        let time = before.until(&busy, 100).unwrap();
        assert_eq!((time.programs_ns, time.kernel_ns), (0, 0));
        assert_eq!(before.until(&before, 100), None, "no time has passed");
    }

    #[test]
    fn this_machine_has_the_counters() {
        let found = Processors::read(&Root::live()).unwrap();
        assert!(!found.cpus.is_empty(), "{found:?}");
    }
}
