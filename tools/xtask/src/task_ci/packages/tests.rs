use super::*;

#[test]
fn every_row_is_whole_and_named_once() {
    let mut names = Vec::new();
    for row in PACKAGES {
        assert!(!row.what.is_empty() && !row.tests.is_empty());
        match row.from {
            Source::Debian(package) => names.push(package),
            Source::Pip(requirement) => {
                assert!(requirement.contains("=="), "{requirement} is not pinned");
                assert!(matches!(row.sign, Sign::Module(_)), "{requirement}");
                names.push(requirement);
            }
        }
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

/// A person who reads only CONTRIBUTING.md can install by hand what the step would.
#[test]
fn contributing_names_every_package() {
    let text = include_str!("../../../../../CONTRIBUTING.md");
    for row in PACKAGES {
        let name = match row.from {
            Source::Debian(package) => package,
            Source::Pip(requirement) => requirement.split("==").next().unwrap(),
        };
        assert!(text.contains(&format!("`{name}`")), "{name} is not in CONTRIBUTING.md");
    }
}

#[test]
fn what_is_missing_is_named_with_its_reason_and_the_tests_that_skip() {
    let row = PACKAGES.iter().find(|row| row.what == "iostat").unwrap();
    let line = report(row, "sysstat", "\nE: no network\n\nE: really\n");
    assert_eq!(
        line,
        "MISSING: iostat (package sysstat): E: no network; E: really. Tests that skip: gpuio, \
         other_tools: `top` against iostat"
    );
}

#[test]
fn a_program_is_seen_only_where_it_is() {
    assert!(there(&["no-such-program-anywhere", "sh"]));
    assert!(!there(&["no-such-program-anywhere"]));
    assert!(!runs(Path::new("/no/such/python")));
}

#[test]
fn a_command_that_fails_prints_its_last_words() {
    let script = "echo first >&2; echo second >&2; echo third >&2; exit 3";
    let error = quietly(Command::new("sh").args(["-c", script])).unwrap_err().to_string();
    assert!(error.contains("second; third") && !error.contains(": first"), "{error}");
    let error = quietly(Command::new("timeout").args(["0.05", "sleep", "9"])).unwrap_err();
    assert!(error.to_string().contains("too long"), "{error}");
}

/// Without leave nothing is installed: no virtual environment appears.
#[test]
fn no_install_installs_nothing() {
    let target = Path::new("/no/such/directory");
    let (_, python) = prepare(target, false);
    assert_eq!(python, None);
    assert!(!target.exists());
}
