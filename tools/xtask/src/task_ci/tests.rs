use super::*;

#[test]
fn result_lines_add_up_and_other_lines_do_not_count() {
    let mut counts = Counts::default();
    for line in [
        "running 4 tests",
        "test tests::a ... ok",
        "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out",
        "test result: FAILED. 10 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out",
        "test result: \u{1b}[32mok\u{1b}[m. 5 passed; 0 failed; 0 ignored",
        "test result: nonsense",
        "it said test result: ok. 7 passed; 0 failed;",
        "7 passed; 7 failed;",
        "SKIPPED: no Chromium here (page::opens)",
        "skipped: no AIO here (engines)",
        "it was skipped",
    ] {
        counts.add(line);
    }
    assert_eq!(counts, Counts { passed: 18, failed: 2, skipped: 2 });
}

#[test]
fn a_failing_command_fails_its_step() {
    assert!(step("right", || succeed(&mut Command::new("true"))).is_ok());
    let error = step("wrong", || succeed(&mut Command::new("false"))).unwrap_err();
    let message = format!("{error:#}");
    assert!(message.contains("wrong") && message.contains("false"), "{message}");
    assert!(succeed(&mut Command::new("./no-such-program")).is_err());
}
