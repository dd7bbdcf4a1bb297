//! `cargo xtask site`: the documentation as a site, below `target/site`.
//!
//! The book's sources are the pages of `docs/`, those of the root, and what the program makes: the
//! reference (commands, keys, columns, metrics, figures, variables, exit codes, checks, warnings,
//! by `gpuio generate`) and example pages, out of records of the lab book. All links are checked,
//! to pages and to headings, and every page must be in the table of contents. Then mdBook makes
//! the site. `--check` ends before that, for CI.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};

use crate::task_ci::{cargo_path, target};

mod examples;
mod links;

#[cfg(test)]
mod tests;

/// The release that `book.toml` is written for.
const MDBOOK: &str = "0.5.4";
/// The contents' places for generated pages, and for those from outside `docs/`.
const REFERENCE: &str = "<!-- reference -->\n";
const OUTSIDE: &str = "<!-- outside -->\n";
/// Pages from the root: their names there and in the book.
const FROM_ROOT: [(&str, &str, &str); 4] = [
    ("BENCHMARKS.md", "benchmarks.md", "Benchmarks"),
    ("CHANGELOG.md", "changelog.md", "Changes"),
    ("CONTRIBUTING.md", "contributing.md", "Contributing"),
    ("ARCHITECTURE.md", "architecture.md", "Architecture"),
];
/// The page of examples, and the folder of dated measurements.
const EXAMPLES: &str = "examples.md";
const LAB_BOOK: &str = "lab-book";

/// Pages by their path in the book.
type Pages = BTreeMap<String, String>;

pub(crate) fn run(root: &Path, arguments: &[String]) -> anyhow::Result<()> {
    match arguments {
        [] => make(root, None, false),
        [flag] if flag == "--check" => make(root, None, true),
        _ => bail!("site takes --check, not {arguments:?}"),
    }
}

/// Checks the links, with a program that is built already: another selection of packages would
/// build it anew.
pub(crate) fn check(root: &Path, program: &Path) -> anyhow::Result<()> {
    make(root, Some(program), true)
}

fn make(root: &Path, program: Option<&Path>, check_only: bool) -> anyhow::Result<()> {
    let site = target(root).join("site");
    let source = site.join("src");
    if source.exists() {
        std::fs::remove_dir_all(&source)?;
    }
    std::fs::create_dir_all(source.join("reference"))?;
    copy_assets(&root.join("docs"), &source)?;
    let mut pages = own_pages(root)?;
    let program = || match program {
        Some(program) => Command::new(program),
        None => {
            let mut command = Command::new(cargo_path());
            command.args(["run", "--quiet", "--manifest-path"]).arg(root.join("Cargo.toml"));
            command.args(["-p", "gpuio", "--"]);
            command
        }
    };
    let generated = generate(&program, &source.join("reference"))?;
    let generated = generated.into_iter();
    pages.extend(generated.map(|(name, text)| (format!("reference/{name}"), text)));
    let examples = examples::make(root, &source, &site.join("records"), &program)?;
    pages.insert(EXAMPLES.to_owned(), examples);
    let contents = pages.get("SUMMARY.md").context("docs/SUMMARY.md is missing")?;
    pages.insert("SUMMARY.md".to_owned(), contents_with(contents, &pages)?);
    let wrong = links::check(&pages, &|path| source.join(path).exists());
    ensure!(wrong.is_empty(), "{} links are wrong:\n{}", wrong.len(), wrong.join("\n"));
    for (name, text) in &pages {
        std::fs::write(source.join(name), text)?;
    }
    println!("site: {} pages, all links lead somewhere", pages.len());
    if check_only { Ok(()) } else { book(root, &site) }
}

/// Pages of `docs/`, of its lab book and of the root, with links between them as they are in the
/// book.
fn own_pages(root: &Path) -> anyhow::Result<Pages> {
    let mut pages = Pages::new();
    for (folder, above) in [("", "../"), (LAB_BOOK, "../../")] {
        for entry in std::fs::read_dir(root.join("docs").join(folder))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "md") {
                let name = path.file_name().context("a page has a name")?.display().to_string();
                let name = if folder.is_empty() { name } else { format!("{folder}/{name}") };
                let text = std::fs::read_to_string(&path)?;
                pages.insert(name, linked(&text, above, &above["../".len()..]));
            }
        }
    }
    for (from, name, _) in FROM_ROOT {
        let text = std::fs::read_to_string(root.join(from))?.replace("](docs/", "](");
        pages.insert(name.to_owned(), linked(&text, "", ""));
    }
    Ok(pages)
}

/// The page with its links to pages of the root, which lies at `above`, as links into the book,
/// which begins at `book`.
fn linked(page: &str, above: &str, book: &str) -> String {
    FROM_ROOT.iter().fold(page.to_owned(), |page, (from, name, _)| {
        page.replace(&format!("]({above}{from}"), &format!("]({book}{name}"))
    })
}

/// Pictures and other files that pages show.
fn copy_assets(from: &Path, to: &Path) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(from)? {
        let path = entry?.path();
        let there = to.join(path.file_name().context("a file has a name")?);
        if path.is_dir() {
            std::fs::create_dir_all(&there)?;
            copy_assets(&path, &there)?;
        } else if path.extension().is_none_or(|extension| extension != "md") {
            std::fs::copy(&path, &there)?;
        }
    }
    Ok(())
}

/// The pages that the program makes of its tables.
fn generate(program: &dyn Fn() -> Command, to: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let status = program().args(["generate", "reference"]).arg(to).status()?;
    ensure!(status.success(), "gpuio generate reference ended with {status}");
    let mut pages = Vec::new();
    for entry in std::fs::read_dir(to)? {
        let path = entry?.path();
        let name = path.file_name().context("a page has a name")?.display().to_string();
        pages.push((name, std::fs::read_to_string(&path)?));
    }
    pages.sort();
    Ok(pages)
}

/// The first line of a page without its mark.
fn title(page: &str) -> &str {
    page.lines().next().unwrap_or_default().trim_start_matches('#').trim()
}

/// The table of contents with the generated pages, those of one check or warning below its list.
fn contents_with(contents: &str, pages: &Pages) -> anyhow::Result<String> {
    let mut rows = String::new();
    for (list, parts) in [
        ("commands", None),
        ("keys", None),
        ("csv-columns", None),
        ("comparisons", None),
        ("cufile-keys", None),
        ("figures", None),
        ("texts", None),
        ("metrics", None),
        ("variables", None),
        ("exit-codes", None),
        ("checks", Some("check-")),
        ("warnings", Some("warning-")),
    ] {
        let name = format!("reference/{list}.md");
        let page = pages.get(&name).with_context(|| format!("no {name} was generated"))?;
        rows.push_str(&format!("- [{}]({name})\n", title(page)));
        let Some(start) = parts else { continue };
        let of_list =
            pages.iter().filter(|(path, _)| path.starts_with(&format!("reference/{start}")));
        for (path, page) in of_list {
            rows.push_str(&format!("  - [{}]({path})\n", title(page)));
        }
    }
    rows.push_str(&format!("- [Examples]({EXAMPLES})\n"));
    let mut outside = String::new();
    for (_, name, name_of) in FROM_ROOT {
        outside.push_str(&format!("- [{name_of}]({name})\n"));
        // The measurements behind the figures.
        let lab_book = pages.iter().filter(|(path, _)| path.starts_with(LAB_BOOK));
        for (path, page) in lab_book.filter(|_| name == "benchmarks.md") {
            outside.push_str(&format!("  - [{}]({path})\n", title(page)));
        }
    }
    ensure!(contents.contains(REFERENCE) && contents.contains(OUTSIDE), "no place in SUMMARY.md");
    Ok(contents.replace(REFERENCE, &rows).replace(OUTSIDE, &outside))
}

/// Makes the site with mdBook, which is built once.
fn book(root: &Path, site: &Path) -> anyhow::Result<()> {
    let tools = target(root).join("site-tools");
    let mdbook: PathBuf = tools.join("bin/mdbook");
    if !mdbook.exists() {
        println!("mdBook is not installed: building {MDBOOK}, some minutes");
        let mut install = Command::new(cargo_path());
        install.args(["install", "mdbook", "--locked", "--version", MDBOOK, "--root"]);
        install.arg(&tools).env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1");
        ensure!(install.status()?.success(), "mdBook could not be built");
    }
    let settings = "[book]\ntitle = \"gpuio\"\nlanguage = \"en\"\nsrc = \"src\"\n\n\
                    [output.html]\nno-section-label = true\n";
    std::fs::write(site.join("book.toml"), settings)?;
    let status = Command::new(&mdbook).arg("build").arg(site).status()?;
    ensure!(status.success(), "mdbook ended with {status}");
    println!("site: {}", site.join("book/index.html").display());
    Ok(())
}
