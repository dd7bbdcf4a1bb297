//! Texts of several machines, parted: by host names in prompts, in prefixes and blocks of `pdsh`
//! and `clush`, in `uname` and `iostat`, and by devices that contradict each other.
//!
//! Two names are one machine where they differ in case or in `-` and `_` alone (host names have
//! neither, RFC 1123), where a tool below one's prompt prints the other as its host, or where both
//! show a GPU of one UUID; unless their devices contradict each other.
//!
//! A text that names no host belongs to the only machine that there is, or to the one whose devices
//! it shows. Where neither decides it is left out, and that is reported: nothing is guessed.

mod conflict;
mod host;

use crate::{CaptureError, Captured};
use conflict::compare;
use host::sections;

/// A text by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The file's name.
    pub name: String,
    /// Its content.
    pub body: String,
}

/// One of the machines in texts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Found {
    /// The host's name, that of its directory, or `machine 2`.
    pub name: String,
    /// Its facts.
    pub captured: Captured,
    /// Its texts, with blank lines for what is of other machines.
    pub texts: Vec<Text>,
    /// Whether texts show this name.
    is_named: bool,
}

/// The machines in texts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Machines {
    /// The machines, in the order in which they appear.
    pub machines: Vec<Found>,
    /// Texts of which nothing was understood, with the reason.
    pub not_read: Vec<(String, CaptureError)>,
    /// Texts that may be of any of several machines.
    pub undecided: Vec<Text>,
}

/// More machines than anybody puts into one answer.
const MOST: usize = 256;

/// Reads texts of one machine or several.
pub fn read_all(texts: &[Text]) -> Machines {
    let mut all = Machines::default();
    // Those without a host come last, when all hosts are known.
    let mut nameless: Vec<Text> = Vec::new();
    for text in texts {
        let mut first_error = None;
        let mut understood = false;
        for (host, body) in sections(&text.body) {
            let section = Text { name: text.name.clone(), body };
            match crate::read(&section.name, &section.body, &mut Captured::default()) {
                Ok(()) => understood = true,
                Err(why) => {
                    first_error.get_or_insert(why);
                    continue;
                }
            }
            match host {
                Some(host) => all.named(&host).texts.push(section),
                None => nameless.push(section),
            }
        }
        if let Some(why) = first_error.filter(|_| !understood) {
            all.not_read.push((text.name.clone(), why));
        }
    }
    for one in &mut all.machines {
        nameless.extend(one.give_back());
        one.read();
    }
    let bodies = texts.iter().map(|text| text.body.as_str());
    all.unite(&bodies.flat_map(host::other_names).collect::<Vec<_>>());
    for text in nameless {
        for piece in pieces(text) {
            all.place(piece);
        }
    }
    all.call();
    for one in &mut all.machines {
        one.captured.finish();
    }
    all
}

impl Machines {
    fn named(&mut self, host: &str) -> &mut Found {
        let known = self.machines.iter().position(|one| one.name == host);
        let at = known.unwrap_or_else(|| {
            let name = host.to_owned();
            self.machines.push(Found { name, is_named: true, ..Found::default() });
            self.machines.len() - 1
        });
        &mut self.machines[at]
    }

    /// Makes one of machines that have several names. `names` are pairs that tools print.
    fn unite(&mut self, names: &[(String, String)]) {
        let mut at = 0;
        while at < self.machines.len() {
            let one = &self.machines[at];
            let same = |other: &Found| {
                let said = |a: &str, b: &str| names.iter().any(|(x, y)| x == a && y == b);
                let named = said(&one.name, &other.name) || said(&other.name, &one.name);
                let is = named
                    || folded(&one.name) == folded(&other.name)
                    || conflict::share_a_gpu(&one.captured, &other.captured);
                is && !compare(&one.captured, &other.captured).is_another()
            };
            let Some(other) = self.machines[..at].iter().position(same) else {
                at += 1;
                continue;
            };
            let one = self.machines.remove(at);
            let whole = &mut self.machines[other];
            whole.texts.extend(one.texts);
            whole.captured = Captured::default();
            whole.read();
            let (a, b) = (&whole.name, &one.name);
            whole.captured.remarks.push(format!("{a} and {b} are read as one machine's names."));
            at = 0;
        }
    }

    /// Gives a text without a host's name to the machine that it is of.
    fn place(&mut self, text: Text) {
        let mut own = Captured::default();
        if crate::read(&text.name, &text.body, &mut own).is_err() {
            return;
        }
        let compared: Vec<(usize, conflict::Compared)> = (0..self.machines.len())
            .map(|at| (at, compare(&self.machines[at].captured, &own)))
            .filter(|(_, compared)| !compared.is_another())
            .collect();
        let most = compared.iter().map(|(_, one)| one.same).max().unwrap_or(0);
        let best: Vec<usize> =
            compared.iter().filter(|(_, one)| one.same == most).map(|(at, _)| *at).collect();
        let folder = folder_of(&text.name);
        let same_folder = |at: &&usize| {
            self.machines[**at].texts.iter().any(|one| folder_of(&one.name) == folder)
        };
        let beside: Vec<usize> = best.iter().filter(same_folder).copied().collect();
        let at = match (best.as_slice(), beside.as_slice()) {
            ([], _) if self.machines.len() >= MOST => None,
            ([], _) => {
                self.machines.push(Found::default());
                Some(self.machines.len() - 1)
            }
            ([one], _) | (_, [one]) => Some(*one),
            // Later parts of a text are of the machine that the text was about.
            (several, _) => {
                let last = |at: &&usize| {
                    let machine = &self.machines[**at];
                    machine.texts.last().is_some_and(|one| one.name == text.name)
                };
                let mut last = several.iter().rev().filter(last);
                let one = last.next().copied();
                let is_only =
                    last.next().is_none() || !self.machines.iter().any(|one| one.is_named);
                one.filter(|_| is_only)
            }
        };
        match at {
            Some(at) => {
                let machine = &mut self.machines[at];
                machine.texts.push(text);
                if let Some(last) = machine.texts.last() {
                    let _ = crate::read(&last.name, &last.body, &mut machine.captured);
                }
            }
            None => self.undecided.push(text),
        }
    }

    /// Names the machines that texts do not name: by a directory that is of one alone.
    fn call(&mut self) {
        let several = self.machines.len() > 1;
        let folders: Vec<Option<String>> = self.machines.iter().map(Found::folder).collect();
        for at in 0..self.machines.len() {
            if self.machines[at].is_named {
                continue;
            }
            let own = folders[at].clone().filter(|own| {
                let same = folders.iter().filter(|one| one.as_ref() == Some(own));
                several && same.count() == 1 && !self.machines.iter().any(|one| one.name == *own)
            });
            self.machines[at].name = own.unwrap_or_else(|| format!("machine {}", at + 1));
        }
    }
}

impl Found {
    /// Takes out the outputs that show none of the GPUs of those above them: people show other
    /// machines' below a host's prompt too.
    fn give_back(&mut self) -> Vec<Text> {
        let mut others = Vec::new();
        let mut so_far = Captured::default();
        for text in &mut self.texts {
            for chunk in host::chunks(&text.body) {
                let mut own = Captured::default();
                if crate::read(&text.name, &chunk, &mut own).is_err() {
                    continue;
                }
                if !conflict::have_other_gpus(&so_far, &own) {
                    let _ = crate::read(&text.name, &chunk, &mut so_far);
                    continue;
                }
                let lines = text.body.lines().zip(chunk.lines().chain(std::iter::repeat("")));
                let rest: Vec<&str> =
                    lines.map(|(line, other)| if other.is_empty() { line } else { "" }).collect();
                text.body = rest.join("\n");
                others.push(Text { name: text.name.clone(), body: chunk });
            }
        }
        others
    }

    fn read(&mut self) {
        for text in &self.texts {
            // Each was read alone before.
            let _ = crate::read(&text.name, &text.body, &mut self.captured);
        }
    }

    /// The last part of the directory that all its texts are in.
    fn folder(&self) -> Option<String> {
        let first = folder_of(&self.texts.first()?.name)?;
        let all = self.texts.iter().all(|one| folder_of(&one.name) == Some(first));
        let name = first.rsplit('/').next().unwrap_or(first);
        (all && !name.is_empty()).then(|| name.to_owned())
    }
}

/// A host's name without what its spellings differ in.
fn folded(name: &str) -> String {
    name.replace('_', "-").to_ascii_lowercase()
}

fn folder_of(name: &str) -> Option<&str> {
    name.rsplit_once('/').map(|(folder, _)| folder)
}

/// A text that contradicts itself, parted at its titles, then where its tools' outputs begin; any
/// other one whole.
fn pieces(text: Text) -> Vec<Text> {
    let outputs = |text: &Text| contradicting(text, host::chunks(&text.body));
    let ways = host::chapters(&text.body).into_iter();
    let ways: Vec<Vec<Text>> = ways.filter_map(|way| contradicting(&text, way)).collect();
    // The best way has the fewest parts that each agree with themselves.
    let agree = |parts: &Vec<Text>| parts.iter().all(|part| outputs(part).is_none());
    let best = ways.into_iter().min_by_key(|parts| (!agree(parts), parts.len()));
    let parts = best.unwrap_or_else(|| vec![text]);
    parts.into_iter().flat_map(|part| outputs(&part).unwrap_or_else(|| vec![part])).collect()
}

/// The parts of a text that are understood, where they contradict each other.
fn contradicting(text: &Text, parts: Vec<String>) -> Option<Vec<Text>> {
    if parts.len() < 2 {
        return None;
    }
    let read = |body: &str| {
        let mut captured = Captured::default();
        crate::read(&text.name, body, &mut captured).ok().map(|()| captured)
    };
    let read: Vec<(String, Captured)> =
        parts.into_iter().filter_map(|part| read(&part).map(|captured| (part, captured))).collect();
    let contradicts = (1..read.len())
        .any(|at| read[..at].iter().any(|(_, one)| compare(one, &read[at].1).is_another()));
    let text = |(body, _)| Text { name: text.name.clone(), body };
    contradicts.then(|| read.into_iter().map(text).collect())
}
