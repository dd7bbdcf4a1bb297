//! Pages in directories of the tests' own.
#![expect(clippy::unwrap_used, reason = "helpers of tests: what fails there fails the test")]

mod counts;
mod hostile;
mod layout;
mod rights;

use std::path::PathBuf;

use gpuio_host::Root;
use gpuio_watch::page::read::{self, Found};
use gpuio_watch::page::{Key, LivePage, LivePageRoot};
use tempfile::TempDir;

/// A directory of the test's own, which is removed with it.
fn pages() -> (TempDir, LivePageRoot) {
    let dir = tempfile::tempdir().unwrap();
    let pages = LivePageRoot::at(dir.path());
    (dir, pages)
}

fn page(pages: &LivePageRoot, threads: u32) -> LivePage {
    LivePage::create(pages, threads, "test", 1_763_782_123_000_000_000).unwrap()
}

fn key(gpu: Option<u32>, path: &str) -> Key {
    Key {
        gpu,
        pci: gpu.map_or_else(String::new, |gpu| format!("0000:{gpu:02x}:00.0")),
        path: path.to_owned(),
        engine: "io_uring".to_owned(),
        registrations_unknown: false,
    }
}

/// This process's page, as a reader finds it.
#[track_caller]
fn own(pages: &LivePageRoot) -> Found {
    let listing = read::find(pages, &Root::live(), std::process::id());
    assert_eq!(listing.found.len(), 1, "{listing:#?}");
    listing.found.into_iter().next().unwrap()
}

/// Where the pages of this user lie.
fn directory(pages: &LivePageRoot) -> PathBuf {
    pages.directory(rustix::process::geteuid().as_raw())
}
