//! A user's regular file that replaces the list of gpuio's files, `.gpuio-files.json`, while two
//! runs read, replace and remove that list: exchanged for it, and put over it and taken away.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use super::swap::{RUN, exchange_while, race};
use super::{Lab, Outcome, Victim};

/// How the user's file begins: no list, and the half of one.
const BEGINNINGS: [&str; 2] = ["notes of mine", "{\n  \"format\": 2,\n  \"files\": ["];
/// The loads: files that stay, so that the list is replaced; and files that go at the end, the list
/// with them.
const LOADS: [&str; 2] = ["--keep --directory data", "--directory data --threads 2"];

pub(super) fn run(lab: &mut Lab) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    while lab.has_time() {
        let dir = lab.dir.join(format!("d{}", outcome.tries));
        fs::create_dir(&dir)?;
        let load = lab.one(&LOADS);
        // The file to exchange must be there: a run before makes it.
        lab.end(&dir, &format!("{RUN} --rw write {}", LOADS[0]))?;
        let mut bytes = lab.one(&BEGINNINGS).as_bytes().to_vec();
        bytes.extend(lab.bytes(1 << 12));
        let victim = Victim::put(&dir.join("data/own"), bytes)?;
        let list = dir.join("data/.gpuio-files.json");
        let method = lab.one(&["exchanged", "put and taken away"]);
        let rw = lab.one(&["write", "randwrite", "readwrite"]);
        let mut runs = Vec::new();
        for seed in 0..2 {
            let line = format!("{RUN} --rw {rw} --seed {seed} {load}");
            runs.push(lab.start(&dir, &line)?);
        }
        let work = || runs.iter_mut().try_for_each(|run| run.wait().map(drop));
        let swaps = AtomicU64::new(0);
        if method == "exchanged" {
            exchange_while(&list, &victim.path, &swaps, work)?;
        } else {
            // The name that is taken away may be the list's, while gpuio looks at the file that it
            // took for it and puts that back. Then the user's file has the list's name, and to put
            // the list over it would be the user's own loss: it is taken away first.
            let is_own = || fs::metadata(&victim.path).is_ok_and(|found| victim.is(&found));
            let step = || {
                let put = is_own() && fs::rename(&victim.path, &list).is_ok();
                swaps.fetch_add(u64::from(put), Ordering::Relaxed);
                if put || !is_own() {
                    let _ = fs::rename(&list, &victim.path);
                }
                let pause = swaps.load(Ordering::Relaxed) % 89;
                std::thread::sleep(std::time::Duration::from_micros(pause));
            };
            race(step, work)?;
        }
        outcome.acts += swaps.into_inner();
        outcome.count(victim.lost()?, || format!("{method} under --rw {rw} {load}"));
        fs::remove_dir_all(&dir)?;
    }
    Ok(outcome)
}
