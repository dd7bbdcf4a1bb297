//! Counters of running processes, for Prometheus: of all (`stats --serve`), or of this run
//! (`bench --serve`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use gpuio_host::Root;
use gpuio_watch::page::format::openmetrics;
use gpuio_watch::page::read::{self, Listing, Owner};
use gpuio_watch::page::{LivePageRoot, Snapshot};

use crate::failure::Failure;
use crate::serve::{self, Bound};

/// The page of all processes that publish counters and run.
pub(crate) fn of_all() -> String {
    page(&read::list(&LivePageRoot::live(), &Root::live()))
}

fn of_this_process() -> String {
    page(&read::find(&LivePageRoot::live(), &Root::live(), std::process::id()))
}

fn page(listing: &Listing) -> String {
    let runs = || listing.found.iter().filter(|found| found.owner != Owner::Gone);
    let pages: Vec<&Snapshot> = runs().filter_map(|found| found.page.as_ref().ok()).collect();
    let wrong = runs().filter(|found| found.page.is_err()).count();
    openmetrics::text(&pages, listing.unread + wrong as u64)
}

/// A server for the time of a run. The run ends it.
pub(crate) struct Served {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    /// Serves the counters of this process at an address.
    pub(crate) fn begin(address: &str) -> Result<Served, Failure> {
        let bound = Bound::new(serve::address(address)?)?;
        message!("serving http://{}/metrics while the run lasts", bound.at);
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let run = move || {
            if let Err(failure) = bound.serve(of_this_process, &seen) {
                message!("note: {failure}; the run goes on");
            }
        };
        let thread = std::thread::Builder::new().name("gpuio-serve".to_owned()).spawn(run);
        let thread = thread.map_err(|error| Failure::Ran(format!("--serve {address}: {error}")))?;
        Ok(Served { stop, thread: Some(thread) })
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A panic of the server is no failure of the run.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
