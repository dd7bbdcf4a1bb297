//! Pages in directories of the tests' own.
#![expect(clippy::unwrap_used, reason = "helpers of tests: what fails there fails the test")]

mod counts;
mod hostile;
mod layout;
mod rights;

use std::path::PathBuf;

use gpuio_host::Root;
use gpuio_page::read::{self, Found};
use gpuio_page::{Key, Page, PageRoot};
use tempfile::TempDir;

/// A directory of the test's own, which is removed with it.
fn pages() -> (TempDir, PageRoot) {
    let dir = tempfile::tempdir().unwrap();
    let pages = PageRoot::at(dir.path());
    (dir, pages)
}

fn page(pages: &PageRoot, threads: u32) -> Page {
    Page::create(pages, threads, "test", 1_763_782_123_000_000_000).unwrap()
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
fn own(pages: &PageRoot) -> Found {
    let listing = read::find(pages, &Root::live(), std::process::id());
    assert_eq!(listing.found.len(), 1, "{listing:#?}");
    listing.found.into_iter().next().unwrap()
}

/// Where the pages of this user lie.
fn directory(pages: &PageRoot) -> PathBuf {
    pages.directory(rustix::process::geteuid().as_raw())
}
