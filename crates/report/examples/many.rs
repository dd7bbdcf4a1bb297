//! A page of many points, to see how it opens: `many RECORD.json COUNT > page.html`.
//!
//! The points are one record's, with its figures stretched by a factor that goes round; they are
//! made up, and the page's title says so.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a measuring program, not shipped")]

use gpuio_record::{ContentDigest, SWEEP_VERSION, Sweep, SweepAxis, SweepPoint};
use gpuio_report::format::json;
use gpuio_report::set::{Member, Set, find_set_format};

fn main() {
    let mut words = std::env::args().skip(1);
    let text = std::fs::read_to_string(words.next().unwrap()).unwrap();
    let count: usize = words.next().unwrap().parse().unwrap();
    let record = json::parse(&text).unwrap();
    let blocks = [4_096u64, 16_384, 65_536, 262_144, 1_048_576];
    let mut set = Set {
        title: format!("{count} made-up points"),
        embed_limit: Some(16 << 20),
        ..Set::default()
    };
    let mut points = Vec::new();
    for nth in 0..count {
        let mut record = record.clone();
        let block = blocks[nth % blocks.len()];
        let threads = 1 << (nth / blocks.len() % 6);
        for (plan, job) in record.plan.jobs.iter_mut().zip(&mut record.jobs) {
            plan.threads = threads;
            plan.blocks[0].min_bytes = block;
            plan.blocks[0].max_bytes = block;
            job.read.bytes_per_s *= 1.0 + (nth % 97) as f64 / 97.0;
        }
        let at = vec![block.to_string(), threads.to_string()];
        let keys = ["bs".to_owned(), "threads".to_owned()];
        set.members.push(Member {
            at: keys.into_iter().zip(at.clone()).collect(),
            ..Member::new(format!("run-{nth}"), record)
        });
        points.push(SweepPoint {
            at,
            records: vec![format!("run-{nth}.json")],
            ..Default::default()
        });
    }
    set.sweeps.push(Sweep {
        content_sha256: ContentDigest::NoDigest,
        gpuio_sweep: SWEEP_VERSION,
        name: set.title.clone(),
        tool: record.tool.clone(),
        command: Vec::new(),
        started_at: record.started_at.clone(),
        seed: 1,
        cache: None,
        level: None,
        answer: None,
        search: None,
        axes: ["bs", "threads"]
            .map(|key| SweepAxis { key: key.to_owned(), values: vec!["-".into(), "+".into()] })
            .to_vec(),
        points,
    });
    print!("{}", (find_set_format("html").unwrap().render)(&set));
}
