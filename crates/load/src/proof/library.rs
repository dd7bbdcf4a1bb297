//! The way of a path on which somebody else's library decides: what it says of itself, and whether
//! the kernel module agrees. Pure, as the verdict that it is a part of.

use gpuio_record::{Route, Source};

use super::Share;
use super::verdict::{Saw, Told};

/// The witnesses of each answer, by name.
#[derive(Debug, Default)]
struct Voices<'a> {
    host: Vec<&'a str>,
    past: Vec<&'a str>,
    both: Vec<&'a str>,
    straight: bool,
}

impl<'a> Voices<'a> {
    fn hear(saws: &[(&'a str, Saw)]) -> Voices<'a> {
        let mut voices = Voices::default();
        for (name, saw) in saws {
            match saw {
                Saw::Library(Told::Host) => voices.host.push(name),
                Saw::Library(Told::Both) => voices.both.push(name),
                Saw::Library(Told::Past { straight }) => {
                    voices.past.push(name);
                    voices.straight |= *straight;
                }
                Saw::NvidiaFs(Share::All) => voices.past.push(name),
                _ => {}
            }
        }
        voices
    }
}

/// The route, and what it rests on; `served` is what was found of the `source`.
pub(super) fn route(saws: &[(&str, Saw)], source: Source, served: &str) -> (Route, String) {
    let voices = Voices::hear(saws);
    let names = |of: &[&str]| of.join(" and ");
    let unknown = |why: String| (Route::Unknown, why);
    match (&voices.host[..], &voices.past[..], &voices.both[..]) {
        ([], [], []) => unknown("no witness tells which way the library took".to_owned()),
        (host, [], []) => {
            let who = names(host);
            (Route::BounceHost, format!("the library went through host memory by {who}; {served}"))
        }
        ([], [], both) => {
            let who = names(both);
            let text = format!(
                "the library went through host memory for some and past it for others by {who}; \
                 {served}"
            );
            (Route::Mixed, text)
        }
        ([], past, []) if voices.straight && source == Source::Storage => {
            let who = names(past);
            let text = format!(
                "the library went past host memory by {who}, and no other GPU is there to go \
                 through; {served}"
            );
            (Route::Direct, text)
        }
        ([], past, []) if voices.straight => {
            unknown(format!("the library went past host memory by {}, yet {served}", names(past)))
        }
        ([], past, []) => unknown(format!(
            "the library went past host memory by {}, but whether straight into this GPU's memory \
             or through another's no witness tells",
            names(past)
        )),
        (host, past, both) => {
            let said = [("through host memory", host), ("past it", past), ("partly", both)];
            let said = said.into_iter().filter(|(_, who)| !who.is_empty());
            let said: Vec<String> =
                said.map(|(what, who)| format!("{what} by {}", names(who))).collect();
            unknown(format!("witnesses disagree: {}", said.join(", ")))
        }
    }
}
