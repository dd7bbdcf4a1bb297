use super::*;

/// The lines of ARCHITECTURE.md that the rules read, in miniature.
const PAGE: &str = "\
| Layer | Crates |
| --- | --- |
| values | `units`: sizes |
| above | `io`: moves bytes, `libx.so.0`. `cli`: verbs |

`unsafe` is allowed in `io`, and in `host/src/residency/mod.rs`
only.
";

fn file(path: &str, text: &str) -> File {
    File { path: path.to_owned(), text: text.to_owned() }
}

fn findings(path: &str, text: &str) -> Vec<Finding> {
    let files = [file("ARCHITECTURE.md", PAGE), file(path, text)];
    check(&files, &[], &exists).unwrap()
}

fn exists(path: &str) -> bool {
    let source = path.starts_with("crates/") && !path.ends_with("gone.rs");
    source || path == "docs/there.md" || path == "README.md"
}

/// Asserts that the sample breaks exactly this rule, on this line.
#[track_caller]
fn bad(rule: &str, line: usize, path: &str, text: &str) {
    let found = findings(path, text);
    let rules: Vec<_> = found.iter().map(|f| (f.rule, f.line)).collect();
    assert_eq!(rules, [(rule, line)], "{found:#?}");
    assert!(found[0].what.contains([':', ',']), "what to do: {}", found[0].what);
}

#[track_caller]
fn good(path: &str, text: &str) {
    assert_eq!(findings(path, text), []);
}

/// The findings about `crates/io`, whose manifest has one dependency.
fn arrow(dependency: &str) -> Vec<Finding> {
    let metadata = format!(
        "{{\"packages\": [{{\"name\": \"gpuio-io\", \"manifest_path\": \
         \"/r/crates/io/Cargo.toml\", \"dependencies\": [{dependency}]}}]}}"
    );
    let packages = arrows::read(&serde_json::from_str(&metadata).unwrap(), "/r");
    assert_eq!(packages.len(), 1);
    arrows::check(&architecture::Rules::read(PAGE).unwrap(), &packages)
}

#[test]
fn arrows_follow_the_page() {
    for kind in ["null", "\"build\""] {
        let found = arrow(&format!("{{\"name\": \"gpuio-cli\", \"kind\": {kind}}}"));
        assert_eq!((found.len(), found[0].path.as_str()), (1, "crates/io/Cargo.toml"));
        assert!(found[0].what.contains("may not use `cli`, which comes after it"), "{found:?}");
    }
    assert_eq!(arrow("{\"name\": \"gpuio-cli\", \"kind\": \"dev\"}"), []);
    assert_eq!(arrow("{\"name\": \"gpuio-units\", \"kind\": null}"), []);
    assert_eq!(arrow("{\"name\": \"libc\", \"kind\": null}"), []);
    let rules = architecture::Rules::read(PAGE).unwrap();
    let package = |name: &str| arrows::Package {
        manifest: "crates/extra/Cargo.toml".to_owned(),
        name: name.to_owned(),
        uses: Vec::new(),
    };
    assert_eq!(arrows::check(&rules, &[package("extra")]).len(), 1, "a crate without a row");
    assert_eq!(arrows::check(&rules, &[package("units")]), []);
}

#[test]
fn a_test_of_the_program_starts_nothing_by_itself() {
    let rule = "tests share nothing";
    bad(rule, 2, "crates/cli/tests/cli/a.rs", "\nlet a = Command::new(GPUIO);\n");
    bad(rule, 1, "crates/cli/tests/cli/a.rs", "let dir = tempfile::tempdir().unwrap();\n");
    good("crates/cli/tests/cli/tool.rs", "let a = Command::new(GPUIO);\n");
    good("crates/cli/tests/cli/a.rs", "let a = other(dir, GPUIO);\n");
    good("crates/io/tests/a.rs", "let a = Command::new(program);\n");
}

#[test]
fn a_file_of_another_crate_is_not_included() {
    let include = |up: &str| format!("\n#[path = \"{up}/x.rs\"]\nmod x;\n");
    bad("foreign file", 2, "crates/io/src/lib.rs", &include("../../load/src"));
    bad("foreign file", 2, "crates/io/tests/a/main.rs", &include("../../../host/tests"));
    good("crates/io/tests/a/main.rs", &include("../../src"));
    good("crates/io/src/a.rs", &include("..").replace("../x", "x"));
    good("tools/model/src/a.rs", &include("../../../crates/io/src"));
}

#[test]
fn an_example_that_no_test_runs_is_found() {
    let found = |toml: &str, source: &str| {
        examples::check(&[file("crates/io/Cargo.toml", toml), file("crates/io/src/a.rs", source)])
    };
    let off = "[lib]\ndoctest = false\n";
    for opening in ["```", "```rust", "```rust,no_run"] {
        let source = format!("/// ```text\n/// a\n/// ```\n///\n/// {opening}\n/// f()\n/// ```\n");
        let lines: Vec<_> = found(off, &source).iter().map(|found| found.line).collect();
        assert_eq!(lines, [5]);
        assert_eq!(found("[lib]\n", &source), []);
    }
    assert_eq!(found(off, "/// ```text\n/// a\n/// ```\nfn f() {}\n"), []);
}

#[test]
fn the_page_must_hold_the_rules() {
    let no_arrows = [file("ARCHITECTURE.md", "`unsafe` is allowed in `io`.\n")];
    assert!(check(&no_arrows, &[], &|_| true).is_err());
    let no_unsafe = [file("ARCHITECTURE.md", PAGE.split_once("\n\n").unwrap().0)];
    assert!(check(&no_unsafe, &[], &|_| true).is_err());
    assert!(check(&[], &[], &|_| true).is_err());
}

#[test]
fn the_page_of_this_repository_can_be_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let rules = architecture::Rules::read(&page).unwrap();
    let folders = fs::read_dir(root.join("crates")).unwrap();
    let mut folders: Vec<_> =
        folders.map(|one| one.unwrap().file_name().into_string().unwrap()).collect();
    folders.sort();
    let mut crates = rules.crates;
    crates.sort();
    assert_eq!(crates, folders, "each once");
    assert!(rules.unsafe_paths.contains(&"crates/gpu/".to_owned()));
    assert!(rules.unsafe_paths.contains(&"crates/load/src/run/rusage.rs".to_owned()));
    assert!(rules.unsafe_paths.contains(&"tools/model/".to_owned()));
}

#[test]
fn line_length() {
    let long = format!("// {}\n", "é".repeat(98));
    let fits = format!("// {}\n", "é".repeat(97));
    let path = "crates/io/src/a.rs";
    bad("line length", 2, path, &format!("//! a\n{long}"));
    bad("line length", 2, path, &format!("// tidy: long line,\n{long}"));
    good(path, &fits);
    good(path, &format!("// tidy: long line, a URL\n{long}"));
    good("docs/a.md", &long);
}

#[test]
fn file_length() {
    let lines = |count: usize| "// a\n".repeat(count);
    bad("file length", 1, "crates/io/src/a.rs", &lines(801));
    bad("file length", 1, "crates/io/src/a.rs", &format!("// tidy: table,\n{}", lines(800)));
    bad("file length", 1, "crates/io/src/a.rs", &format!("{}// tidy: table, x\n", lines(800)));
    good("crates/io/src/a.rs", &lines(800));
    good("crates/io/src/a.rs", &format!("//! a\n// tidy: table, one row a key\n{}", lines(800)));
    for test in [
        "examples/a.rs",
        "src/tests.rs",
        "src/test.rs",
        "tests/a.rs",
        "src/a_test.rs",
        "src/a_tests.rs",
    ] {
        good(&format!("crates/io/{test}"), &lines(801));
    }
}

#[test]
fn file_names() {
    for name in ["common", "util", "utils", "util_io", "misc", "helpers", "util/a", "common/mod"] {
        bad("file name", 1, &format!("crates/io/src/{name}.rs"), "//! a\n");
    }
    good("crates/io/src/utility_functions.rs", "//! a\n");
    good("crates/io/src/uncommon.rs", "//! a\n");
}

#[test]
fn threads_that_panic_where_the_system_refuses_one() {
    for call in ["std::thread::spawn(run);\n", "all.map(|_| scope.spawn(work));\n"] {
        bad("threads", 1, "crates/base/src/stat/a.rs", call);
        good("crates/base/src/stat/tests.rs", call);
        good("crates/base/tests/base/stat/a.rs", call);
        good(
            "crates/base/src/stat/a.rs",
            &format!("fn f() {{}}\n#[cfg(test)]\nmod tests {{\n{call}}}\n"),
        );
    }
    for call in ["builder.spawn_scoped(scope, work)?;\n", "let child = commands.spawn()?;\n"] {
        good("crates/base/src/stat/a.rs", call);
    }
}

#[test]
fn forms_of_rust_in_texts_for_people() {
    let text = "fn f(a: Option<u8>) -> String {\n    format!(\"{a:?} recorded\")\n}\n";
    bad("debug form", 2, "crates/report/src/a.rs", text);
    good("crates/load/src/a.rs", text);
    good("crates/report/tests/a.rs", text);
    good("crates/report/src/a.rs", &format!("#[cfg(test)]\nmod tests {{\n{text}}}\n"));
}

#[test]
fn clocks() {
    let call = "fn f() {\n    let t = Instant::now();\n}\n";
    bad("clock", 2, "crates/base/src/stat/a.rs", call);
    bad("clock", 1, "crates/io/src/a.rs", "use std::time::Instant;\n");
    bad("clock", 1, "crates/load/src/a.rs", "const N: fn() -> T = std::time::SystemTime::now;\n");
    for path in [
        "crates/transfer/src/clock.rs",
        "crates/cli/src/a.rs",
        "crates/load/src/run/a.rs",
        "crates/load/src/run.rs",
        "crates/softgpu/src/a.rs",
        "crates/base/src/stat/tests.rs",
        "crates/base/tests/base/stat/a.rs",
        "tools/xtask/src/a.rs",
    ] {
        good(path, call);
    }
    good(
        "crates/base/src/stat/a.rs",
        "// Instant::now() is slow\nconst A: &str = \"Instant::now()\";\n",
    );
    good("crates/base/src/stat/a.rs", "fn f() {\n    MyInstant::now();\n}\n");
}

#[test]
fn environment() {
    bad("environment", 1, "crates/load/src/a.rs", "const A: X = std::env::var_os;\n");
    bad("environment", 1, "crates/gpu/src/a.rs", "const A: X = env::var(\"B\");\n");
    good("crates/gpu/src/a.rs", "const A: &str = env!(\"CARGO_PKG_VERSION\");\n");
    for call in ["env::var(\"B\")", "std::env::temp_dir()", "libc::getenv(a)", "env::vars_os()"] {
        bad("environment", 1, "crates/cli/src/a.rs", &format!("const A: X = {call};\n"));
    }
    good("crates/cli/src/a.rs", "const A: X = environment::variable(\"B\");\n");
    good("crates/guard/src/objects/environment.rs", "const A: X = env::var(\"B\");\n");
}

#[test]
fn loading() {
    for call in ["Library::open(a, b)", "libloading::Library::new(a)", "libc::dlopen(a, 1)"] {
        bad("loading", 1, "crates/gpu/src/a.rs", &format!("const A: X = {call};\n"));
    }
    good("crates/guard/src/objects/load.rs", "const A: X = Library::open(a, b);\n");
    good("crates/gpu/src/a.rs", "const A: X = gpuio_guard::objects::load(a, b);\n");
}

#[test]
fn files() {
    bad("files", 1, "crates/report/src/a.rs", "use std::fs;\n");
    bad("files", 1, "crates/report/src/a.rs", "const A: X = fs::read(\"a\");\n");
    bad("files", 1, "crates/gpu/src/a.rs", "const A: X = std::fs::File::open(\"a\");\n");
    bad("files", 1, "crates/job/src/a.rs", "const A: X = OpenOptions::new();\n");
    good("crates/gpu/src/a.rs", "const A: X = rustix::fs::openat;\nconst B: X = offs::new();\n");
    good("crates/host/src/a.rs", "use std::fs;\n");
}

#[test]
fn files_of_others() {
    for call in ["rustix::fs::fchmod(a, b)", "a.set_permissions(b)", "fsetxattr(a, b)"] {
        bad("files of others", 1, "crates/cli/src/a.rs", &format!("const A: X = {call};\n"));
    }
    good("crates/guard/src/outfile/a.rs", "const A: X = fchmod(a, b);\n");
}

#[test]
fn pasted_commands() {
    let path = "crates/cli/src/a.rs";
    for text in ["rm '{a}'", "rm -r {}", "`gpuio show {a}`", "gpuio bench {}", "rm \\\n {a}"] {
        bad("pasted command", 1, path, &format!("const A: &str = \"x: {text}\";\n"));
    }
    for text in ["rm a", "gpuio show FILE", "form {a}", "gpuio stats {pid}", "gpuio show {{}}"] {
        good(path, &format!("const A: &str = \"x: {text}\";\n"));
    }
    good(path, "// rm '{a}'\n");
    good("tools/xtask/src/a.rs", "const A: &str = \"rm {a}\";\n");
}

#[test]
fn unsafe_code() {
    let allow = "//! a\n#![allow(unsafe_code)]\n";
    bad("unsafe", 2, "crates/base/src/stat/a.rs", allow);
    bad("unsafe", 2, "crates/host/src/a.rs", allow);
    bad("unsafe", 2, "tools/xtask/src/a.rs", &allow.replace("allow", "expect"));
    good("crates/io/src/a.rs", allow);
    good("crates/host/src/residency/mod.rs", allow);
    good("crates/base/src/stat/a.rs", "#![deny(unsafe_code)]\n// #![allow(unsafe_code)]\n");
}

#[test]
fn words_in_identifiers() {
    let path = "crates/io/src/a.rs";
    for name in [
        "errand",
        "errand_it",
        "it_errand",
        "Errand",
        "ItErrand",
        "ErrandIt",
        "ERRAND",
        "AN_ERRAND",
    ] {
        bad("word", 2, path, &format!("//! a\nlet {name} = 1;\n"));
    }
    good(path, &format!("let errands = {:?}; // errand\nlet merrand = Errands;\n", "errand"));
}

#[test]
fn unfinished_work() {
    let words = ["TO", "FIX", "X"].into_iter().zip(["DO", "ME", "XX"]);
    for word in words.map(|(a, b)| format!("{a}{b}")) {
        bad("unfinished", 1, "crates/io/src/a.rs", &format!("// {word}: later\n"));
        bad("unfinished", 1, "docs/a.md", &format!("{word}: later\n"));
        good("crates/io/src/a.rs", &format!("// a{word}\n"));
    }
    good("crates/io/src/a.rs", "fn todo() {}\n");
}

#[test]
fn blanks() {
    bad("blank", 1, "crates/io/src/a.rs", "//! a \n");
    bad("blank", 1, "docs/a.md", "a\t\n");
    bad("blank", 2, "Cargo.toml", "[a]\nb = 1");
    bad("tab", 1, "crates/io/src/a.rs", "fn f() {\tg(); }\n");
    good("crates/io/src/a.rs", "const A: &str = \"\\t\";\n");
    good("crates/host/tests/root/sys/size", "1024 ");
    good("crates/job/tests/odd.ini", "bs=4k \t");
    good("docs/a.md", "");
}

#[test]
fn links() {
    bad("link", 1, "docs/a.md", "see [b](gone.md)\n");
    bad("link", 1, "docs/a.md", "see [b](gone.md#part \"title\") and [c](there.md)\n");
    bad("link", 1, "README.md", "![b](there.md)\n");
    bad("link", 1, "docs/a.md", "[b]: gone.md\n");
    bad("link", 1, "docs/a.md", "[b](../../README.md)\n");
    bad("link", 4, "docs/a.md", "```\n[b](gone.md)\n```\n[b](gone.md)\n");
    good("docs/a.md", "[b](there.md#part) [c](../README.md) [d](#here) [e](/docs/there.md)\n");
    good("docs/a.md", "[b](https://example.org/x.md) <mailto:a@example.org>\n");
    good("docs/a.md", "`[b](gone.md)` and\n```\n[b](gone.md)\n```\n");
    good("docs/a.md", "[b]: there.md\n");
    bad("link", 2, "ARCHITECTURE.md", "\nin `io/src/gone.rs`\n");
    good("ARCHITECTURE.md", "in `mod.rs`, `io/src/NAME.rs` and `x::{a,b}`\n");
    bad("link", 2, "crates/io/src/lib.rs", "//! In\n//! `engine/gone.rs`.\n");
    good("crates/io/src/lib.rs", "//! In `engine/mod.rs` and `io/src/engine/mod.rs`.\n");
}

#[test]
fn machine_paths() {
    let [work, root, home] = ["work", "root", "home"].map(|name| format!("/{name}/"));
    for path in [&format!("{work}a"), &format!("{root}.cargo"), &format!("{home}ann/x")] {
        bad("machine path", 1, "docs/a.md", &format!("see {path}\n"));
        bad("machine path", 1, "LICENSE", &format!("see \"{path}\"\n"));
        bad("machine path", 1, "docs/a.md", &format!("file://{path}\n"));
        good("docs/a.md", &format!("see docs{path} and {{root}}{path}\n"));
    }
    bad("machine path", 1, "crates/io/tests/a.txt", &format!("..{}", "/shared/a"));
    good("docs/a.md", &format!("{home}<name>/x and shared/a\n"));
}

#[test]
fn findings_are_sorted_by_file_and_line() {
    let text = "use std::fs;\nconst A: X = env::var(\"B\");\n#![allow(unsafe_code)]\n";
    let found = findings("crates/base/src/stat/a.rs", text);
    let order: Vec<_> = found.iter().map(|f| (f.line, f.rule)).collect();
    assert_eq!(order, [(1, "files"), (2, "environment"), (3, "unsafe")]);
}

/// The findings in a page beside a help of two verbs and a table of keys.
fn commands_of(page: &str) -> Vec<(usize, String)> {
    let help = "crates/cli/tests/cli/snapshots/cli__help__";
    let files = [
        file(
            &format!("{help}gpuio.snap"),
            "Measure:\n  bench  Run\n  top    Show\nOptions:\n  --units\n",
        ),
        file(&format!("{help}bench.snap"), "  --gpu <N>\n      [alias: --gpus]\n"),
        file(&format!("{help}top.snap"), "  --serve\n"),
        file("crates/job/src/spec/keys/a.rs", "key(\n  \"block_size\", A).or(&[\"bs\"]),"),
        file("docs/a.md", page),
    ];
    let found = super::commands::check(&files);
    found.into_iter().map(|found| (found.line, found.what)).collect()
}

#[test]
fn commands_of_pages_are_the_programs() {
    for good in [
        "`gpuio bench --gpu 0 --gpus 1 --units si --block-size=4k --bs 4k` and `gpuio top --serve`",
        "```sh\ngpuio bench --gpu 0 # --none\ngpuio top\ngpuio top -- --none\n```\n",
        "```\nmpirun --none 4 gpuio bench --gpu 0 | tool --none\nA=1 gpuio top\nfio --none\n```\n",
        "`--gpu`, `--serve 1`, `--bs`, `--KEY=VALUE`, `--bind-to none`, `gpuio VERB --none`",
        "gpuio 0.1.0\n\n`gpuio 0.1.0  host`, `fio --none`, `cargo xtask lab --none`\n",
    ] {
        assert_eq!(commands_of(good), [], "{good}");
    }
    let one = |page: &str, line: usize, part: &str| {
        let found = commands_of(page);
        let is_it = found.len() == 1 && found[0].0 == line && found[0].1.contains(part);
        assert!(is_it, "{page}: {found:?}");
    };
    one("a\n`gpuio\ntour`", 2, "`gpuio tour`");
    one("a `b` c\n\n`--none`\n", 3, "`--none` is a flag of no verb");
    one("`gpuio top --gpu 0`", 1, "`--gpu` is no flag of `gpuio top`");
    one("`gpuio top --bs 4k`", 1, "`--bs` is no flag of `gpuio top`");
    one("```sh\ntop\ngpuio bench \\\n  --none\n```\n", 3, "`--none`");
    one("```\n$ gpuio top && /usr/bin/gpuio bench --none\n```\n", 2, "`--none`");
    one("```\nA=1 mpirun -n 4 gpuio bench --none\n```\n", 2, "`--none`");
    let found = commands_of("`gpuio none`\n\n```\ngpuio none\n```\n");
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn the_lab_book_keeps_its_commands() {
    let help = "crates/cli/tests/cli/snapshots/cli__help__gpuio.snap";
    let old = file("docs/lab-book/a.md", "`gpuio none`");
    assert_eq!(super::commands::check(&[file(help, "  top  Show\n"), old]), []);
}

#[test]
fn sentences_start_with_the_thing() {
    let (rule, path) = ("sentence", "crates/io/src/a.rs");
    for word in ["Of", "What", "Whose"] {
        bad(rule, 1, path, &format!("/// {word} it takes.\n"));
        bad(rule, 2, path, &format!("//! The size.\n//! {word} it takes.\n"));
        bad(rule, 1, path, &format!("let a = 1; // One. ({word} it takes.)\n"));
        bad(rule, 2, path, &format!("//!\n//! - **{word}** it takes\n"));
        bad(rule, 2, path, &format!("let a = \"The size. \\\n         {word} it takes\";\n"));
        bad(rule, 1, path, &format!("let a = \"One:\\n\\n{word} it takes\";\n"));
        bad(rule, 2, path, &format!("let a = r#\"\"a\"\n{word} it takes\"#;\n"));
        bad(rule, 2, path, &format!("let a = ('\"', '\\'', b\"\\\"\");\n// {word} it takes\n"));
        good(path, &format!("/// The size: `{word} it takes`.\n"));
        good(path, &format!("/// The size\n/// {word} it takes.\n"));
        good(path, &format!("/// ```\n/// {word} it takes\n/// ```\n"));
        good(path, &format!("enum {word}<'a> {{ A(&'a str) }}\nlet a = {word}::A(\"\");\n"));
        good(
            path,
            &format!("let a = [\"{word}\", \"| {word} |\", \"{word}::A b\", \"{word}ten a\"];\n"),
        );
    }
}

#[test]
fn pages_may_ask() {
    let page = |text: &str| {
        let found = sentences::of_page(&file("docs/a.md", text));
        found.into_iter().map(|one| one.line).collect::<Vec<_>>()
    };
    let what = "What";
    assert_eq!(page(&format!("# {what} limits it\n\n{what} is\nslow?\n")), [1]);
    assert_eq!(page(&format!("A list:\n- {what} is slow.\n- It is. {what} is it?\n")), [2]);
    assert_eq!(page(&format!("| {what} | {what} it is |\n\n```\n{what} is\n```\n")), [1]);
    assert_eq!(page(&format!("The size.\n{what}'s slow: a page.\n")), [2]);
    let pages = ["README.md", "docs/a.md", "docs/a/b.md", "crates/a.md", "docs/a.html"];
    assert_eq!(pages.map(sentences::is_page), [true, true, false, false, false]);
}

/// The circles among these files of one crate.
fn circles_of(sources: &[(&str, &str)]) -> Vec<String> {
    let path = |inside: &str| format!("crates/io/src/{inside}.rs");
    let files: Vec<File> = sources.iter().map(|(inside, text)| file(&path(inside), text)).collect();
    circles::check(&files).into_iter().map(|found| found.what).collect()
}

/// The circles among five files, each of which needs the next; `a` by this code, or not.
fn circles_by(code: &str) -> Vec<String> {
    circles_of(&[
        ("lib", "mod a;\nmod b;\nmod c;\nmod d;\nmod e;\n"),
        ("a", &format!("{code}\npub(crate) struct A;\n")),
        ("b", "use crate::c::C;\npub(crate) struct B;\nmacro_rules! bee { () => {} }\n"),
        ("c", "use super::d::D;\npub(crate) struct C;\n"),
        ("d", "use crate::e;\npub(crate) struct D;\nfn d() { e::E::new(); }\n"),
        ("e", "impl E { fn new() { crate::a::A; } }\npub(crate) struct E;\n"),
    ])
}

#[test]
fn a_circle_of_five_files_is_found() {
    for code in [
        "use crate::b::B;",
        "use crate::{c::{self}, b::{B as C}};",
        "use crate::b;\nfn a(it: &b::B) {}",
        "use super::b::*;\nfn a(it: B) {}",
        "fn a() -> crate::b::B { B }",
        "fn a<'a>() { let _ = ('\"', '\\'', 0..super::b::B); }",
        "mod inside { use super::super::b::B; }",
        "#[cfg(test)]\nmod tests { use super::*; }\nuse crate::b::B;",
        "fn a() { bee!(); }",
    ] {
        let found = circles_by(code);
        assert_eq!(found.len(), 1, "{code}");
        assert!(found[0].starts_with("5 files need each other"), "{found:?}");
        assert!(found[0].contains("a.rs, b.rs, c.rs, d.rs, e.rs. A shortest circle: a.rs -"));
        assert!(
            found[0].contains("-> c.rs -super::d::D-> d.rs -e::E::new-> e.rs -crate::a::A-> a")
        );
    }
}

#[test]
fn only_shipped_code_makes_circles() {
    for code in [
        "",
        "use crate::b;",
        "use std::b::B;",
        "// use crate::b::B;\n/* crate::b::B */\nconst A: &str = \"crate::b::B\";",
        "#[cfg(test)]\nuse crate::b::B;",
        "#[cfg(test)]\nmod tests { use crate::b::B; }",
        "#[cfg(all(test, unix))]\nfn a(it: crate::b::B) { { it } }",
    ] {
        assert_eq!(circles_by(code), Vec::<String>::new(), "{code}");
    }
    let four = [("lib", ""), ("a", "use crate::b::B;"), ("b", "use crate::c::C;")];
    let four = four.into_iter().chain([("c", "use crate::d::D;"), ("d", "use crate::a::A;")]);
    assert_eq!(circles_of(&four.collect::<Vec<_>>()), Vec::<String>::new());
}

#[test]
fn a_module_and_its_parts_are_no_circle() {
    let parts = ["m/a", "m/b", "m/c", "m/d"];
    let table = "mod a;\nmod b;\npub use c::Shown;\npub struct Row;\nstatic ALL: [Row; 4] = \
                 [a::ROW, b::ROW, c::ROW, d::ROW];\n";
    let part = "use super::Row;\npub const ROW: Row = Row;\npub struct Shown;\n";
    let mut files = vec![("lib", ""), ("m/mod", table), ("other", "pub struct Other;\n")];
    files.extend(parts.map(|part_path| (part_path, part)));
    assert_eq!(circles_of(&files), Vec::<String>::new());
    // A part needs a file that needs the module, and so all of its parts.
    files[2].1 = "use crate::m::Row;\npub struct Other;\n";
    for (_, text) in &mut files[3..] {
        *text = "use super::Row;\nuse crate::other::Other;\npub const ROW: Row = Row;\n";
    }
    let found = circles_of(&files);
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("6 files need each other"), "{found:?}");
    // One of the parts alone, by the name that the module gives it.
    files[2].1 = "use crate::m::Shown;\npub struct Other;\n";
    files[5].1 = part;
    assert_eq!(circles_of(&files), Vec::<String>::new());
}
