//! Every key of cuFile's configuration.

use gpuio_base::cufilejson::{EntryFault, FaultKind, faults};
use gpuio_record::facts::Machine;

use super::Rule;
use crate::check::configuration::{File, file, location};
use crate::check::finding::{Found, Severity};
use crate::check::machine::gpu_is_absent;

pub(super) const RULE: Rule = Rule {
    name: "cufile-json",
    question: "Is cufile.json valid: known keys, no repeats, right types and ranges, no \
               contradictions?",
    why: "cuFile passes over a key that it does not know and may silently replace \
          one that it does not accept: the intended setting is not in force.",
    fix: "Correct the key at the line and column that are named.",
    source: "NVIDIA, GPUDirect Storage Benchmarking and Configuration Guide, GPUDirect Storage \
             Parameters; NVIDIA, gds-diag, config-audit; ranges from cuFileGetParameterMinMaxValue",
    shown_by: "cat /etc/cufile.json",
    evaluate,
};

fn evaluate(machine: &Machine) -> Vec<Found> {
    let config = match file(machine) {
        File::Unknown(why) => return vec![Found::unknown(why)],
        File::Absent => {
            let observed =
                format!("there is no {}: the library's defaults hold", machine.cufile.path);
            return vec![gpu_is_absent(machine).unwrap_or(Found::not_applicable(observed))];
        }
        File::Broken(error) => {
            let observed = format!("cuFile's configuration is no JSON: {}", error.message);
            let fix = "correct the text there; comments are // and /* */, and # begins none";
            return vec![Found::fail(observed, fix).at([location(
                machine,
                error.line,
                error.column,
            )])];
        }
        File::Read(config) => config,
    };
    let all = faults(&config);
    if all.is_empty() {
        let count = crate::check::machine::count(config.entries.len(), "key");
        return vec![Found::pass(format!("{count}, all known and in range"))];
    }
    all.iter().map(|fault| found(machine, fault)).collect()
}

fn found(machine: &Machine, fault: &EntryFault) -> Found {
    let observed = format!("{} {}", fault.path, fault.message);
    let found = Found::warn(observed, fault.fix.clone());
    let severity = match fault.kind {
        FaultKind::Unknown | FaultKind::Outdated => Severity::Info,
        FaultKind::Misspelt
        | FaultKind::Repeated
        | FaultKind::Type
        | FaultKind::Range
        | FaultKind::Alignment
        | FaultKind::Combination => Severity::Warn,
    };
    Found { severity, ..found }.at([location(machine, fault.line, fault.column)])
}

#[cfg(test)]
mod tests {
    use gpuio_record::facts::Fact;

    use super::*;
    use crate::check::sample;

    #[test]
    fn each_problem_has_its_place() {
        let found = evaluate(&sample::configured(
            "{ \"properties\": {\n  \"alow_compat_mode\": true, \
             \"max_direct_io_size_kb\": 1026 },\n\"zebra\": 1 }",
        ));
        let locations: Vec<(Severity, &str)> =
            found.iter().map(|found| (found.severity, found.locations[0].as_str())).collect();
        assert_eq!(
            locations,
            [
                (Severity::Warn, "/etc/cufile.json:2:3"),
                (Severity::Warn, "/etc/cufile.json:2:29"),
                (Severity::Info, "/etc/cufile.json:3:1"),
            ]
        );
        assert!(found[0].fix.as_ref().unwrap().contains("properties.allow_compat_mode"));
    }

    #[test]
    fn good_absent_and_broken_files() {
        let good = evaluate(&sample::configured("{ \"logging\": { \"level\": \"ERROR\" } }"));
        assert_eq!(good, [Found::pass("1 key, all known and in range")]);
        let mut machine = sample::configured("{ \"logging\": }");
        let broken = evaluate(&machine);
        assert_eq!(broken[0].severity, Severity::Fail);
        assert!(broken[0].locations[0].starts_with("/etc/cufile.json:1:"), "{broken:?}");
        machine.cufile.text = Fact::Known(None);
        assert_eq!(evaluate(&machine)[0].severity, Severity::NotApplicable);
    }
}
