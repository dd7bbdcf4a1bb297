//! The route of a path on which a foreign library decides: what it reports of itself, and whether
//! the kernel module agrees. Pure, as the verdict that it is a part of.

use gpuio_record::{Route, Source};

use super::{LibraryRoute, Observed, Share};

/// The evidence sources of each answer, by name.
#[derive(Debug, Default)]
struct LibraryReports<'a> {
    host: Vec<&'a str>,
    past: Vec<&'a str>,
    both: Vec<&'a str>,
    straight: bool,
}

impl<'a> LibraryReports<'a> {
    fn gather(all_observed: &[(&'a str, Observed)]) -> LibraryReports<'a> {
        let mut reports = LibraryReports::default();
        for (name, observed) in all_observed {
            match observed {
                Observed::Library(LibraryRoute::Host) => reports.host.push(name),
                Observed::Library(LibraryRoute::Both) => reports.both.push(name),
                Observed::Library(LibraryRoute::Past { straight }) => {
                    reports.past.push(name);
                    reports.straight |= *straight;
                }
                Observed::NvidiaFs(Share::All) => reports.past.push(name),
                _ => {}
            }
        }
        reports
    }
}

/// The route, and what it rests on; `served` is what was found of the `source`.
pub(super) fn route(
    all_observed: &[(&str, Observed)],
    source: Source,
    served: &str,
) -> (Route, String) {
    let reports = LibraryReports::gather(all_observed);
    let names = |of: &[&str]| of.join(" and ");
    let unknown = |why: String| (Route::Unknown, why);
    match (&reports.host[..], &reports.past[..], &reports.both[..]) {
        ([], [], []) => {
            unknown("the evidence does not show which route the library took".to_owned())
        }
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
        ([], past, []) if reports.straight && source == Source::Storage => {
            let who = names(past);
            let text = format!(
                "the library went past host memory by {who}, and no other GPU is there to go \
                 through; {served}"
            );
            (Route::Direct, text)
        }
        ([], past, []) if reports.straight => {
            unknown(format!("the library went past host memory by {}, yet {served}", names(past)))
        }
        ([], past, []) => unknown(format!(
            "the library went past host memory by {}, but whether straight into this GPU's memory \
             or through another GPU is not known",
            names(past)
        )),
        (host, past, both) => {
            let kinds = [("through host memory", host), ("past it", past), ("partly", both)];
            let kinds = kinds.into_iter().filter(|(_, who)| !who.is_empty());
            let kinds: Vec<String> =
                kinds.map(|(what, who)| format!("{what} by {}", names(who))).collect();
            unknown(format!("evidence disagrees: {}", kinds.join(", ")))
        }
    }
}
