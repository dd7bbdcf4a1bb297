use super::functions::{functions, test_lines};
use super::mask::mask;
use super::*;

/// The lines of ARCHITECTURE.md that the rules read, in miniature.
const PAGE: &str = "\
| Crate | What it does | May use |
| --- | --- | --- |
| `cli` | verbs | `io`, `units` |
| `io` | moves bytes | `units` |
| `units` | sizes | |

`unsafe` is allowed in `io`, and in `host/src/residency.rs`
only.
";

fn file(path: &str, text: &str) -> File {
    File { path: path.to_owned(), text: text.to_owned() }
}

fn findings(path: &str, text: &str) -> Vec<Finding> {
    let files = [file("ARCHITECTURE.md", PAGE), file(path, text)];
    check(&files, &|path| path == "docs/there.md" || path == "README.md").unwrap()
}

/// Asserts that the sample breaks exactly this rule, on this line.
#[track_caller]
fn bad(rule: &str, line: usize, path: &str, text: &str) {
    let found = findings(path, text);
    let rules: Vec<_> = found.iter().map(|f| (f.rule, f.line)).collect();
    assert_eq!(rules, [(rule, line)], "{found:#?}");
    assert!(found[0].what.contains([':', ',']), "says what to do: {}", found[0].what);
}

#[track_caller]
fn good(path: &str, text: &str) {
    assert_eq!(findings(path, text), []);
}

#[test]
fn arrows() {
    let path = "crates/io/Cargo.toml";
    bad("arrow", 2, path, "[dependencies]\ngpuio-cli.workspace = true\n");
    bad("arrow", 2, path, "[dependencies]\ngpuio-cli = { path = \"../cli\" }\n");
    bad("arrow", 2, path, "[dependencies]\nx = { package = \"gpuio-cli\", path = \"../cli\" }\n");
    bad("arrow", 1, path, "[dependencies.gpuio-cli]\nworkspace = true\n");
    bad("arrow", 2, path, "[build-dependencies]\ngpuio-cli.workspace = true\n");
    bad("arrow", 2, path, "[target.'cfg(unix)'.dependencies]\ngpuio-cli.workspace = true\n");
    bad("arrow", 2, "crates/units/Cargo.toml", "[dependencies]\ngpuio-io.workspace = true\n");
    bad("arrow", 1, "crates/extra/Cargo.toml", "[package]\nname = \"gpuio-extra\"\n");
    good(path, "[dependencies]\ngpuio-units.workspace = true\nlibc.workspace = true\n");
    good(path, "[dev-dependencies]\ngpuio-cli.workspace = true\n");
    good(path, "[target.'cfg(unix)'.dev-dependencies]\ngpuio-cli.workspace = true\n");
    good(path, "[dev-dependencies.gpuio-cli]\nworkspace = true\n");
    good(path, "[dependencies]\n# gpuio-cli.workspace = true\n\n[lints]\nworkspace = true\n");
    good("crates/cli/Cargo.toml", "[dependencies]\ngpuio-io.workspace = true\n");
}

#[test]
fn the_page_must_hold_the_rules() {
    let no_arrows = [file("ARCHITECTURE.md", "`unsafe` is allowed in `io`.\n")];
    assert!(check(&no_arrows, &|_| true).is_err());
    let no_unsafe = [file("ARCHITECTURE.md", PAGE.split_once("\n\n").unwrap().0)];
    assert!(check(&no_unsafe, &|_| true).is_err());
    assert!(check(&[], &|_| true).is_err());
}

#[test]
fn the_page_of_this_repository_is_understood() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let rules = architecture::Rules::read(&page).unwrap();
    assert_eq!(rules.arrows["record"], ["stat", "units"]);
    assert_eq!(rules.arrows["units"], Vec::<String>::new());
    assert!(rules.unsafe_paths.contains(&"crates/gpu/".to_owned()));
    assert!(rules.unsafe_paths.contains(&"crates/load/src/run/rusage.rs".to_owned()));
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
fn function_length() {
    let body = |lines: usize| format!("fn f() {{\n{}}}\n", "    a();\n".repeat(lines - 2));
    bad("function length", 1, "crates/io/src/a.rs", &body(71));
    bad("function length", 2, "crates/io/src/a.rs", &format!("//! a\n{}", body(71)));
    good("crates/io/src/a.rs", &body(70));
    good("crates/io/src/a.rs", &format!("{}{}", body(70), body(70)));
}

#[test]
fn file_length() {
    let lines = |count: usize| "// a\n".repeat(count);
    bad("file length", 1, "crates/io/src/a.rs", &lines(501));
    bad("file length", 1, "crates/io/src/a.rs", &format!("// tidy: table,\n{}", lines(500)));
    bad("file length", 1, "crates/io/src/a.rs", &format!("{}// tidy: table, x\n", lines(500)));
    good("crates/io/src/a.rs", &lines(500));
    good("crates/io/src/a.rs", &format!("//! a\n// tidy: table, one row a key\n{}", lines(500)));
    for test in [
        "examples/a.rs",
        "src/tests.rs",
        "src/test.rs",
        "tests/a.rs",
        "src/a_test.rs",
        "src/a_tests.rs",
    ] {
        good(&format!("crates/io/{test}"), &lines(501));
    }
}

#[test]
fn file_names() {
    for name in ["common", "util", "utils", "util_io", "misc", "helpers", "util/a", "common/mod"] {
        bad("file name", 1, &format!("crates/io/src/{name}.rs"), "//! a\n");
    }
    good("crates/io/src/utility_room.rs", "//! a\n");
    good("crates/io/src/uncommon.rs", "//! a\n");
}

#[test]
fn clocks() {
    let call = "fn f() {\n    let t = Instant::now();\n}\n";
    bad("clock", 2, "crates/stat/src/a.rs", call);
    bad("clock", 1, "crates/io/src/a.rs", "use std::time::Instant;\n");
    bad("clock", 1, "crates/load/src/a.rs", "const N: fn() -> T = std::time::SystemTime::now;\n");
    for path in [
        "crates/io/src/clock.rs",
        "crates/cli/src/a.rs",
        "crates/load/src/run/a.rs",
        "crates/load/src/run.rs",
        "crates/softgpu/src/a.rs",
        "crates/stat/src/tests.rs",
        "crates/stat/tests/a.rs",
        "xtask/src/a.rs",
    ] {
        good(path, call);
    }
    good(
        "crates/stat/src/a.rs",
        "// Instant::now() is slow\nconst A: &str = \"Instant::now()\";\n",
    );
    good("crates/stat/src/a.rs", "fn f() {\n    MyInstant::now();\n}\n");
}

#[test]
fn environment() {
    bad("environment", 1, "crates/load/src/a.rs", "const A: X = std::env::var_os;\n");
    bad("environment", 1, "crates/gpu/src/a.rs", "const A: X = env::var(\"B\");\n");
    good("crates/gpu/src/a.rs", "const A: &str = env!(\"CARGO_PKG_VERSION\");\n");
    good("crates/cli/src/a.rs", "const A: X = env::var(\"B\");\n");
}

#[test]
fn files() {
    bad("files", 1, "crates/report/src/a.rs", "use std::fs;\n");
    bad("files", 1, "crates/report/src/a.rs", "const A: X = fs::read(\"a\");\n");
    bad("files", 1, "crates/gpu/src/a.rs", "const A: X = std::fs::File::open(\"a\");\n");
    bad("files", 1, "crates/spec/src/a.rs", "const A: X = OpenOptions::new();\n");
    good("crates/gpu/src/a.rs", "const A: X = rustix::fs::openat;\nconst B: X = offs::new();\n");
    good("crates/host/src/a.rs", "use std::fs;\n");
}

#[test]
fn printing() {
    for call in ["println!(\"a\")", "eprintln!()", "print!(\"a\")", "dbg!(a)"] {
        bad("print", 2, "crates/load/src/a.rs", &format!("fn f() {{\n    {call};\n}}\n"));
        good("crates/cli/src/a.rs", &format!("fn f() {{\n    {call};\n}}\n"));
    }
    good("crates/gpu/build.rs", "fn main() {\n    println!(\"cargo::rerun-if-changed=a\");\n}\n");
    good("crates/load/src/a.rs", "my_println!(1);\n");
}

#[test]
fn unwraps() {
    bad("unwrap", 1, "crates/io/src/a.rs", "fn f() { a().unwrap(); }\n");
    bad("unwrap", 3, "crates/io/src/a.rs", "// why\n\nfn f() { a().unwrap(); }\n");
    good("crates/io/src/a.rs", "// a never fails: b\nfn f() { a().unwrap(); }\n");
    good("crates/io/src/a.rs", "fn f() { a().unwrap(); } // a never fails\n");
    good(
        "crates/io/src/a.rs",
        "/// ```\n/// a().unwrap();\n/// ```\nfn f() { b().unwrap_or(1); }\n",
    );
    good(
        "crates/io/src/a.rs",
        "#[cfg(test)]\nmod tests {\n    fn f() {\n\n        a().unwrap();\n    }\n}\n",
    );
    bad(
        "unwrap",
        6,
        "crates/io/src/a.rs",
        "#[cfg(test)]\nmod tests {\n    fn f() {}\n}\n\nfn g() { a().unwrap(); }\n",
    );
}

#[test]
fn unsafe_code() {
    let call = "fn f() {\n    unsafe { g() }\n}\n";
    bad("unsafe", 2, "crates/stat/src/a.rs", call);
    bad("unsafe", 2, "crates/host/src/a.rs", call);
    bad("unsafe", 2, "xtask/src/a.rs", call);
    good("crates/io/src/a.rs", call);
    good("crates/host/src/residency.rs", call);
    good("crates/stat/src/a.rs", "#![deny(unsafe_code)]\n// unsafe\nconst A: &str = \"unsafe\";\n");
}

#[test]
fn unfinished_work() {
    let words = ["TO", "FIX", "X"].into_iter().zip(["DO", "ME", "XX"]);
    for word in words.map(|(a, b)| format!("{a}{b}")) {
        bad("unfinished", 1, "crates/io/src/a.rs", &format!("// {word}: later\n"));
        bad("unfinished", 1, "docs/a.md", &format!("{word}: later\n"));
        good("crates/io/src/a.rs", &format!("const A: &str = \"{word}\";\n"));
        good("crates/io/src/a.rs", &format!("// a{word}\n"));
    }
    bad("unfinished", 1, "crates/io/src/a.rs", "fn f() { todo!() }\n");
    bad("unfinished", 1, "crates/io/src/a.rs", "fn f() { unimplemented!() }\n");
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
    good("crates/spec/tests/odd.ini", "bs=4k \t");
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
fn findings_come_by_file_and_line() {
    let text = "fn f() { unsafe { a().unwrap() } }\n\nfn g() { println!(); }\n";
    let found = findings("crates/stat/src/a.rs", text);
    let order: Vec<_> = found.iter().map(|f| (f.line, f.rule)).collect();
    assert_eq!(order, [(1, "unsafe"), (1, "unwrap"), (3, "print")]);
}

#[test]
fn masks_keep_lines_and_columns() {
    let source = "let a = \"x // y\"; // \"z\"\nlet b = r#\"{\" \"#; /* a /* b */ c */ d\n";
    let masked = mask(source);
    let gap = |columns: usize| " ".repeat(columns);
    assert_eq!(
        masked.code,
        format!("let a = \"{}\"; {}\nlet b = r#\"   \"#;{}d\n", gap(6), gap(6), gap(19))
    );
    assert_eq!(masked.comments, format!("{}// \"z\"\n{}/* a /* b */ c */  \n", gap(18), gap(18)));
}

#[test]
fn masks_know_quotes() {
    let code = |source: &str| mask(source).code;
    assert_eq!(code("'{' '\\'' '\\u{7b}' b'}' x"), "' ' '  ' '      ' b' ' x");
    let lifetimes = "fn f<'a>(x: &'a str) { 'l: loop {} }";
    assert_eq!(code(lifetimes), lifetimes);
    assert_eq!(code(r#"a"\"{" br"\" c"{" x"#), r#"a"   " br" " c" " x"#);
    assert_eq!(code("r#fn r##\"}\"#\"## x"), "r#fn r##\"   \"## x");
    assert_eq!(code("bar\"{\" x"), "bar\" \" x");
    for broken in ["\"abc", "r#\"abc", "/* abc", "'\\", "'", "r", "\"\\"] {
        assert_eq!(code(broken).chars().count(), broken.chars().count(), "{broken}");
    }
}

#[test]
fn functions_are_found_with_their_bodies() {
    let source = "\
trait T { fn none(&self) -> [u8; 3]; }
fn one() -> [u8; { 1 + 2 }] { [0; 3] }
type F = fn(u32) -> u32;
impl X {
    fn two(
        &self,
    ) -> u32 {
        fn inner() {
        }
        let c = '{'; let s = \"{\"; // {
        3
    }
}
";
    let found = functions(&mask(source).code);
    let found: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.line, f.lines)).collect();
    assert_eq!(found, [("one", 2, 1), ("two", 5, 8), ("inner", 8, 2)]);
}

#[test]
fn test_items_are_marked_and_no_others() {
    let source = "fn a() {}\n#[cfg(test)]\nmod tests;\n\n#[test]\nfn b() {\n}\nfn c() {\n}\n";
    let marked = test_lines(source);
    let lines: Vec<_> = (1..).zip(marked).filter(|(_, test)| *test).map(|(n, _)| n).collect();
    assert_eq!(lines, [2, 5, 6, 7]);
}
