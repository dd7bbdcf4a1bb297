//! Several hosts: what differs between them, and findings that many have in common.
//!
//! [`differences`] compares the facts in [`ASPECTS`]; [`findings`] runs the rules on each host and
//! puts equal findings together. Both are pure. [`document`] and [`json`] print them: differences
//! first, and nothing once for each host.
//!
//! To add an aspect: a row in [`ASPECTS`].

mod aspect;
mod text;

use std::collections::BTreeMap;

use gpuio_record::facts::Machine;
use serde::Serialize;

pub use aspect::{ASPECTS, Aspect};
pub use text::{document, section};

use crate::check::{Finding, Rule, Severity, check};

#[derive(Debug, Clone, Copy)]
pub struct HostFacts<'m> {
    pub name: &'m str,
    pub machine: &'m Machine,
}

/// Something that is not the same on all hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The aspect: `kernel`, `PCIe lanes`.
    pub aspect: &'static str,
    /// The parts: `GPU0`, `mlx5_0`, a mount point. Empty for the whole machine. Parts that differ
    /// alike stand together.
    pub parts: Vec<String>,
    /// The values with their hosts, most hosts first.
    pub values: Vec<Value>,
}

/// A value and the hosts that have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Value {
    /// As printed; `null` where a host does not have the part, or its value is not known.
    pub value: Option<String>,
    /// The hosts, in their order.
    pub hosts: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostsFinding {
    #[serde(flatten)]
    pub finding: Finding,
    /// The hosts, in their order.
    pub hosts: Vec<String>,
}

/// The differences between the hosts, in the order of [`ASPECTS`]. Facts that name a host, such as
/// addresses and serial numbers, are not compared.
pub fn differences(hosts: &[HostFacts<'_>]) -> Vec<Difference> {
    let mut all: Vec<Difference> = Vec::new();
    for aspect in ASPECTS {
        let each: Vec<BTreeMap<String, Option<String>>> =
            hosts.iter().map(|host| (aspect.read)(host.machine).into_iter().collect()).collect();
        let mut parts: Vec<&String> = each.iter().flat_map(BTreeMap::keys).collect();
        parts.sort();
        parts.dedup();
        let of_aspect = all.len();
        for part in parts {
            let with = hosts
                .iter()
                .zip(&each)
                .filter(|(_, of)| aspect.presence || of.contains_key(part) || has_owner(of, part));
            let values = values(with.map(|(host, of)| (host, of.get(part).cloned().flatten())));
            if values.len() < 2 {
                continue;
            }
            let named = Some(part.clone()).filter(|part| !part.is_empty());
            let same = all[of_aspect..].iter_mut().find(|known| known.values == values);
            match same {
                Some(known) => known.parts.extend(named),
                None => {
                    let parts = named.into_iter().collect();
                    all.push(Difference { aspect: aspect.name, parts, values });
                }
            }
        }
    }
    all
}

/// The differences between machines of which texts show a part. One that shows nothing of a part
/// does not differ there, unless it shows others of its kind that another machine has too. All
/// machines have a kernel: a text without it says nothing.
pub fn differences_in_texts(hosts: &[HostFacts<'_>]) -> Vec<Difference> {
    let mut all = differences(hosts);
    // Where a function is plugged in makes no difference to what it does.
    all.retain(|one| one.aspect != "PCI address");
    for one in &mut all {
        let Some(aspect) = ASPECTS.iter().find(|aspect| aspect.name == one.aspect) else {
            continue;
        };
        let of = |host: &HostFacts<'_>| -> BTreeMap<String, Option<String>> {
            (aspect.read)(host.machine).into_iter().collect()
        };
        let lists = |wanted: &String| {
            let is = |host: &&HostFacts<'_>| host.name == wanted;
            let own = hosts.iter().find(is).map(of).unwrap_or_default();
            let mut others = hosts.iter().filter(|host| !is(host)).flat_map(of);
            // One that it lists has a value that is not known.
            let lacks =
                !one.parts.is_empty() && !one.parts.iter().any(|part| own.contains_key(part));
            let owns = one.parts.iter().all(|part| has_owner(&own, part));
            lacks && (owns || aspect.presence && others.any(|(name, _)| own.contains_key(&name)))
        };
        for value in one.values.iter_mut().filter(|value| value.value.is_none()) {
            value.hosts.retain(lists);
        }
        one.values.retain(|value| !value.hosts.is_empty());
    }
    all.retain(|one| one.values.len() > 1);
    all
}

/// Whether a host has what a part belongs to: the mount of an option, `/mnt/x nconnect`.
fn has_owner(parts: &BTreeMap<String, Option<String>>, part: &str) -> bool {
    let owner = |part: &str| part.rsplit_once(' ').map(|(owner, _)| owner.to_owned());
    owner(part).is_some_and(|wanted| parts.keys().any(|key| owner(key).as_ref() == Some(&wanted)))
}

/// Each value once with its hosts, most hosts first, of equally many in the hosts' order.
fn values<'h>(each: impl Iterator<Item = (&'h HostFacts<'h>, Option<String>)>) -> Vec<Value> {
    let mut values: Vec<Value> = Vec::new();
    for (host, value) in each {
        let name = host.name.to_owned();
        match values.iter_mut().find(|known| known.value == value) {
            Some(known) => known.hosts.push(name),
            None => values.push(Value { value, hosts: vec![name] }),
        }
    }
    values.sort_by_key(|value| std::cmp::Reverse(value.hosts.len()));
    values
}

/// The findings of the rules on the hosts: in the rules' order, worst first, equal findings once.
pub fn findings(hosts: &[HostFacts<'_>], rules: &[&Rule]) -> Vec<HostsFinding> {
    let mut all: Vec<HostsFinding> = Vec::new();
    for rule in rules {
        let of_rule = all.len();
        for host in hosts {
            for finding in check(host.machine, &[*rule]) {
                let name = host.name.to_owned();
                let known = all[of_rule..].iter_mut().find(|known| known.finding == finding);
                match known {
                    Some(known) => known.hosts.push(name),
                    None => all.push(HostsFinding { finding, hosts: vec![name] }),
                }
            }
        }
        all[of_rule..].sort_by_key(|one| (one.finding.severity, usize::MAX - one.hosts.len()));
    }
    all
}

/// Whether any host fails a rule.
pub fn any_failed(findings: &[HostsFinding]) -> bool {
    findings.iter().any(|one| one.finding.severity == Severity::Fail)
}

#[derive(Serialize)]
struct Output<'o> {
    schema: &'static str,
    hosts: Vec<&'o str>,
    differences: &'o [Difference],
    findings: &'o [HostsFinding],
}

/// All of it in one object: `{"schema": "gpuio-check-hosts-v1", "hosts": […], "differences": […],
/// "findings": […]}`.
pub fn json(
    hosts: &[HostFacts<'_>],
    differences: &[Difference],
    findings: &[HostsFinding],
) -> String {
    let output = Output {
        schema: "gpuio-check-hosts-v1",
        hosts: hosts.iter().map(|host| host.name).collect(),
        differences,
        findings,
    };
    gpuio_base::document::json_of(&output)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{RULES, sample};
    use gpuio_record::facts::PrintedCell;

    fn hosts(count: usize) -> Vec<(String, Machine)> {
        let one = |number| (format!("n{number:02}"), sample::gpu_and_drive_below_a_switch());
        (1..=count).map(one).collect()
    }

    fn facts(hosts: &[(String, Machine)]) -> Vec<HostFacts<'_>> {
        hosts.iter().map(|(name, machine)| HostFacts { name, machine }).collect()
    }

    #[test]
    fn equal_hosts_do_not_differ_and_their_findings_stand_once() {
        let hosts = hosts(64);
        let facts = facts(&hosts);
        assert_eq!(differences(&facts), []);
        let rules: Vec<&Rule> = RULES.iter().collect();
        let findings = findings(&facts, &rules);
        assert!(findings.iter().all(|one| one.hosts.len() == 64));
        let alone = check(&hosts[0].1, &rules);
        assert_eq!(findings.len(), alone.len());
        let text = document(&facts, &[], &findings, false).terminal(100);
        assert!(!text.contains("n07") && text.contains("all 64 hosts"), "{text}");
        let alone = crate::check::text::document(&alone, false, None).terminal(100).lines().count();
        assert!(text.lines().count() <= alone + 4 + findings.len(), "{text}");
    }

    #[test]
    fn one_link_at_half_width_among_64_is_named_first() {
        let mut hosts = hosts(64);
        let gpu = |machine: &mut Machine| {
            let at = machine.pci.iter().position(|one| one.address == sample::GPU).unwrap();
            machine.pci[at].link_now.width = Some(8);
            machine.pci[at].link_most.width = Some(16);
        };
        for (_, machine) in &mut hosts {
            let at = machine.pci.iter().position(|one| one.address == sample::GPU).unwrap();
            machine.pci[at].link_now.width = Some(16);
            machine.pci[at].link_most.width = Some(16);
        }
        gpu(&mut hosts[6].1);
        let facts = facts(&hosts);
        let differences = differences(&facts);
        assert_eq!(differences.len(), 1, "{differences:#?}");
        let one = &differences[0];
        assert_eq!(one.aspect, "PCIe lanes");
        assert_eq!(one.values.len(), 2);
        assert_eq!((one.values[0].value.as_deref(), one.values[0].hosts.len()), (Some("x16"), 63));
        assert_eq!(one.values[1].hosts, ["n07"]);
        let rules = [crate::check::find("pcie-link").unwrap()];
        let findings = findings(&facts, &rules);
        let text = document(&facts, &differences, &findings, false).terminal(100);
        let first = text.find("63 hosts: x16; n07: x8").unwrap_or(usize::MAX);
        let fail = text.find("\nFAIL (1)").unwrap_or(usize::MAX);
        assert!(first < fail && fail < usize::MAX, "{text}");
        assert!(text[fail..].contains("n07: "), "{text}");
        assert!(text.lines().count() < 40, "{text}");
        assert!(any_failed(&findings));
    }

    #[test]
    fn cells_of_matrices_are_compared() {
        let mut hosts = hosts(2);
        for ((_, machine), cell) in hosts.iter_mut().zip(["PIX", "SYS"]) {
            let [row, column] = ["GPU0", "mlx5_0"].map(str::to_owned);
            machine.printed = vec![PrintedCell { row, column, cell: cell.to_owned() }];
        }
        let differences = differences_in_texts(&facts(&hosts));
        assert_eq!((differences.len(), &*differences[0].parts[0]), (1, "GPU0-mlx5_0"));
    }

    /// An option that one host's mount lacks is a difference; the options of a mount that a host
    /// does not have are none.
    #[test]
    fn options_are_compared_where_the_mount_is() {
        let mut hosts = hosts(4);
        for (number, (_, machine)) in (0..).zip(&mut hosts) {
            let mut mounted = sample::nfs("/n", "rdma", "ib0");
            mounted.mount.super_options = vec!["rsize=1048576".to_owned()];
            if number == 1 {
                mounted.mount.super_options.push("nconnect=8".to_owned());
            }
            if number != 2 {
                machine.mounts.push(mounted);
            }
        }
        let differences = differences(&facts(&hosts));
        let words: Vec<String> = differences
            .iter()
            .map(|one| format!("{} {} {}", one.aspect, one.parts.join(","), one.values.len()))
            .collect();
        assert_eq!(words, ["mount /n 2", "mount option /n nconnect 2"]);
        assert_eq!(differences[1].values[0].hosts, ["n01", "n04"]);
        assert_eq!(differences[1].values[1].value.as_deref(), Some("8"));
    }

    /// A text that does not list a drive, or gdscheck's report, shows no difference.
    #[test]
    fn of_texts_only_what_both_show_differs() {
        use gpuio_record::facts::{Fact, GdsCheck, GdsLine};
        let mut hosts = hosts(2);
        let check = |value: &str| GdsCheck {
            release: Fact::Known("1.11".to_owned()),
            drivers: vec![GdsLine {
                name: "NVMe".to_owned(),
                value: Fact::Known(value.to_owned()),
            }],
            ..GdsCheck::default()
        };
        hosts[0].1.gdscheck = Some(check("Supported"));
        hosts[1].1.block.clear();
        hosts[1].1.host.kernel.release = Some("5.15.0-1".to_owned());
        let words = |hosts: &[(String, Machine)]| -> Vec<String> {
            let all = differences_in_texts(&facts(hosts));
            all.iter().map(|one| format!("{} {}", one.aspect, one.parts.join(","))).collect()
        };
        assert_eq!(words(&hosts), ["kernel "]);
        hosts[1].1.gdscheck = Some(check("Unsupported"));
        assert_eq!(words(&hosts), ["kernel ", "gdscheck NVMe"]);
        // Nothing follows from a text that does not have it.
        let release = hosts[0].1.host.kernel.release.take();
        assert_eq!(words(&hosts), ["gdscheck NVMe"]);
        hosts[0].1.host.kernel.release = release;
        let mut gpu = hosts[1].1.gpus[0].clone();
        (gpu.index, gpu.name) = (Fact::Known(1), Fact::Known("H100".to_owned()));
        hosts[1].1.gpus.push(gpu);
        assert_eq!(words(&hosts)[0], "GPU GPU1");
        for (at, option) in ["nconnect=8", "soft"].into_iter().enumerate() {
            let mut mounted = sample::nfs("/n", "rdma", "ib0");
            mounted.mount.super_options = vec!["rsize=4096".to_owned(), option.to_owned()];
            hosts[at].1.mounts.push(mounted);
        }
        assert!(words(&hosts).contains(&"mount option /n nconnect".to_owned()));
    }

    /// Figures that differ everywhere must not fill the screen.
    #[test]
    fn a_finding_with_another_figure_on_each_host_has_few_lines() {
        let mut hosts = hosts(64);
        for (number, (_, machine)) in (1..).zip(&mut hosts) {
            machine.settings.governors = [("powersave".to_owned(), number)].into();
        }
        let facts = facts(&hosts);
        let rules = [crate::check::find("governor").unwrap()];
        let findings = findings(&facts, &rules);
        assert_eq!(findings.len(), 64);
        let text = document(&facts, &differences(&facts), &findings, false).terminal(100);
        assert!(text.lines().count() < 30, "{text}");
        assert!(text.contains("and 61 more"), "{text}");
    }
}
