//! A terminal that closes while gpuio runs on it, and readers that go: the run ends as after
//! Ctrl-C, and nothing stays but what is to stay.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use crate::tool::{
    GPUIO, command, file, finish, gpuio, other, plain, scratch, skip, state, tree, wait, words,
};

/// Runs a program on a terminal of its own, closes the terminal once a file with this ending is in
/// one of the directories, or once the program has written, and sends further signals. Prints how
/// the program ended.
const SCRIPT: &str = r"
import os, pty, select, signal, sys
ready, more, ignore = sys.argv[1], int(sys.argv[2]), sys.argv[3] == 'ignore'
places, program = sys.argv[4].split(':'), sys.argv[5:]
pid, fd = pty.fork()
if pid == 0:
    if ignore:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.execv(program[0], program)
def there():
    names = [name for place in places if os.path.isdir(place) for name in os.listdir(place)]
    return any(name.endswith(ready) for name in names)
wrote = False
while not (there() if ready != 'output' else wrote):
    if select.select([fd], [], [], 0.01)[0]:
        wrote = bool(os.read(fd, 65536))
os.close(fd)
for _ in range(more):
    os.kill(pid, signal.SIGHUP)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
";

/// How `gpuio LINE` ends whose terminal is closed; `None` where there is no Python.
fn on_a_terminal(dir: &Path, how: (&str, u32, bool), line: &str) -> Option<i32> {
    let python = gpuio_testkit::programs::python();
    if plain(&python).arg("--version").output().is_err() {
        skip("no Python here, which opens a terminal");
        return None;
    }
    let (ready, more, ignored) = how;
    let places = [dir.to_owned(), dir.join("gpuio-scratch"), state(dir).join("gpuio")];
    let places = places.map(|place| place.display().to_string()).join(":");
    let mut script = other(dir, python);
    script.current_dir(dir).env("TERM", "xterm").args(["-c", SCRIPT, ready, &more.to_string()]);
    script.args([if ignored { "ignore" } else { "-" }, &places, GPUIO]).args(words(line));
    let ran = finish(&mut script).exits(0);
    Some(ran.out.trim().parse().unwrap())
}

const JOURNAL: &str = ".gpuio-journal.json";

/// Two groups: the second begins with a journal on disk.
const TWO: &str = "[global]\nrw=randread\nbs=16k\nsize=1m\nverify=pass\n\
                   [a]\nloops=1\n[b]\nstonewall\nruntime=600\n";

fn journals(dir: &Path) -> usize {
    let state = state(dir);
    let all = if state.exists() { tree(&state) } else { Vec::new() };
    all.iter().filter(|name| name.ends_with(JOURNAL)).count()
}

#[test]
fn a_terminal_that_closes_leaves_no_scratch_and_no_journal() {
    for more in [0, 1, 5] {
        for (ready, line) in
            [(JOURNAL, "bench two.ini"), ("gpuio.0", "bench --rw randrw --size 1m --runtime 600")]
        {
            let dir = scratch();
            file(dir.path(), "two.ini", TWO);
            let Some(code) = on_a_terminal(dir.path(), (ready, more, false), line) else { return };
            assert_eq!(code, 1, "{line}, {more} signals more");
            assert_eq!(tree(dir.path()), ["two.ini"], "{line}, {more} signals more");
            assert_eq!(journals(dir.path()), 0, "{line}, {more} signals more");
        }
    }
}

#[test]
fn the_record_is_saved_though_its_terminal_has_gone() {
    let dir = scratch();
    file(dir.path(), "two.ini", TWO);
    let line = "bench two.ini -o r.json";
    let Some(code) = on_a_terminal(dir.path(), (JOURNAL, 1, false), line) else { return };
    assert_eq!(code, 1);
    assert_eq!(tree(dir.path()), ["r.json", "two.ini"]);
    let text = gpuio(dir.path(), "show r.json --format csv").exits(0).out;
    assert!(text.contains(",interrupted,"), "{text}");
    // nohup(1) keeps a run from ending with its terminal, and then it ends well.
    file(dir.path(), "two.ini", &TWO.replace("600", "300ms"));
    let line = "bench two.ini -o s.json";
    assert_eq!(on_a_terminal(dir.path(), (JOURNAL, 3, true), line), Some(0));
    assert_eq!(tree(dir.path()), ["r.json", "s.json", "two.ini"]);
    let text = gpuio(dir.path(), "show s.json --format csv").exits(0).out;
    assert!(text.contains(",complete,"), "{text}");
    assert_eq!(journals(dir.path()), 0);
}

/// No panic, and no abort: those print, and nobody reads.
#[test]
fn the_screen_of_top_ends_with_its_terminal() {
    for more in [0, 1] {
        let dir = scratch();
        let line = "top --interval 100ms";
        let Some(code) = on_a_terminal(dir.path(), ("output", more, false), line) else { return };
        assert!([0, 1, 3].contains(&code), "{code}");
    }
}

/// Without an end of their own: the reader's is theirs.
#[test]
fn what_prints_for_ever_ends_with_its_reader() {
    let dir = scratch();
    for line in
        ["top --interval 100ms --plain", "top --interval 100ms --json", "stats --interval 100ms"]
    {
        let mut child = command(dir.path());
        let child = child.args(words(line)).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = child.spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut String::new()).unwrap();
        drop(out);
        let nothing = std::fs::File::open("/dev/null").unwrap();
        child.stdout = Some(std::os::fd::OwnedFd::from(nothing).into());
        wait(child, Instant::now()).exits(0);
    }
}
