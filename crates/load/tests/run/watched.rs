//! The devices beside a run.

use gpuio_record::WatchedGroup;

use crate::lab::{Lab, MS};

fn has(group: &WatchedGroup, probe: &str) -> bool {
    group.devices.iter().any(|device| device.probe == probe)
}

#[test]
fn each_group_has_its_series_over_its_own_clock() {
    let lab = Lab::new();
    let ran = lab.run(
        "[global]\nengine=null\nsize=1m\nbs=4k\nruntime=400ms\ndirectory=${DIR}\n\
         [a]\nfile_prefix=a\n[b]\nstonewall\nfile_prefix=b\n",
    );
    let watched = ran.watched.as_ref().unwrap();
    assert_eq!(watched.groups.iter().map(|group| group.group).collect::<Vec<_>>(), [0, 1]);
    let cpu_ns = watched.cpu_ns.unwrap();
    assert!(cpu_ns < 400 * MS, "it sleeps between samples: {cpu_ns}");
    let samples: usize = watched.groups.iter().map(|group| group.ends_ns.len() + 1).sum();
    assert!(watched.samples >= samples as u64);
    for (group, job) in watched.groups.iter().zip(&ran.jobs) {
        assert!(group.ends_ns.is_sorted_by(|a, b| a < b), "{:?}", group.ends_ns);
        let last = *group.ends_ns.last().unwrap();
        assert!(last >= job.last_done_ns && last < 60_000 * MS, "{last} {}", job.last_done_ns);
        assert!(has(group, "page_cache") && has(group, "cpu"));
        assert!(!has(group, "process") && !has(group, "gpu"), "nobody requested these");
        for figure in group.devices.iter().flat_map(|device| &device.figures) {
            assert_eq!(figure.values.len(), group.ends_ns.len(), "{}", figure.key);
        }
    }
}

#[test]
fn ceilings_are_not_watched() {
    let lab = Lab::new();
    let ran = lab
        .run("[a]\nengine=psync\nsize=1m\nbs=64k\nio_size=1m\nceilings=50ms\ndirectory=${DIR}\n");
    assert!(!ran.ceilings.is_empty());
    assert_eq!(ran.watched.unwrap().groups.len(), 1);
}

#[test]
fn what_is_watched_begins_with_the_first_job_that_counts() {
    let lab = Lab::new();
    let ran = lab.run(
        "[global]\nengine=null\nsize=1m\nbs=4k\nruntime=200ms\ndirectory=${DIR}\n\
         [a]\nstart_delay=500ms\nfile_prefix=a\n[b]\nstart_delay=200ms\nramp=200ms\n\
         file_prefix=b\n[c]\nstonewall\nstart_delay=300ms\nfile_prefix=c\n",
    );
    let [first, second] = &ran.watched.as_ref().unwrap().groups[..] else { panic!("{ran:?}") };
    // A reading of some milliseconds is over when I/Os begin; a busy machine reads late.
    assert!(first.began_ns >= 400 * MS, "{}", first.began_ns);
    assert!(second.began_ns >= 200 * MS, "{}", second.began_ns);
    for group in [first, second] {
        assert!(group.ends_ns[0] > group.began_ns, "{group:?}");
    }
}
