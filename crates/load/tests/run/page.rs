//! The page that other processes see of a run agrees with its record.

use gpuio_host::Root;
use gpuio_watch::page::{LivePage, LivePageRoot, read};

use crate::lab::Lab;

#[test]
fn the_page_counts_what_the_record_counts() {
    let mut lab = Lab::with_gpu();
    let place = LivePageRoot::at(lab.file(""));
    lab.page = Some(LivePage::create(&place, 4, "test", 0).unwrap());
    let lines = "path=staged\nrw=randrw\nbs=4k\nsize=1m\nthreads=2\nloops=3\ninject=eio=1%,seed=3";
    let result = lab.job(lines);
    let listing = read::find(&place, &Root::live(), std::process::id());
    let page = listing.found[0].page.clone().unwrap();
    let total = page.total();
    assert!(result.failed > 0, "faults were injected");
    for (seen, recorded) in [(&total.read, &result.read), (&total.write, &result.write)] {
        assert_eq!((seen.ios(), seen.bytes), (recorded.ios, recorded.bytes));
        let mean = recorded.latency.as_ref().unwrap().total.mean_ns;
        assert!((seen.mean_ns().unwrap() - mean).abs() < 1.0, "{mean}");
    }
    assert_eq!(total.read.failed + total.write.failed, result.failed);
    assert_eq!((page.paths.len(), total.files, total.threads, total.slots), (1, 2, 0, 0));
    let path = &page.paths[0];
    assert_eq!((path.gpu, path.pci.as_str(), path.path.as_str()), (Some(0), "software", "staged"));
}
