//! Texts from outside that a terminal would obey, reorder or hide: none reaches an output.

use serde_json::Value;

use gpuio_testkit::repository;

use crate::tool::{Ran, command, file, finish, gpuio, scratch, words};

/// A terminal's title, colours and a cleared screen, C1, NUL, DEL, an override, zero width, a line
/// separator, and a line of its own.
const HOSTILE: &str = "x\x1b]0;t\x07\x1b[31m\u{9b}2J\0\x7f\u{202e}y\u{2066}\u{200b}\u{2028}\r\n\
                       error: forged|<img src=x onerror=alert(1)>\n=1+1";
/// The same without what would end a line of a text that a tool printed.
const IN_A_LINE: &str = "x\x1b]0;t\x07\x1b[31m\u{9b}2J\u{202e}y\u{2066}\u{200b}|<img>";

/// Nothing that a terminal obeys or nobody sees, but line feeds; and nothing in disguise.
#[track_caller]
fn is_clean(what: &str, ran: &Ran) {
    for text in [&ran.out, &ran.err] {
        let odd = |c: char| {
            (c.is_control() && c != '\n')
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                    | '\u{2060}'..='\u{206f}' | '\u{feff}')
        };
        let found = text.find(odd).map(|at| &text[at.saturating_sub(60)..]);
        assert_eq!(found, None, "{what}");
        // A page's plan has the lines that the record says, inside its own box.
        let forged = text.lines().any(|line| line.starts_with("error: forged"));
        assert!(what == "html" || !forged, "{what}: {text}");
        assert!(!text.contains("panicked"), "{what}: {text}");
    }
}

/// Every text of the record that is free is hostile.
fn hostile_record() -> Value {
    let text = std::fs::read_to_string(repository(
        "crates/report/tests/report/compare/fixtures/host.json",
    ))
    .unwrap();
    let mut record: Value = serde_json::from_str(&text).unwrap();
    let mut places = Vec::new();
    leaves(&record, String::new(), &mut places);
    let mut changed = 0;
    for place in places {
        let leaf = record.pointer_mut(&place).unwrap();
        let before = leaf.take();
        *leaf = format!("{}{HOSTILE}", before.as_str().unwrap()).into();
        // A word of a list of words is no free text.
        if gpuio_report::format::json::parse(&record.to_string()).is_ok() {
            changed += 1;
        } else {
            *record.pointer_mut(&place).unwrap() = before;
        }
    }
    assert!(changed > 20, "{changed}");
    record
}

fn leaves(value: &Value, place: String, out: &mut Vec<String>) {
    match value {
        Value::String(_) => out.push(place),
        Value::Array(all) => {
            // The first of each list stands for all.
            all.iter().take(1).for_each(|one| leaves(one, format!("{place}/0"), out));
        }
        Value::Object(all) => {
            all.iter().for_each(|(key, one)| leaves(one, format!("{place}/{key}"), out));
        }
        _ => {}
    }
}

#[test]
fn records_in_every_format() {
    let dir = scratch();
    let record = hostile_record();
    file(dir.path(), "r.json", &record.to_string());
    for format in ["text", "text --evidence", "json", "csv", "gdsio", "plan"] {
        let ran = gpuio(dir.path(), &format!("show r.json --format {format}")).exits(0);
        is_clean(format, &ran);
        if format == "json" {
            let name = "/plan/jobs/0/name";
            assert_eq!(ran.json().pointer(name), record.pointer(name), "JSON has every character");
        }
        if format == "csv" {
            assert_eq!(ran.out.lines().count(), 2, "{}", ran.out);
        }
    }
    for format in ["html", "markdown", "csv", "fio-json", "openmetrics"] {
        let ran = gpuio(dir.path(), &format!("report r.json --format {format} -o -")).exits(0);
        is_clean(format, &ran);
        // Between backquotes nothing is HTML.
        let markup = ran.out.split('`').step_by(2).any(|outside| outside.contains("<img"));
        assert!(format != "markdown" || !markup, "{}", ran.out);
        gpuio(dir.path(), &format!("report r.json --format {format} -o out-{format}")).exits(0);
        let saved = std::fs::read_to_string(dir.path().join(format!("out-{format}"))).unwrap();
        assert!(!saved.contains(['\x1b', '\u{9b}', '\u{202e}']), "{format}");
    }
    // Another run, for one that is given twice counts once.
    let text = std::fs::read_to_string(dir.path().join("r.json")).unwrap();
    let mut other: Value = serde_json::from_str(&text).unwrap();
    other["started_at"] = "2026-01-01T00:00:00Z".into();
    file(dir.path(), "s.json", &other.to_string());
    for format in ["text", "json", "markdown"] {
        let line = format!("compare r.json s.json --despite all --format {format}");
        is_clean(format, &gpuio(dir.path(), &line).exits(1));
    }
}

/// A parser's words quote what stands in the text.
#[test]
fn records_that_are_none() {
    let dir = scratch();
    let text = format!("{{\"schema_version\": {}}}", serde_json::json!(HOSTILE));
    file(dir.path(), "a.json", &text);
    let text = format!("{{\"schema_version\": 1, \"ended\": {}}}", serde_json::json!(HOSTILE));
    file(dir.path(), "b.json", &text);
    let sweep = format!("{{\"gpuio_sweep\": 1, {}: 1}}", serde_json::json!(HOSTILE));
    file(dir.path(), "sweep.json", &sweep);
    file(dir.path(), "c.svg", HOSTILE);
    for line in [
        "show a.json",
        "show b.json",
        "show sweep.json",
        "report sweep.json",
        "report a.json b.json",
        "compare a.json b.json",
        "compare sweep.json a.json",
        "report b.json --topo c.svg",
        "plan --system a.json",
        "plan --spec b.json",
    ] {
        let ran = gpuio(dir.path(), line);
        assert_ne!(ran.code, 0, "{line}");
        is_clean(line, &ran);
    }
}

#[test]
fn results_of_other_tools() {
    let dir = scratch();
    let fio = repository("crates/report/tests/report/fixtures/foreign/fio_3.33_three_jobs.json");
    let mut fio: Value = serde_json::from_str(&std::fs::read_to_string(fio).unwrap()).unwrap();
    for job in fio["jobs"].as_array_mut().unwrap() {
        job["jobname"] = format!("{}{HOSTILE}", job["jobname"].as_str().unwrap()).into();
    }
    file(dir.path(), "fio.json", &fio.to_string());
    let elbencho = repository("crates/report/tests/report/fixtures/foreign/elbencho_3.0-25.csv");
    let elbencho = std::fs::read_to_string(elbencho).unwrap();
    file(dir.path(), "elbencho.csv", &elbencho.replace("READ", &format!("READ{IN_A_LINE}")));
    file(dir.path(), "gdsio.txt", &format!("IoType: {IN_A_LINE} XferType: GPUD\n"));
    // Other runs, for one that is given twice counts once.
    for result in ["fio.json", "elbencho.csv", "gdsio.txt"] {
        let text = std::fs::read_to_string(dir.path().join(result)).unwrap();
        file(dir.path(), &format!("b-{result}"), &(text + "\n"));
        for format in ["text", "json", "markdown"] {
            let line = format!("compare {result} b-{result} --despite all --format {format}");
            is_clean(&line, &gpuio(dir.path(), &line));
        }
    }
    let ran = gpuio(dir.path(), "compare fio.json b-fio.json").exits(0);
    assert!(ran.out.contains("\\x1b[31m") && ran.out.contains("\\u202e"), "{}", ran.out);
}

#[test]
fn configurations_of_cufile() {
    let dir = scratch();
    let word = serde_json::json!(HOSTILE).to_string();
    let whole = format!(
        "{{\"logging\": {{\"dir\": {word}, \"level\": {word}}}, {word}: 1, \
         \"properties\": {{\"rdma_dev_addr_list\": [{word}]}}, \"fs\": {{\"lustre\": \
         {{\"mount_table\": {{{word}: {word}}}}}}}}}"
    );
    let cut = format!("{{\"logging\": {IN_A_LINE}");
    for (name, text) in [("whole.json", &whole), ("cut.json", &cut)] {
        let path = file(dir.path(), name, text);
        for line in ["gdscheck -p", "gdscheck -v", "check", "check --format json", "exec --env"] {
            let mut command = command(dir.path());
            command
                .env("CUFILE_ENV_PATH_JSON", &path)
                .env("CUFILE_LOGGING_LEVEL", HOSTILE.replace('\0', ""));
            is_clean(line, &finish(command.args(words(line))));
        }
        is_clean(name, &gpuio(dir.path(), &format!("check --from {name}")));
    }
}

#[test]
fn captures_of_machines() {
    let dir = scratch();
    let captures = [
        ("dgx-2.lspci-tv", "NVIDIA"),
        ("switch.lspci-vv", "Corporation"),
        ("dgx-2.mount", "nfs"),
        ("dgx-2.query.csv", "Tesla"),
        ("dgx-2.topo-mp", "mlx5_0"),
        ("dgx-2.by-path", "nvme0"),
        ("dgx-2.ibdev2netdev", "mlx5_0"),
        ("h100-1.13.gdscheck", "NVMe"),
        ("arrays.mdstat", "md"),
        ("dgx-a100.lstopo.xml", "NVIDIA"),
    ];
    for (name, word) in captures {
        let text = repository("crates/capture/tests/fixtures").join(name);
        let text = std::fs::read_to_string(text).unwrap();
        assert!(text.contains(word), "{name}");
        // Once in a word, and once where no tool prints anything.
        let inside = text.replacen(word, &format!("{word}{IN_A_LINE}"), 3);
        let before = format!("{inside}\n{IN_A_LINE}\n");
        let verbs = [
            "topo",
            "check",
            "plan",
            "topo --format json",
            "topo --format svg",
            "topo --format hwloc",
            "check --format json",
            "plan --format json",
            "plan --format job",
        ];
        // Text that no tool prints is in no format, but in what is said of the text.
        for (text, verbs) in [(&inside, &verbs[..]), (&before, &verbs[..3])] {
            file(dir.path(), "capture", text);
            for verb in verbs {
                let ran = gpuio(dir.path(), &format!("{verb} --from capture"));
                is_clean(&format!("{verb} of {name}"), &ran);
            }
        }
    }
}

#[test]
fn job_files_and_flags() {
    let dir = scratch();
    let name = IN_A_LINE.replace(']', "");
    let good = format!("[a{name}]\nrw=write\nsize=64k\nbs=4k\nruntime=20ms\nfilename=f\n");
    file(dir.path(), "good.ini", &good);
    file(dir.path(), "bad.ini", &format!("[a]\n{IN_A_LINE}=1\nrw={IN_A_LINE}\n{IN_A_LINE}\n"));
    file(dir.path(), "target.ini", &format!("[a]\nrw=read\nfilename=/no/{IN_A_LINE}\n"));
    for line in [
        "bench good.ini --dry-run",
        "bench good.ini",
        "bench good.ini --format csv",
        "bench good.ini --format plan",
        "bench good.ini --format json",
        "bench bad.ini",
        "bench target.ini",
        "bench --ab bad.ini bad.ini",
        "sweep bad.ini --vary bs=4k,8k -o s",
        "gdsio bad.ini",
        "stats",
        "top --plain --count 1",
        "top --json --count 1",
        "list",
        "sweep good.ini --vary bs=4k,8k --repeats 1 -o s",
    ] {
        is_clean(line, &gpuio(dir.path(), line));
    }
    gpuio(dir.path(), "bench good.ini --filename other").exits(0);
    for flag in ["--rw", "--filename", "--set", "--engine", "--gpu", "--format"] {
        let mut command = command(dir.path());
        let value = HOSTILE.replace('\0', "");
        is_clean(flag, &finish(command.args(["bench", "--size", "64k", flag, &value])));
    }
    let odd = dir.path().join("r\x1b[2J\nerror: forged.json");
    std::fs::write(&odd, "{").unwrap();
    for verb in ["show", "report", "compare"] {
        let mut command = command(dir.path());
        is_clean(verb, &finish(command.arg(verb).arg(&odd)));
        // As a shell's `*` gives them.
        let mut command = self::command(dir.path());
        is_clean(verb, &finish(command.args([verb, "-o"]).args([&odd, &odd, &odd])));
    }
}
