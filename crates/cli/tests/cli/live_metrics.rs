//! Live counters for Prometheus: of a run by itself, and of all processes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use crate::tool::{command, scratch, words};

/// A program that serves, until it is dropped.
struct Served {
    child: Child,
    at: String,
}

impl Served {
    fn start(dir: &std::path::Path, line: &str) -> Served {
        let mut command = command(dir);
        let command = command.args(words(line)).stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let line =
            lines.find_map(|line| line.unwrap().strip_prefix("serving http://").map(str::to_owned));
        let at = line.unwrap().split('/').next().unwrap().to_owned();
        // Further output must not end it.
        std::thread::spawn(move || lines.for_each(drop));
        Served { child, at }
    }

    fn page(&self) -> String {
        let mut client = TcpStream::connect(&self.at).unwrap();
        client.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut page = String::new();
        client.read_to_string(&mut page).unwrap();
        page
    }

    /// The page once it has this.
    fn page_with(&self, part: &str) -> String {
        for _ in 0..600 {
            let page = self.page();
            if page.contains(part) {
                return page;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("no {part} in {}", self.page());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_run_and_all_processes_are_served() {
    let dir = scratch();
    let load = "bench --path staged --gpu software --rw randread --bs 4k --size 4m \
                --directory data --runtime 600 -q --serve 0";
    let run = Served::start(dir.path(), load);
    let pid = run.child.id();
    let way = format!("pid=\"{pid}\",program=\"gpuio\",gpu=\"0\"");
    let all = Served::start(dir.path(), "stats --serve 0");
    for served in [&run, &all] {
        let page = served.page_with(&format!("gpuio_io_operations_total{{{way}"));
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
    let first = count(&run.page_with("operations_total"));
    // A counter of something that runs grows.
    let grows = (0..600).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        count(&run.page()) > first
    });
    assert!(grows);
}
