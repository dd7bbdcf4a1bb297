//! Live counters for Prometheus: of a run by itself, and of all processes.

use crate::tool::{Serving, scratch, until};

/// The page once it has this.
fn page_with(served: &Serving, part: &str) -> String {
    let mut page = String::new();
    until(&format!("no {part}"), || {
        page = served.page();
        page.contains(part)
    });
    page
}

#[test]
fn a_run_and_all_processes_are_served() {
    let dir = scratch();
    let load = "bench --path staged --gpu software --rw randread --bs 4k --size 4m \
                --directory data --runtime 600 -q --serve 0";
    let run = Serving::start(dir.path(), load);
    let pid = run.pid();
    let way = format!("pid=\"{pid}\",program=\"gpuio\",gpu=\"0\"");
    let all = Serving::start(dir.path(), "stats --serve 0");
    for served in [&run, &all] {
        let page = page_with(served, &format!("gpuio_io_operations_total{{{way}"));
        assert!(page.starts_with("HTTP/1.1 200") && page.ends_with("# EOF\n"), "{page}");
        let of_way = page.lines().filter(|line| line.contains(&way)).collect::<Vec<_>>();
        for family in ["bytes_total", "errors_total", "latency_seconds_bucket", "in_flight"] {
            let has = of_way.iter().any(|line| line.starts_with(&format!("gpuio_io_{family}{{")));
            assert!(has, "{family}: {of_way:?}");
        }
        assert!(of_way.iter().all(|line| line.contains("path=\"staged\"")), "{of_way:?}");
    }
    let count = |page: &str| -> u64 {
        let line = page.lines().find(|line| {
            line.starts_with("gpuio_io_operations_total{") && line.contains("\"read\"")
        });
        line.unwrap().rsplit(' ').next().unwrap().parse().unwrap()
    };
    let first = count(&page_with(&run, "operations_total"));
    // A counter of something that runs grows.
    until("the counter stands still", || count(&run.page()) > first);
}
