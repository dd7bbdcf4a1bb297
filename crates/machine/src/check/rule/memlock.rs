//! The limit on locked memory.

use gpuio_base::units::format_bytes;
use gpuio_record::facts::Machine;

use super::Rule;
use crate::check::finding::Found;
use crate::check::machine::{CAP_IPC_LOCK, has_capability};
use crate::check::verdict::{About, Answer, Need};

pub(super) const RULE: Rule = Rule {
    name: "memlock",
    question: "May this process lock enough memory for registered buffers?",
    why: "Buffers that io_uring registers and that RDMA cards read count against RLIMIT_MEMLOCK: \
          with a small limit, registration fails and each I/O pins its pages anew.",
    fix: "`ulimit -l unlimited`; for good, `* - memlock unlimited` in /etc/security/limits.conf, \
           LimitMEMLOCK=infinity in a unit, or `--ulimit memlock=-1` of a container.",
    source: "getrlimit(2), RLIMIT_MEMLOCK; io_uring_register(2), IORING_REGISTER_BUFFERS; \
             limits.conf(5); capabilities(7), CAP_IPC_LOCK",
    shown_by: super::COLLECTED,
    evaluate,
};

/// 16 threads with 16 slots of 1 MiB each: a usual load.
const ENOUGH: u64 = 256 << 20;

fn evaluate(machine: &Machine) -> Vec<Found> {
    let need = need(machine, ENOUGH, "16 threads with 16 blocks of 1 MiB take");
    let is_short = need.fix.is_some();
    let found = match need.met {
        Answer::Yes => Found::pass(need.found),
        Answer::No => Found::warn(need.found, need.fix.unwrap_or_default()),
        Answer::Unknown => Found { fix: need.fix, ..Found::unknown(need.found) },
    };
    vec![found.at(is_short.then_some("RLIMIT_MEMLOCK"))]
}

/// Whether this process may lock `least` bytes, as many as `user` takes.
pub(crate) fn need(machine: &Machine, least: u64, user: &str) -> Need {
    let about = About::Kernel;
    let Some(limit) = machine.host.kernel.memlock_bytes else {
        return Need::unknown(about, "the limit on locked memory was not read");
    };
    let above = has_capability(machine, CAP_IPC_LOCK);
    let most = match limit.soft {
        _ if above == Some(true) => "without limit (CAP_IPC_LOCK)".to_owned(),
        None => "without limit".to_owned(),
        Some(soft) if soft >= least => format!("up to {}", format_bytes(soft)),
        Some(soft) => {
            let most = format_bytes(soft);
            let found = format!("this process may lock {most}; {user} {}", format_bytes(least));
            let may_raise = limit.hard.is_none_or(|hard| hard >= least);
            let fix = if may_raise {
                "`ulimit -l unlimited`, or as far as the hard limit goes"
            } else {
                "`* - memlock unlimited` in /etc/security/limits.conf and a new login, \
                 LimitMEMLOCK=infinity in a unit, or `--ulimit memlock=-1` of a container"
            };
            let need = match above {
                None => {
                    let why = "unless it has CAP_IPC_LOCK, which is not known";
                    Need::unknown(about, format!("{found}, {why}"))
                }
                Some(_) => Need::no(about, found),
            };
            return need.fix(fix);
        }
    };
    Need::yes(about, format!("this process may lock memory {most}"))
}

#[cfg(test)]
mod tests {
    use gpuio_record::facts::ResourceLimit;

    use super::*;
    use crate::check::Severity;

    fn of(soft: Option<u64>, hard: Option<u64>) -> Found {
        let mut machine = Machine::default();
        machine.host.kernel.memlock_bytes = Some(ResourceLimit { soft, hard });
        machine.host.kernel.capabilities = Some(0);
        evaluate(&machine).remove(0)
    }

    #[test]
    fn a_small_limit_gets_the_fix_that_can_work() {
        assert_eq!(of(None, None).severity, Severity::Pass);
        assert_eq!(of(Some(ENOUGH), None).severity, Severity::Pass);
        let low = of(Some(8 << 20), Some(8 << 20));
        assert_eq!(low.severity, Severity::Warn);
        assert!(low.fix.unwrap().contains("limits.conf"));
        assert!(!low.observed.contains("CAP_IPC_LOCK"), "{}", low.observed);
        assert!(of(Some(8 << 20), None).fix.unwrap().starts_with("`ulimit"));
    }
    #[test]
    fn who_has_the_capability_has_no_limit() {
        let mut machine = Machine::default();
        let soft = Some(8 << 20);
        machine.host.kernel.memlock_bytes = Some(ResourceLimit { soft, hard: soft });
        assert_eq!(evaluate(&machine)[0].severity, Severity::Unknown);
        machine.host.kernel.capabilities = Some(1 << CAP_IPC_LOCK);
        let found = evaluate(&machine).remove(0);
        assert_eq!((found.severity, found.fix), (Severity::Pass, None));
    }
}
