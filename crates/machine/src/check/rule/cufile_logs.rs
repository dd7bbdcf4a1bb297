//! cuFile's log, statistics and checks.

use gpuio_base::cufilejson::Config;
use gpuio_record::facts::{Fact, Machine};

use super::Rule;
use crate::check::configuration::{File, as_switch, file, location, unused};
use crate::check::finding::Found;
use crate::check::gdscheck::interpret::in_force;

pub(super) const RULE: Rule = Rule {
    name: "cufile-logs",
    question: "Are cuFile's verbose log, its statistics and its checks off, and does the log \
               have a directory?",
    why: "At DEBUG and TRACE cuFile writes lines for every call, statistics and NVTX ranges cost \
          each I/O, and without a directory the log falls where each program happens to run.",
    fix: "In cufile.json: logging.level ERROR, logging.dir a directory that users may write, \
           profile.cufile_stats 0, profile.nvtx false.",
    source: "NVIDIA, GPUDirect Storage Installation and Troubleshooting Guide, Log Files for the \
             GDS Library and Enabling Tracing; NVIDIA, GPUDirect Storage Benchmarking and \
             Configuration Guide, gds_stats",
    shown_by: "cat /etc/cufile.json",
    evaluate,
};

/// The level of statistics, 0 to 3.
const STATISTICS: &str = "profile.cufile_stats";
/// Switches that cost each call.
const COSTLY: [&str; 2] = ["profile.nvtx", "miscellaneous.api_check_aggressive"];

fn evaluate(machine: &Machine) -> Vec<Found> {
    if let Some(found) = unused(machine) {
        return vec![found];
    }
    let config = match file(machine) {
        File::Read(config) => config,
        File::Absent => Config::default(),
        File::Unknown(why) => return from_gdscheck(machine, &why),
        File::Broken(_) => {
            let why = format!("{} can't be read as JSON", machine.cufile.path);
            return vec![Found::unknown(why)];
        }
    };
    let mut found: Vec<Found> = level(machine, &config).into_iter().collect();
    found.extend(directory(machine, &config));
    found.extend(counts(machine, &config));
    for path in COSTLY.into_iter().filter(|path| config.switch(path) == Some(true)) {
        found.push(switched_on(path).at(at(machine, &config, path)));
    }
    found.extend(printed_otherwise(machine, &config));
    if found.is_empty() {
        found.extend(not_known(machine, &config));
    }
    if found.is_empty() {
        found.push(Found::pass("log, statistics and checks cost nothing"));
    }
    found
}

/// The findings by the settings that gdscheck printed, where the file is not known. It prints
/// nothing of the log.
fn from_gdscheck(machine: &Machine, why: &str) -> Vec<Found> {
    let printed = |key: &str| in_force(machine, key);
    let mut found = Vec::new();
    let mut known = 0;
    if let Some((value, from)) = printed(STATISTICS) {
        known += 1;
        match value.parse() {
            Ok(0) => {}
            Ok(level) => found.push(counting(level).at([from])),
            Err(_) => known -= 1,
        }
    }
    for path in COSTLY {
        let Some((value, from)) = printed(path) else { continue };
        known += 1;
        match as_switch(value) {
            Some(true) => found.push(switched_on(path).at([from])),
            Some(false) => {}
            None => known -= 1,
        }
    }
    if known == 0 {
        return vec![Found::unknown(why)];
    }
    let rest = "the log's level and directory are not known, gdscheck prints neither";
    let add = "add cufile.json to --from";
    match found.last_mut() {
        Some(last) => {
            let fix = last.fix.take().map(|fix| format!("{fix}; ")).unwrap_or_default();
            last.fix = Some(format!("{fix}{rest}: {add}"));
        }
        None => found.push(Found::unknown(format!("{rest}: {why}")).fix(add)),
    }
    found
}

/// Cost that gdscheck printed as on where the file's own key is off: what was in force for its
/// process is not this file. A key that the file lacks says nothing of a difference.
fn printed_otherwise(machine: &Machine, config: &Config) -> Vec<Found> {
    let off = |path: &str| {
        let by_variable = path == STATISTICS && variable(machine, "CUFILE_STATS_LEVEL").is_some();
        !by_variable && (config.number(path) == Some(0) || config.switch(path) == Some(false))
    };
    let costs = |value: &str| match value.parse::<u64>() {
        Ok(level) => level != 0,
        Err(_) => as_switch(value) == Some(true),
    };
    let one = |path: &str| {
        let (_, printed) = in_force(machine, path).filter(|(value, _)| costs(value))?;
        let observed =
            format!("the file has {path} off, {printed}: another file or variable is in force");
        let fix = "find what is in force (`env | grep CUFILE`, CUFILE_ENV_PATH_JSON), and switch \
                   it off there";
        Some(Found::warn(observed, fix).at(at(machine, config, path)))
    };
    [STATISTICS].into_iter().chain(COSTLY).filter(|path| off(path)).filter_map(one).collect()
}

/// Open questions: keys without a value of the right type, the directory, and a process's own
/// variables.
fn not_known(machine: &Machine, config: &Config) -> Option<Found> {
    let odd = |path: &&str| config.get(path).is_some();
    let text = ["logging.level"].into_iter().filter(|path| config.text(path).is_none());
    let number = [STATISTICS].into_iter().filter(|path| config.number(path).is_none());
    let switch = COSTLY.into_iter().filter(|path| config.switch(path).is_none());
    let odd: Vec<&str> = text.chain(number).chain(switch).filter(odd).collect();
    if !odd.is_empty() {
        let observed =
            "these keys have values of the wrong type; which value cuFile uses instead is unknown";
        return Some(
            Found::unknown(observed).at(odd.iter().filter_map(|path| at(machine, config, path))),
        );
    }
    if let Fact::Unknown(why) = &machine.cufile.environment {
        let observed = format!(
            "environment variables, which have priority over the file, are not known: {why}"
        );
        return Some(Found::unknown(observed));
    }
    let named = config.text("logging.dir").is_some_and(|dir| !dir.is_empty());
    match &machine.cufile.log_directory_writable {
        Fact::Unknown(why) if named && variable(machine, "CUFILE_LOGFILE_PATH").is_none() => {
            Some(Found::unknown(format!("whether logging.dir can be written is not known: {why}")))
        }
        _ => None,
    }
}

fn at(machine: &Machine, config: &Config, path: &str) -> Option<String> {
    config.get(path).map(|entry| location(machine, entry.line, entry.column))
}

fn variable<'m>(machine: &'m Machine, name: &str) -> Option<&'m str> {
    machine.cufile.environment.known()?.get(name).map(String::as_str)
}

fn level(machine: &Machine, config: &Config) -> Option<Found> {
    let path = "logging.level";
    let (level, at) = match variable(machine, "CUFILE_LOGGING_LEVEL") {
        Some(level) => (level, Some(format!("CUFILE_LOGGING_LEVEL={level}"))),
        None => (config.text(path)?, at(machine, config, path)),
    };
    match level {
        "DEBUG" | "TRACE" => {
            let observed = format!("the log is at {level}: lines for every call");
            Some(Found::warn(observed, "set logging.level to ERROR").at(at))
        }
        "INFO" => Some(Found::info("the log is at INFO").at(at)),
        _ => None,
    }
}

fn directory(machine: &Machine, config: &Config) -> Option<Found> {
    if variable(machine, "CUFILE_LOGFILE_PATH").is_some() {
        return None;
    }
    let Some(dir) = config.text("logging.dir").filter(|dir| !dir.is_empty()) else {
        let observed =
            "no directory is named: cufile.log falls into the current one of each program";
        return Some(Found::info(observed).fix("name one in logging.dir"));
    };
    if machine.cufile.log_directory_writable != Fact::Known(false) {
        return None;
    }
    let observed =
        format!("{dir} is not there or can't be written by this user: nothing is logged");
    let fix = format!("`mkdir -p {dir}`, and let the users of cuFile write there");
    Some(Found::warn(observed, fix).at(at(machine, config, "logging.dir")))
}

fn counts(machine: &Machine, config: &Config) -> Option<Found> {
    let path = STATISTICS;
    let (level, at) = match variable(machine, "CUFILE_STATS_LEVEL") {
        Some(level) => (level.trim().parse().ok()?, Some(format!("CUFILE_STATS_LEVEL={level}"))),
        None => (config.number(path)?, at(machine, config, path)),
    };
    if level == 0 {
        return None;
    }
    Some(counting(level).at(at))
}

fn counting(level: u64) -> Found {
    let observed = format!("it counts its I/Os (cufile_stats {level})");
    Found::warn(observed, "set profile.cufile_stats to 0 when they are not read")
}

fn switched_on(path: &str) -> Found {
    Found::warn(format!("{path} is on"), "set it to false")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use gpuio_record::facts::{GdsCheck, GdsLine};

    use super::*;
    use crate::check::{Severity, sample};

    const QUIET: &str = r#"{ "logging": { "dir": "/var/log", "level": "ERROR" } }"#;

    #[test]
    fn what_costs_is_found() {
        let text = r#"{ "logging": { "dir": "/var/log", "level": "TRACE" },
            "profile": { "nvtx": true, "cufile_stats": 3 } }"#;
        let found = evaluate(&sample::configured(text));
        let locations: Vec<&str> =
            found[..3].iter().map(|found| found.locations[0].as_str()).collect();
        assert_eq!(
            locations,
            ["/etc/cufile.json:1:35", "/etc/cufile.json:2:40", "/etc/cufile.json:2:26"]
        );
        assert!(found.iter().take(3).all(|found| found.severity == Severity::Warn));
        let mut quiet = sample::configured(QUIET);
        assert_eq!(evaluate(&quiet)[0].severity, Severity::Unknown, "variables are not known");
        quiet.cufile.environment = Fact::Known(BTreeMap::new());
        assert_eq!(evaluate(&quiet)[0].severity, Severity::Unknown, "nor is the directory");
        quiet.cufile.log_directory_writable = Fact::Known(true);
        assert_eq!(evaluate(&quiet)[0].severity, Severity::Pass);
    }

    #[test]
    fn settings_that_gdscheck_printed_count_where_the_file_was_not_read() {
        let line = |name: &str, value: &str| GdsLine {
            name: name.to_owned(),
            value: Fact::Known(value.to_owned()),
        };
        let check = GdsCheck {
            settings: vec![line("profile.cufile_stats", "3"), line("profile.nvtx", "true")],
            ..GdsCheck::default()
        };
        let mut machine = Machine { gdscheck: Some(check), ..Machine::default() };
        let found = evaluate(&machine);
        let severities: Vec<Severity> = found.iter().map(|found| found.severity).collect();
        assert_eq!(severities, [Severity::Warn, Severity::Warn]);
        let fix = found[1].fix.as_deref().unwrap();
        assert!(fix.ends_with("gdscheck prints neither: add cufile.json to --from"), "{fix}");
        assert_eq!(found[0].locations, ["gdscheck printed `profile.cufile_stats : 3`"]);
        machine.cufile.text = Fact::Known(Some(QUIET.to_owned()));
        assert!(
            evaluate(&machine).iter().all(|found| found.severity != Severity::Warn),
            "the file itself goes before what a tool printed"
        );
    }

    #[test]
    fn a_file_that_is_off_where_gdscheck_printed_on_is_not_the_one_in_force() {
        let mut machine = sample::configured(r#"{ "profile": { "cufile_stats": 0 } }"#);
        let value = |value: &str| Fact::Known(value.to_owned());
        let line = GdsLine { name: "profile.cufile_stats".to_owned(), value: value("3") };
        machine.gdscheck = Some(GdsCheck { settings: vec![line], ..GdsCheck::default() });
        let differing = |machine: &Machine| {
            let found = evaluate(machine);
            found.into_iter().find(|found| found.observed.contains("another file or variable"))
        };
        let found = differing(&machine).unwrap();
        assert_eq!(found.severity, Severity::Warn);
        assert_eq!(found.locations, ["/etc/cufile.json:1:16"]);
        assert!(found.observed.contains("gdscheck printed `profile.cufile_stats : 3`"));
        machine.gdscheck.as_mut().unwrap().settings[0].value = value("0");
        assert_eq!(differing(&machine), None);
    }

    #[test]
    fn without_file_and_gpu_it_is_not_applicable() {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        machine.cufile.text = Fact::Known(None);
        assert_eq!(evaluate(&machine)[0].severity, Severity::Info);
        machine.gpus.clear();
        assert_eq!(evaluate(&machine)[0].severity, Severity::NotApplicable);
    }

    #[test]
    fn the_place_of_the_log_and_variables() {
        assert_eq!(evaluate(&sample::configured("{}"))[0].severity, Severity::Info);
        let mut machine = sample::configured(QUIET);
        machine.cufile.log_directory_writable = Fact::Known(false);
        assert!(evaluate(&machine)[0].observed.contains("nothing is logged"));
        machine.cufile.log_directory_writable = Fact::Known(true);
        let variables = [("CUFILE_STATS_LEVEL", "2"), ("CUFILE_LOGGING_LEVEL", "DEBUG")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        machine.cufile.environment = Fact::Known(BTreeMap::from(variables));
        let found = evaluate(&machine);
        assert_eq!(found[0].locations, ["CUFILE_LOGGING_LEVEL=DEBUG"]);
        assert_eq!(found[1].locations, ["CUFILE_STATS_LEVEL=2"]);
    }
}
