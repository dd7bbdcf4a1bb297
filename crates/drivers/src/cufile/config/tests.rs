use gpuio_base::cufilejson::keys as parse;

use super::*;

/// As NVIDIA's own files are: comments, a trailing comma, a key that comes twice.
const USERS: &str = r#"{
    // logging
    "logging": { "level": "ERROR" },
    /* sizes */
    "properties": {
        "per_buffer_cache_size_kb": 1024,
        "allow_compat_mode": false, // none
        "per_buffer_cache_size_kb": 2048,
    },
    "denylist": { "drivers": [ ], }
}"#;

fn base(text: &str) -> Base {
    Base { path: None, keys: parse(text).unwrap() }
}

fn settings(texts: &[&str]) -> Vec<Setting> {
    let read = |text: &&str| {
        let (key, value) = text.split_once('=').unwrap();
        let value = serde_json::from_str(value.trim()).unwrap();
        Setting { key: key.trim().to_owned(), value }
    };
    texts.iter().map(read).collect()
}

#[test]
fn comments_trailing_commas_and_repeated_keys_are_read() {
    let keys = base(USERS).keys;
    assert_eq!(keys["logging"]["level"], "ERROR");
    assert_eq!(keys["properties"]["per_buffer_cache_size_kb"], 2048);
    assert_eq!(keys["denylist"]["drivers"], serde_json::json!([]));
    assert!(parse("[1]").unwrap_err().contains("no JSON object"));
    assert!(parse("{ \"a\": ").is_err());
}

#[test]
fn settings_lie_on_top_of_the_users_file() {
    let parent = tempfile::tempdir().unwrap();
    let settings = settings(&[
        "properties.allow_compat_mode=true",
        "execution.max_io_threads = 8",
        "logging.level=\"TRACE\"",
        "denylist.drivers=[\"virtio_blk\"]",
    ]);
    let environment = Environment::write(base(USERS), &settings, parent.path()).unwrap();
    assert_eq!(environment.compat_allowed(), Some(true));
    // The record shows the file that cuFile reads, as plain JSON.
    let text = std::fs::read_to_string(environment.file()).unwrap();
    let read: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(read, Value::Object(environment.keys.clone()));
    assert_eq!(read["execution"]["max_io_threads"], 8);
    assert_eq!(read["logging"]["level"], "TRACE");
    assert_eq!(read["denylist"]["drivers"][0], "virtio_blk");
    assert_eq!(read["properties"]["per_buffer_cache_size_kb"], 2048);
    let flat = environment.flat();
    assert_eq!(flat["properties.allow_compat_mode"], "true");
    assert_eq!(flat["logging.level"], "\"TRACE\"");
}

#[test]
fn the_log_goes_to_our_directory_unless_the_user_named_one() {
    let parent = tempfile::tempdir().unwrap();
    let ours = Environment::write(Base::default(), &[], parent.path()).unwrap();
    let dir = ours.keys["logging"]["dir"].as_str().unwrap().to_owned();
    assert!(Path::new(&dir).starts_with(parent.path()), "{dir}");
    assert_eq!(ours.last_error(), None);
    let log = "1 INFO open\n2 ERROR udev property not found: ID_FS_USAGE vda\n3 INFO close\n";
    std::fs::write(Path::new(&dir).join("cufile.log"), log).unwrap();
    let last = ours.last_error().unwrap();
    assert_eq!(last, "2 ERROR udev property not found: ID_FS_USAGE vda");

    let named = settings(&["logging.dir=\"/var/log\""]);
    let theirs = Environment::write(Base::default(), &named, parent.path()).unwrap();
    assert_eq!(theirs.keys["logging"]["dir"], "/var/log");
    drop((ours, theirs));
    assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0, "nothing is left");
}

#[test]
fn what_does_not_fit_is_refused_with_its_name() {
    let parent = tempfile::tempdir().unwrap();
    let deep = settings(&["logging.level.now=1"]);
    let error = Environment::write(base(USERS), &deep, parent.path()).unwrap_err().to_string();
    assert!(error.contains("logging.level.now") && error.contains("level holds"), "{error}");
    let error = Base::read(Path::new("/nowhere/cufile.json")).unwrap_err().to_string();
    assert!(error.contains("/nowhere/cufile.json"), "{error}");
    let error = Environment::write(Base::default(), &[], Path::new("/nowhere")).unwrap_err();
    assert!(error.to_string().contains("TMPDIR"), "{error}");
    assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0, "nothing is left");
}

#[test]
fn the_environment_is_left_alone_beside_other_threads() {
    // A test runs on a thread of its own beside the program's first.
    let parent = tempfile::tempdir().unwrap();
    let environment = Environment::write(Base::default(), &[], parent.path()).unwrap();
    assert!(matches!(environment.apply(), Err(ConfigError::Threads { threads: 2.. })));
}

/// Ranks of an MPI job, whose library starts threads, test the rest.
#[test]
fn what_was_reserved_before_threads_is_what_is_written() {
    let parent = tempfile::tempdir().unwrap();
    assert!(matches!(reserve(parent.path()), Err(ConfigError::Threads { threads: 2.. })));
    let reserved = RESERVED.get().unwrap();
    assert!(!reserved.exists(), "nothing is written");
    let elsewhere = tempfile::tempdir().unwrap();
    let other = Environment::write(Base::default(), &[], elsewhere.path()).unwrap();
    assert_eq!(other.directory().parent(), Some(elsewhere.path()));
    let environment = Environment::write(Base::default(), &[], parent.path()).unwrap();
    assert_eq!(environment.directory(), *reserved);
    drop(environment);
    assert!(!reserved.exists());
}

#[test]
fn what_a_killed_run_left_goes_and_what_is_somebody_elses_stays() {
    let parent = tempfile::tempdir().unwrap();
    let alive = Environment::write(Base::default(), &[], parent.path()).unwrap();
    assert_eq!(alive.left, Vec::<PathBuf>::new());
    // A process that is killed drops nothing, and its lock is gone.
    let private = Private::make(parent.path(), PREFIX).unwrap();
    let killed = private.path();
    drop(private);
    for (name, text) in [("cufile.json", "{}"), ("cufile.log", "1 INFO"), ("notes", "mine")] {
        std::fs::write(killed.join(name), text).unwrap();
    }
    let other = parent.path().join("gpuio-cufile-7-0");
    std::fs::create_dir(&other).unwrap();
    let next = Environment::write(Base::default(), &[], parent.path()).unwrap();
    assert!(next.left.len() == 1 && next.left[0] == killed);
    assert!(alive.file().exists(), "its process lives");
    assert!(other.exists(), "it has no owner that identifies it");
    assert_eq!(std::fs::read(killed.join("notes")).unwrap(), b"mine");
    assert!(!killed.join("cufile.json").exists() && !killed.join("cufile.log").exists());
    std::fs::remove_file(killed.join("notes")).unwrap();
    let last = Environment::write(Base::default(), &[], parent.path()).unwrap();
    assert_eq!(last.left, Vec::<PathBuf>::new());
    assert!(!killed.exists());
}
