//! Compares the result of real I/O with a verdict.
//!
//! The I/O itself is done elsewhere. Functions here are pure.

use gpuio_base::document::{Layout, List, Section};
use gpuio_base::units::human_rate;
use gpuio_record::{Route, Verdict as PathVerdict};
use serde::Serialize;

use crate::check::verdict::{Answer, Verdict, answer};
use crate::check::{Finding, Severity};

/// The tries in the directory.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Proof {
    /// O_DIRECT, tried on a scratch file.
    pub direct: Tried,
    /// A short load over each path, in the order in which they ran.
    pub runs: Vec<Run>,
}

/// Something that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tried {
    /// Whether it worked; unknown where it could not be tried.
    pub works: Answer,
    pub words: String,
}

/// A short load over one path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Run {
    /// The path: `host`, `staged`, `gather`, `gds`.
    pub path: &'static str,
    pub outcome: Outcome,
}

/// The outcome of a load.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was not tried, and why.
    NotTried(String),
    /// It failed, in its own words.
    Failed(String),
    Ran(Measured),
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    /// Bytes read per second.
    pub bytes_per_s: f64,
    /// Whether every byte was checked, and right.
    pub verified: bool,
    /// The reason why the bytes are not verified: an error in them, or no check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unverified: Option<String>,
    /// The data path that was used, by the evidence.
    pub data_path: PathVerdict,
    pub sentence: String,
}

impl Measured {
    /// The result of the verification.
    fn words(&self) -> &str {
        match (&self.unverified, self.verified) {
            (Some(words), _) => words,
            (None, true) => "all bytes correct",
            (None, false) => "no byte was checked",
        }
    }
}

const WHY: &str = "The prediction from facts and the result of a real I/O differ: one of the facts \
                   is misread, or something that was not checked prevents it.";
const SOURCE: &str = "gpuio, docs/check.md, Proven; docs/proof.md";
const DIRECT_MODES: [&str; 3] = ["nvidia-fs", "p2pdma", "rdma"];

/// A failure for each load that did not behave as the verdict predicts.
pub fn compare(verdict: &Verdict, proof: &Proof) -> Vec<Finding> {
    let answer = |name: &str| {
        let mode = verdict.modes.iter().find(|mode| mode.mode == name);
        mode.map_or(Answer::Unknown, |mode| mode.works)
    };
    let mut findings: Vec<Finding> =
        proof.runs.iter().filter_map(|run| differs(run, &answer)).collect();
    let direct = DIRECT_MODES.iter().any(|mode| answer(mode) == Answer::Yes);
    if direct && proof.direct.works == Answer::No {
        let observed = format!("a direct mode was predicted, and {}", proof.direct.words);
        findings.push(finding("direct-io", observed, "look at the file system's options"));
    }
    findings
}

fn differs(run: &Run, answer: &dyn Fn(&str) -> Answer) -> Option<Finding> {
    let direct: Vec<&str> =
        DIRECT_MODES.into_iter().filter(|mode| answer(mode) == Answer::Yes).collect();
    let own = |path: &str| if path == "host" { "host" } else { "gpuio" };
    let predicted = match run.path {
        "gds" => direct.first().copied().or(Some("compat")),
        path => Some(own(path)),
    };
    let predicted = predicted.filter(|mode| answer(mode) == Answer::Yes);
    let (observed, fix) = match &run.outcome {
        Outcome::NotTried(_) => return None,
        Outcome::Failed(why) => {
            let mode = predicted?;
            (format!("{mode} was predicted to work, and failed: {why}"), "fix what the error names")
        }
        Outcome::Ran(measured) if !measured.verified => {
            let observed = format!("verification: {}", measured.words());
            (observed, "run `gpuio bench --verify` there, and look at its first mismatches")
        }
        Outcome::Ran(measured) => (otherwise(run.path, measured, answer, &direct)?, EVIDENCE),
    };
    Some(finding(run.path, observed, fix))
}

const EVIDENCE: &str = "run `gpuio bench --evidence` there: it shows the data path that was used";

/// How the data path of a load that ran differs from the one that the verdict predicts.
fn otherwise(
    path: &str,
    measured: &Measured,
    answer: &dyn Fn(&str) -> Answer,
    direct: &[&str],
) -> Option<String> {
    let sentence = &measured.sentence;
    match (path, measured.data_path.route) {
        (_, Route::Unknown) => None,
        ("host", Route::Direct | Route::HostMemory) => None,
        ("staged" | "gather", Route::BounceHost) => match answer("gpuio") {
            Answer::No => Some(format!("gpuio was predicted not to work, and it does: {sentence}")),
            _ => None,
        },
        ("gds", Route::Direct) => {
            let all_no = DIRECT_MODES.iter().all(|mode| answer(mode) == Answer::No);
            all_no.then(|| format!("no direct mode was predicted, and it is: {sentence}"))
        }
        ("gds", _) => match (direct.first(), answer("compat")) {
            (Some(mode), _) => Some(format!("{mode} was predicted, and it is not: {sentence}")),
            (None, Answer::No) => {
                Some(format!("compat was predicted not to work, and it does: {sentence}"))
            }
            (None, _) => None,
        },
        _ => Some(format!("the data path differs from the requested one: {sentence}")),
    }
}

fn finding(location: &str, observed: String, fix: &str) -> Finding {
    Finding {
        rule: "prove",
        severity: Severity::Fail,
        observed,
        locations: vec![location.to_owned()],
        why: WHY,
        fix: Some(fix.to_owned()),
        source: SOURCE,
    }
}

/// The tries and their results.
pub fn section(proof: &Proof) -> Section {
    let mut section = Section::new("proof", "PROVEN by real I/O");
    let direct = answer("O_DIRECT", proof.direct.works.word(), &proof.direct.words);
    let run = |run: &Run| match &run.outcome {
        Outcome::NotTried(why) => answer(run.path, "not run", why),
        Outcome::Failed(why) => answer(run.path, "no", why),
        Outcome::Ran(measured) => {
            let (rate, bytes) = (human_rate(measured.bytes_per_s), measured.words());
            answer(run.path, "yes", &format!("{rate}, {bytes}; {}", measured.sentence))
        }
    };
    let items = [direct].into_iter().chain(proof.runs.iter().map(run));
    section.list(List::new(Layout::columns(0, 1), items));
    section
}

#[cfg(test)]
mod tests {
    use gpuio_record::Source;

    use super::*;
    use crate::check::ModeVerdict;

    fn text(proof: &Proof) -> String {
        gpuio_base::document::Document::default().push(section(proof)).terminal(80)
    }

    type Answers = &'static [(&'static str, Answer)];

    fn verdict(answers: &[(&'static str, Answer)]) -> Verdict {
        let mode = |(mode, works): &(&'static str, Answer)| ModeVerdict {
            mode,
            is: "",
            works: *works,
            needs: Vec::new(),
            source: "",
        };
        Verdict {
            path: "/d".to_owned(),
            mount_point: "/d".to_owned(),
            fs_type: "xfs".to_owned(),
            mount_options: String::new(),
            storage: Vec::new(),
            gpu: "GPU0".to_owned(),
            coherent: None,
            modes: answers.iter().map(mode).collect(),
        }
    }

    fn ran(route: Route, verified: bool) -> Outcome {
        let data_path = PathVerdict { words: "w".to_owned(), route, source: Source::Storage };
        Outcome::Ran(Measured {
            bytes_per_s: 1e9,
            verified,
            unverified: (!verified).then(|| "2 BAD BLOCKS".to_owned()),
            data_path,
            sentence: "so it was.".to_owned(),
        })
    }

    fn of(answers: &[(&'static str, Answer)], path: &'static str, outcome: Outcome) -> Vec<String> {
        let direct = Tried { works: Answer::Yes, words: String::new() };
        let proof = Proof { direct, runs: vec![Run { path, outcome }] };
        compare(&verdict(answers), &proof).into_iter().map(|finding| finding.observed).collect()
    }

    #[test]
    fn what_was_predicted_and_happened_is_no_finding() {
        use Answer::{No, Unknown, Yes};
        let nothing: Vec<String> = Vec::new();
        let cases: [(Answers, &str, Outcome); 7] = [
            (&[("host", Yes)], "host", ran(Route::Direct, true)),
            (&[("host", Yes)], "host", ran(Route::HostMemory, true)),
            (&[("gpuio", Yes)], "staged", ran(Route::BounceHost, true)),
            (&[("nvidia-fs", Yes)], "gds", ran(Route::Direct, true)),
            (&[("nvidia-fs", Unknown)], "gds", ran(Route::BounceHost, true)),
            (&[("compat", No)], "gds", Outcome::Failed("5030".to_owned())),
            (&[("gpuio", No)], "gather", Outcome::NotTried("no GPU".to_owned())),
        ];
        for (answers, path, outcome) in cases {
            assert_eq!(of(answers, path, outcome.clone()), nothing, "{path} {outcome:?}");
        }
    }

    #[test]
    fn each_difference_is_a_failure() {
        use Answer::{No, Yes};
        let none: Answers = &[("nvidia-fs", No), ("p2pdma", No), ("rdma", No)];
        let cases: [(Answers, &str, Outcome, &str); 8] = [
            (&[("host", Yes)], "host", ran(Route::Direct, false), "2 BAD BLOCKS"),
            (&[("gpuio", Yes)], "staged", Outcome::Failed("no".to_owned()), "failed: no"),
            (&[("gpuio", No)], "staged", ran(Route::BounceHost, true), "and it does"),
            (&[("gpuio", Yes)], "gather", ran(Route::Mixed, true), "differs from the requested"),
            (&[("nvidia-fs", Yes)], "gds", ran(Route::BounceHost, true), "and it is not"),
            (none, "gds", ran(Route::Direct, true), "no direct mode was predicted"),
            (&[("compat", No)], "gds", ran(Route::BounceHost, true), "compat was predicted not"),
            (
                &[("compat", Yes)],
                "gds",
                Outcome::Failed("5027".to_owned()),
                "compat was predicted to",
            ),
        ];
        for (answers, path, outcome, words) in cases {
            let found = of(answers, path, outcome.clone());
            assert!(found.len() == 1 && found[0].contains(words), "{path} {outcome:?}: {found:?}");
        }
    }

    #[test]
    fn a_direct_mode_without_o_direct() {
        let direct = Tried { works: Answer::No, words: "open failed with EINVAL".to_owned() };
        let proof = Proof { direct, runs: Vec::new() };
        let found = compare(&verdict(&[("nvidia-fs", Answer::Yes)]), &proof);
        assert_eq!(found[0].observed, "a direct mode was predicted, and open failed with EINVAL");
        assert!(text(&proof).contains("O_DIRECT   no       open failed with EINVAL"));
    }
}
