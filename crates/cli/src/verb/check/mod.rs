//! `gpuio check`: diagnoses storage-to-GPU I/O problems of a machine.

mod hosts;
pub(super) mod pair;
mod prove;
pub(super) mod results;

use std::collections::BTreeMap;
use std::process::ExitCode;

use gpuio_base::document::{Document, Format, Section};
use gpuio_guard::objects::environment;
use gpuio_host::Root;
use gpuio_machine::check::prove::Proof;
use gpuio_machine::check::{Finding, Pair, RULES, Rule, Severity, Verdict, json, text};
use gpuio_machine::flow::Figures;
use gpuio_record::facts::{Fact, Machine};

use crate::args::Check;
use crate::failure::Failure;
use crate::formats;
use crate::observed;
use crate::output::{self, Delivery};
use crate::ranks::{self, Role};
use crate::source::{self, Source};
use crate::terminal;
use crate::unused;
use crate::verb::why;

pub(crate) fn run(check: &Check) -> Result<ExitCode, Failure> {
    if let Some(name) = &check.explain {
        output::put(&text::explain(find("--explain", name)?).terminal(terminal::width()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let format = formats::saved(check.format.as_deref(), &check.save)?;
    let rules = rules(check)?;
    unused::check(check, format.name)?;
    let printed = hosts::Printed { format, all: check.all, save: &check.save };
    if let Some(dir) = &check.hosts {
        return hosts::run(dir, &rules, &printed);
    }
    let live = check.from.is_empty();
    if live && check.mount.is_none() {
        match ranks::join(None)? {
            Role::First(joined) | Role::Member(joined) => {
                return Ok(hosts::on_ranks(joined, own_machine, &rules, &printed));
            }
            Role::Alone => {}
            Role::Ended(code) => return Ok(code),
        }
    }
    let delivery = Delivery::open(&check.save)?;
    if live {
        let (text, failed) = of_one(check, &rules, format, (own_machine(), None))?;
        delivery.put(&text)?;
        return Ok(if failed { ExitCode::from(1) } else { ExitCode::SUCCESS });
    }
    let all = source::all(&check.from, check.machine.as_deref())?;
    source::one_document(&all, format.name != "json")?;
    let (mut text, mut failed) = (String::new(), false);
    for one in &all {
        text.push_str(&source::heading(one, format.name));
        let machine = one.captured.machine.clone();
        let (answer, fails) = of_one(check, &rules, format, (machine, Some(one)))?;
        text.push_str(&answer);
        failed |= fails;
    }
    if all.len() > 1 && check.only.is_empty() {
        text.push_str(&hosts::apart(&all, format));
    }
    delivery.put(&text)?;
    Ok(if failed { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// The answer on one machine, and whether a rule failed or figures contradict each other.
fn of_one(
    check: &Check,
    rules: &[&Rule],
    format: &Format,
    (mut machine, source): (Machine, Option<&Source>),
) -> Result<(String, bool), Failure> {
    let live = source.is_none();
    let held = source
        .map(|one| results::hold(one, &Figures::built_in(), |_| true, &one.captured.conflicts))
        .unwrap_or_default();
    let page = match &check.mount {
        None => Output {
            findings: gpuio_machine::check::check(&machine, rules),
            verdict: None,
            proof: None,
        },
        Some(path) => {
            let path = pair::resolve(path, live)?;
            if live {
                machine.cufile.library = pair::library();
            }
            let pair = pair::find_named(&machine, (&path, live), check.gpu.as_deref())?;
            of_pair(&pair, &path, check.prove, rules)?
        }
    };
    let Output { findings, verdict, proof } = &page;
    let contradict = held.warning().is_some();
    let text = if format.name == "json" {
        let coherent = gpuio_machine::check::coherent_links(&machine);
        let page = json::render(findings, &coherent, verdict.as_ref(), proof.as_ref());
        held.json(page)
    } else {
        let is_read = |name: &str, line| held.has_read(name, line);
        let notes = source.map(|one| source::text_notes(&one.captured, is_read));
        let notes = notes.unwrap_or_default();
        let read = source.filter(|one| one.captured.is_from_texts());
        let read = read.map(|one| one.captured.commands());
        let mut document = page.document(&notes, check.all, read.as_deref());
        // Rules know nothing of a machine that is not there.
        if held.is_alone() {
            document.sections.clear();
        }
        let rules = document.sections.len();
        source.into_iter().for_each(|one| observed::add(&mut document, &one.captured));
        let last = [held.not_understood.clone(), held.warning()];
        document.sections.extend(held.section);
        // Results in the texts stand below the faults, above the rules that they say less of.
        let shown = document.sections.split_off(rules);
        let faults = [Severity::Fail, Severity::Warn];
        let faults = faults.iter().filter(|one| findings.iter().any(|it| it.severity == **one));
        let at = (notes.len() + faults.count()).min(rules);
        document.sections.splice(at..at, shown);
        // The question of most who ask: the whole machine was checked, and there is one.
        let is_whole = check.mount.is_none() && check.only.is_empty() && check.skip.is_empty();
        let gds = is_whole.then(|| why::conclusion(&machine, live)).flatten();
        if let Some(gds) = gds.filter(|_| !document.sections.is_empty()) {
            let mut section = Section::default();
            section.paragraph(gds);
            document.sections.insert(0, section);
        }
        for words in last.into_iter().flatten() {
            document.begin("", "").paragraph(words);
        }
        formats::print(format, "check", &document)
    };
    let failed = |finding: &Finding| finding.severity == Severity::Fail;
    Ok((text, findings.iter().any(failed) || contradict))
}

pub(super) fn own_machine() -> Machine {
    let mut machine = gpuio_load::machine::read(&Root::live());
    machine.cufile = gpuio_host::cufile::read(&Root::live(), Fact::Known(variables()));
    machine
}

/// The environment variables that override cuFile's file.
fn variables() -> BTreeMap<String, String> {
    environment::beginning("CUFILE_")
}

struct Output {
    findings: Vec<Finding>,
    verdict: Option<Verdict>,
    proof: Option<Proof>,
}

impl Output {
    /// Findings first, so that the verdict is at the end of the screen.
    fn document(&self, notes: &[String], all: bool, read: Option<&[&str]>) -> Document {
        let mut page = text::document(&self.findings, all, read);
        let notes = notes.iter().map(|note| {
            let mut section = Section::default();
            section.paragraph(note.as_str());
            section
        });
        page.sections.splice(0..0, notes);
        page.sections.extend(self.verdict.iter().map(text::verdict));
        page.sections.extend(self.proof.iter().map(gpuio_machine::check::prove::section));
        page
    }
}

fn of_pair(pair: &Pair<'_>, path: &str, prove: bool, rules: &[&Rule]) -> Result<Output, Failure> {
    let verdict = gpuio_machine::check::verdict(pair, path);
    let narrow: Machine = gpuio_machine::check::narrow(pair);
    let mut findings = gpuio_machine::check::check(&narrow, rules);
    let proof = prove.then(|| prove::prove(&pair::directory(path), pair.gpu)).transpose()?;
    if let Some(proof) = &proof {
        findings.extend(gpuio_machine::check::prove::compare(&verdict, proof));
    }
    Ok(Output { findings, verdict: Some(verdict), proof })
}

/// The requested rules, in the order in which they run.
fn rules(check: &Check) -> Result<Vec<&'static Rule>, Failure> {
    let only = names("--only", &check.only)?;
    let skip = names("--skip", &check.skip)?;
    let wanted =
        |rule: &&Rule| (only.is_empty() || only.contains(&rule.name)) && !skip.contains(&rule.name);
    let rules: Vec<&Rule> = RULES.iter().filter(wanted).collect();
    if rules.is_empty() {
        return Err(Failure::Usage("--only and --skip select no rule".to_owned()));
    }
    Ok(rules)
}

fn names(flag: &str, given: &[String]) -> Result<Vec<&'static str>, Failure> {
    given.iter().map(|name| find(flag, name).map(|rule| rule.name)).collect()
}

fn find(flag: &str, name: &str) -> Result<&'static Rule, Failure> {
    gpuio_machine::check::find(name).ok_or_else(|| {
        let known: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
        Failure::Usage(format!("{flag} {name}: no such rule; rules are {}", known.join(", ")))
    })
}
