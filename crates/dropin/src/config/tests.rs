use super::*;

/// The configuration with these variables and this text in the file `/c.json`.
fn config(variables: &[(&str, &str)], text: &str, staged: &Staged) -> Config {
    let variable = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| OsString::from(value))
    };
    let file = |path: &PathBuf| {
        let here = path.as_os_str() == "/c.json";
        here.then(|| text.to_owned()).ok_or_else(|| std::io::Error::from_raw_os_error(2))
    };
    Config::read(&Sources { variable: &variable, file: &file }, staged)
}

const NAMED: (&str, &str) = (VARIABLE, "/c.json");

#[test]
fn without_anything_the_defaults_hold_and_nothing_is_noted() {
    let config = config(&[], "", &Staged::default());
    assert_eq!(config.sizes[table::BATCH], 128);
    assert_eq!(config.sizes[table::BATCH_TIMEOUT], 5);
    assert!(config.switches[1] && !config.switches[2]);
    assert_eq!(config.pools[0].sizes_kib, [4, 1024, 16384]);
    assert_eq!((config.log_path(), config.level_requested), (None, false));
    assert_eq!(config.log_max_mib, Some(32));
    assert_eq!(config.notes, Vec::<String>::new());
}

#[test]
fn the_program_goes_before_the_environment_before_the_file() {
    let text = "{ \"profile\": { \"cufile_stats\": 1 }, // comment\n \
                \"properties\": { \"io_batchsize\": 7, \"io_batchsize\": 9, \
                \"force_compat_mode\": true }, \"logging\": { \"level\": \"INFO\" } }";
    let mut staged = Staged::default();
    let file = config(&[NAMED], text, &staged);
    assert_eq!((file.sizes[0], file.sizes[table::BATCH]), (1, 9), "the last of two counts");
    assert!(file.switches[2] && file.level_requested);
    let variables = [NAMED, ("CUFILE_STATS_LEVEL", "2"), ("CUFILE_FORCE_COMPAT_MODE", "FALSE")];
    let variable = config(&variables, text, &staged);
    assert_eq!((variable.sizes[0], variable.switches[2]), (2, false));
    (staged.sizes[0], staged.switches[2]) = (Some(3), Some(true));
    let set = config(&variables, text, &staged);
    assert_eq!((set.sizes[0], set.switches[2]), (3, true));
    let alias = config(&[NAMED], "{ \"profile\": { \"io_batchsize\": 5 } }", &Staged::default());
    assert_eq!(alias.sizes[table::BATCH], 5);
}

#[test]
fn what_can_not_be_is_noted_and_not_used() {
    let gone = config(&[(VARIABLE, "$PWD/local_cufile.json")], "", &Staged::default());
    assert!(gone.notes[0].contains("$PWD/local_cufile.json"), "{:?}", gone.notes);
    let broken = config(&[NAMED], "{ \"properties\": }", &Staged::default());
    assert!(broken.notes[0].contains("line 1"), "{:?}", broken.notes);
    let text = "{ \"properties\": { \"io_batchsize\": 100000, \"use_poll_mode\": 3, \
                \"posix_pool_slab_size_kb\": [4], \"posix_pool_slab_count\": [] } }";
    let variables = [NAMED, ("CUFILE_STATS_LEVEL", "many"), ("CUFILE_LOGGING_LEVEL", "LOUD")];
    let wrong = config(&variables, text, &Staged::default());
    assert_eq!(wrong.notes.len(), 5, "{:?}", wrong.notes);
    assert_eq!((wrong.sizes[0], wrong.sizes[table::BATCH]), (0, 128));
    assert_eq!((wrong.pools[0].counts.len(), wrong.texts[0].as_str()), (3, "ERROR"));
}

#[test]
fn logs_go_where_somebody_wanted_them() {
    let named = [("CUFILE_LOGFILE_PATH", "/x/y.log")];
    let request = config(&named, "", &Staged::default());
    assert_eq!(request.log_path(), Some("/x/y.log".into()));
    let text = "{ \"logging\": { \"dir\": \"/tmp/d\", \"max_file_size_mb\": -1 } }";
    let directory = config(&[NAMED], text, &Staged::default());
    let path = directory.log_path().unwrap();
    assert!(path.starts_with("/tmp/d") && path.extension().unwrap() == "log");
    assert_eq!(directory.log_max_mib, None);
}

#[test]
fn ranges_are_held() {
    assert!(check_size(table::BATCH, 256).is_ok() && check_size(table::BATCH, 257).is_err());
    assert!(check_size(table::BATCH, 0).is_err());
    assert!(check_text(LOG_LEVEL, "warn").is_ok() && check_text(LOG_LEVEL, "quiet").is_err());
    let slabs = Slabs { sizes_kib: vec![4, 8], counts: vec![1] };
    assert!(slabs.check().is_err());
}
