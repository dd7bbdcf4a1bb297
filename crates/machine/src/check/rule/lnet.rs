//! LNet's settings for Lustre.

use gpuio_record::facts::{Machine, MountKind};

use super::Rule;
use crate::check::finding::Found;
use crate::check::machine::{known_module, module, modules_not_read, none_of};

pub(super) const RULE: Rule = Rule {
    name: "lnet",
    question: "Does LNet wait long enough for transfers, and are its credits known?",
    why: "Many threads that read into GPU memory over Lustre queue up on one card: with LNet's \
          usual timeout transfers are given up and sent again, and with other credits than the \
          server's the smaller side holds back the other.",
    fix: "`lnetctl set transaction_timeout 100` on clients and servers, and the same \
           peer_credits, peer_credits_hiw and concurrent_sends of ko2iblnd on both.",
    source: "NVIDIA, Magnum IO GPUDirect Storage (slides), Learnings / Best Practices; lnetctl(8)",
    shown_by: "mount",
    evaluate,
};

/// Seconds that NVIDIA's slides name.
const ENOUGH: u64 = 100;

fn evaluate(machine: &Machine) -> Vec<Found> {
    let lnet = known_module(machine, "lnet");
    let mounted = machine.mounts.iter().any(|mount| mount.kind == MountKind::Lustre);
    if !mounted && !lnet.is_some_and(|lnet| lnet.loaded) {
        return vec![none_of(machine.listed.mounts, "Lustre mount")];
    }
    let Some(lnet) = lnet.filter(|lnet| lnet.loaded) else {
        return vec![Found::unknown(modules_not_read(machine))];
    };
    let location = "/sys/module/lnet/parameters/lnet_transaction_timeout";
    let configured = lnet.parameters.get("lnet_transaction_timeout");
    let timeout = match configured.and_then(|value| value.trim().parse::<u64>().ok()) {
        None => Found::unknown("LNet's transaction timeout is not reported"),
        Some(seconds) if seconds >= ENOUGH => {
            Found::pass(format!("LNet's transaction timeout is {seconds} s"))
        }
        Some(seconds) => {
            let observed = format!("LNet's transaction timeout is {seconds} s");
            Found::warn(observed, "`lnetctl set transaction_timeout 100`, on the servers too")
        }
    };
    let mut found = vec![timeout.at([location])];
    found.extend(credits(machine));
    found
}

/// The servers' values can't be read here.
fn credits(machine: &Machine) -> Option<Found> {
    let card = module(machine, "ko2iblnd").filter(|module| module.loaded)?;
    let names = ["peer_credits", "peer_credits_hiw", "concurrent_sends"];
    let set = names.map(|name| Some(format!("{name}={}", card.parameters.get(name)?)));
    let set: Vec<String> = set.into_iter().flatten().collect();
    let observed = format!("ko2iblnd has {}; the servers need the same", set.join(", "));
    (!set.is_empty()).then(|| Found::info(observed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Severity, sample};

    fn of(timeout: Option<&str>) -> Vec<Found> {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        let mut lnet = sample::module("lnet", true);
        let timeout =
            timeout.map(|value| ("lnet_transaction_timeout".to_owned(), value.to_owned()));
        lnet.parameters.extend(timeout);
        let mut card = sample::module("ko2iblnd", true);
        card.parameters.insert("peer_credits".to_owned(), "32".to_owned());
        machine.modules.extend([lnet, card]);
        evaluate(&machine)
    }

    #[test]
    fn a_short_timeout_is_reported_with_the_credits_beside_it() {
        let found = of(Some("50"));
        assert_eq!(found[0].severity, Severity::Warn);
        assert_eq!(found[1].observed, "ko2iblnd has peer_credits=32; the servers need the same");
        assert_eq!(of(Some("100"))[0].severity, Severity::Pass);
        assert_eq!(of(None)[0].severity, Severity::Unknown);
    }
}
