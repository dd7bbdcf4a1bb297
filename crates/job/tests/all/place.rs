//! Sections `[place HOSTS/NUMBER]`.

use gpuio_job::spec::{At, JobFileError, Spec, parse_job_file, parse_job_file_at};

const FILE: &str = "\
[global]
rw=read
[a]
threads=2
[b]
[place n1,n2/0]
directory=/mnt/x
gpu=0
[place n*/1]
gpu=1
directory=/mnt/y
[place n2/1 b]
directory=/mnt/z
";

fn at(host: &str, local_rank: u32) -> Result<Spec, Vec<JobFileError>> {
    parse_job_file_at("f", FILE, &|_| None, Some(At { host, local_rank }))
}

fn directories(host: &str, local_rank: u32) -> Vec<String> {
    let spec = at(host, local_rank).unwrap();
    spec.jobs.iter().map(|job| job.directory.clone().unwrap()).collect()
}

#[test]
fn a_place_applies_to_its_rank_and_a_later_one_replaces_it() {
    assert_eq!(directories("n1", 0), ["/mnt/x", "/mnt/x"]);
    assert_eq!(directories("n1", 1), ["/mnt/y", "/mnt/y"]);
    assert_eq!(directories("n2", 1), ["/mnt/y", "/mnt/z"]);
    assert_eq!(directories("n2.cluster.example", 0), ["/mnt/x", "/mnt/x"], "with its domain");
    assert_eq!(at("n1", 0).unwrap().jobs[0].threads, Some(2));
    assert_eq!(at("n1", 0).unwrap().jobs.len(), 2, "a place is no job");
}

#[test]
fn a_rank_without_a_place_is_an_error_that_names_it() {
    let errors = at("n3", 0).unwrap_err();
    let text = errors[0].to_string();
    assert!(text.starts_with("f:6:1: no [place] is for host n3, rank 0 there"), "{text}");
    let spec = parse_job_file("f", FILE, &|_| None).unwrap();
    assert_eq!(spec.jobs[0].directory, None, "without a place nothing is applied");
}

#[test]
fn mistakes_are_reported_with_their_position() {
    let of = |text: &str| {
        let place = At { host: "n1", local_rank: 0 };
        let errors = parse_job_file_at("f", text, &|_| None, Some(place)).unwrap_err();
        errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let text = of("[a]\n[place n1/0]\nbs=4k\n[place n1]\n[place /0]\n[place n1/0 c]\n");
    for line in [
        "f:3:1: 'bs' does not belong into [place]: all ranks run the same load",
        "f:4:1: write [place HOSTS/NUMBER]",
        "f:5:1: write [place HOSTS/NUMBER]",
        "f:6:1: no job is called 'c'",
    ] {
        assert!(text.contains(line), "{text}");
    }
    assert!(of("[a]\n[place n1/0]\ngpu=x\n").starts_with("f:3:5: "));
    assert!(of("[a]\n[place n1/0]\ndirectry=x\n").contains("directory"), "the nearest key");
    let named = parse_job_file("f", "[place]\nrw=read\n", &|_| None).unwrap();
    assert_eq!(named.jobs[0].name, "place", "a job of that name");
}
