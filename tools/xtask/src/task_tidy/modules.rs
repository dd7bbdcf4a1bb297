//! The modules of a crate, and which file each name in their code is from.
//!
//! Reads tokens, not the syntax: `use` declarations, definitions, and paths of two names or more
//! (`state::Cell`). Methods say no module, so a call of one counts nothing; its type's name does.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::architecture::is_test_file;
use super::rust::is_name;
use super::{File, prose};

/// `crate::a::B` as `["crate", "a", "B"]`.
type Names<'a> = Vec<&'a str>;

/// How often one name may stand for another: re-exports of re-exports.
const MOST_STEPS: usize = 12;

/// Words before the name of a definition.
const DEFINING: [&str; 8] = ["fn", "struct", "enum", "union", "trait", "type", "const", "static"];

/// The code of one file of a crate, without its tests.
pub(super) struct Source {
    /// From the repository root.
    pub(super) file: String,
    /// The module that the file is, from the crate's root: `a/b.rs` and `a/b/mod.rs` are `a`, `b`.
    pub(super) module: Vec<String>,
    code: String,
}

/// The sources of every crate below `crates/`, by crate.
pub(super) fn sources(files: &[File]) -> BTreeMap<&str, Vec<Source>> {
    let mut crates: BTreeMap<&str, Vec<Source>> = BTreeMap::new();
    for file in files.iter().filter(|file| !is_test_file(&file.path)) {
        let inside = file.path.strip_prefix("crates/").and_then(|path| path.split_once("/src/"));
        let Some((name, inside)) = inside else { continue };
        let Some(inside) = inside.strip_suffix(".rs") else { continue };
        let mut module: Vec<String> = inside.split('/').map(str::to_owned).collect();
        if module.last().is_some_and(|last| last == "mod") || ["lib", "main"].contains(&inside) {
            module.pop();
        }
        let code = prose::code_of_rust(&file.text);
        crates.entry(name).or_default().push(Source { file: file.path.clone(), module, code });
    }
    crates
}

/// The files that each file names something of, by their places in `sources`, with a name of each.
pub(super) fn uses(sources: &[Source]) -> Vec<BTreeMap<usize, String>> {
    let modules: Vec<Module<'_>> = sources.iter().map(|source| read(&source.code)).collect();
    let paths = sources.iter().enumerate().map(|(at, source)| (source.module.as_slice(), at));
    let all = Crate { sources, modules: &modules, by_path: paths.collect() };
    (0..sources.len()).map(|at| all.uses(at)).collect()
}

/// The names that one file declares and uses.
#[derive(Debug, Default)]
struct Module<'a> {
    items: HashSet<&'a str>,
    macros: HashSet<&'a str>,
    imports: HashMap<&'a str, Vec<Names<'a>>>,
    /// `use a::*`
    globs: Vec<Names<'a>>,
    /// Names that are public here and defined elsewhere: a use only if the file itself has them.
    exported: Vec<(&'a str, Names<'a>)>,
    /// Other imports, and paths in code.
    used: Vec<Names<'a>>,
    /// Names that stand alone, and the first of each path.
    words: BTreeSet<&'a str>,
    called_macros: BTreeSet<&'a str>,
}

/// Where a name leads, by the file's place in the list of sources.
#[derive(Clone, Copy)]
enum Target {
    Module(usize),
    Item(usize),
}

struct Crate<'a> {
    sources: &'a [Source],
    modules: &'a [Module<'a>],
    by_path: HashMap<&'a [String], usize>,
}

impl Crate<'_> {
    fn uses(&self, at: usize) -> BTreeMap<usize, String> {
        let module = &self.modules[at];
        let mut uses = BTreeMap::new();
        let mut found = |target: Option<Target>, name: String| match target {
            Some(Target::Item(file)) if file != at => {
                uses.entry(file).or_insert(name);
            }
            _ => {}
        };
        for names in &module.used {
            found(self.resolve(at, names, MOST_STEPS), names.join("::"));
        }
        for (name, names) in &module.exported {
            if module.words.contains(name) {
                found(self.resolve(at, names, MOST_STEPS), names.join("::"));
            }
        }
        for names in &module.globs {
            match self.resolve(at, names, MOST_STEPS) {
                Some(Target::Module(from)) => {
                    let foreign = |word: &&&str| {
                        !module.items.contains(**word) && !module.imports.contains_key(**word)
                    };
                    for word in module.words.iter().filter(foreign) {
                        found(self.look_up(from, word, MOST_STEPS), (*word).to_owned());
                    }
                }
                item => found(item, names.join("::")),
            }
        }
        for name in &module.called_macros {
            let defined = self.modules.iter().position(|other| other.macros.contains(name));
            if !module.macros.contains(name) {
                found(defined.map(Target::Item), format!("{name}!"));
            }
        }
        uses
    }

    fn parent(&self, at: usize) -> Option<usize> {
        let (_, parent) = self.sources[at].module.split_last()?;
        self.by_path.get(parent).copied()
    }

    /// Where a path leads that is written in module `at`; none for other crates.
    fn resolve(&self, at: usize, names: &[&str], steps: usize) -> Option<Target> {
        let (first, mut rest) = names.split_first()?;
        let mut target = match *first {
            "crate" => Target::Module(self.by_path.get(&[][..]).copied()?),
            "self" => Target::Module(at),
            "super" => Target::Module(self.parent(at)?),
            name => self.look_up(at, name, steps)?,
        };
        while let (Target::Module(module), Some((name, after))) = (target, rest.split_first()) {
            target = match *name {
                "super" => Target::Module(self.parent(module)?),
                // A name that nothing declares: made by a macro of that file.
                name => self.look_up(module, name, steps).unwrap_or(Target::Item(module)),
            };
            rest = after;
        }
        Some(target)
    }

    /// The thing that `name` is in module `at`.
    fn look_up(&self, at: usize, name: &str, steps: usize) -> Option<Target> {
        let steps = steps.checked_sub(1)?;
        let mut child = self.sources[at].module.clone();
        child.push(name.to_owned());
        if let Some(&child) = self.by_path.get(child.as_slice()) {
            return Some(Target::Module(child));
        }
        let module = &self.modules[at];
        if module.items.contains(name) {
            return Some(Target::Item(at));
        }
        let imports = module.imports.get(name).into_iter().flatten();
        let imported = |names: &Names<'_>| self.resolve(at, names, steps);
        imports.into_iter().find_map(imported).or_else(|| {
            module.globs.iter().find_map(|names| match self.resolve(at, names, steps)? {
                Target::Module(from) => self.look_up(from, name, steps),
                Target::Item(_) => None,
            })
        })
    }
}

fn read(code: &str) -> Module<'_> {
    let tokens = without_tests(&tokens(code));
    let mut reader = Reader { tokens: &tokens, at: 0, depth: 0, inline: Vec::new() };
    let mut module = Module::default();
    while reader.at < tokens.len() {
        reader.step(&mut module);
    }
    module
}

/// Names, `::`, `..` and other characters. Lifetimes are left out.
fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let name = |text: &str| text.find(|c| !is_name(c)).unwrap_or(text.len());
        let length = match first {
            '\'' => 1 + name(&rest[1..]),
            _ if is_name(first) => name(rest),
            _ if rest.starts_with("::") || rest.starts_with("..") => 2,
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        if first != '\'' {
            tokens.push(token);
        }
        rest = after.trim_start();
    }
    tokens
}

/// Leaves out what is compiled into tests only.
fn without_tests<'a>(tokens: &[&'a str]) -> Vec<&'a str> {
    let mut shipped = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let attribute = &tokens[at..];
        let of_tests = attribute.starts_with(&["#", "[", "cfg", "(", "test"])
            || attribute.starts_with(&["#", "[", "cfg", "(", "all", "(", "test"]);
        if of_tests {
            at = item_end(tokens, at);
        } else {
            shipped.push(tokens[at]);
            at += 1;
        }
    }
    shipped
}

/// The place behind an item, a field or a statement and the attributes before it.
fn item_end(tokens: &[&str], mut at: usize) -> usize {
    while tokens.get(at) == Some(&"#") {
        at = group_end(tokens, at + 1);
    }
    while let Some(&token) = tokens.get(at) {
        match token {
            ";" | "," => return at + 1,
            "{" => return group_end(tokens, at),
            "(" | "[" => at = group_end(tokens, at),
            "}" => return at,
            _ => at += 1,
        }
    }
    at
}

/// The place behind the bracket that closes the one at `at`.
fn group_end(tokens: &[&str], at: usize) -> usize {
    let mut depth = 0_usize;
    for (nth, token) in tokens.iter().enumerate().skip(at) {
        match *token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return nth + 1;
        }
    }
    tokens.len()
}

struct Reader<'t, 'a> {
    tokens: &'t [&'a str],
    at: usize,
    depth: usize,
    /// The depths of the `mod NAME { … }` around this place.
    inline: Vec<usize>,
}

impl<'a> Reader<'_, 'a> {
    fn token(&self, at: usize) -> &'a str {
        self.tokens.get(at).copied().unwrap_or_default()
    }

    fn step(&mut self, module: &mut Module<'a>) {
        let token = self.token(self.at);
        let (next, after) = (self.token(self.at + 1), self.token(self.at + 2));
        let before = self.at.checked_sub(1).map_or("", |at| self.token(at));
        match token {
            "{" => self.depth += 1,
            "}" => {
                if self.inline.last() == Some(&self.depth) {
                    self.inline.pop();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            "mod" if after == "{" => {
                self.depth += 1;
                self.inline.push(self.depth);
                self.at += 2;
            }
            // `mod name;`
            "mod" => self.at += 1,
            "use" if next != "<" => return self.import(module),
            "macro_rules" => {
                module.macros.insert(after);
                self.at += 2;
            }
            _ if DEFINING.contains(&token) && self.depth == 0 => {
                module.items.insert(if next == "mut" { after } else { next });
            }
            _ if begins_name(token) && ![".", "::"].contains(&before) => {
                return self.path(module);
            }
            _ => {}
        }
        self.at += 1;
    }

    /// A path in code, or a name that stands alone.
    fn path(&mut self, module: &mut Module<'a>) {
        let first = self.token(self.at);
        let mut names = vec![first];
        self.at += 1;
        while self.token(self.at) == "::" && begins_name(self.token(self.at + 1)) {
            names.push(self.token(self.at + 1));
            self.at += 2;
        }
        module.words.insert(first);
        if names.len() > 1 {
            module.used.push(self.of_file(names));
        } else if self.token(self.at) == "!" {
            module.called_macros.insert(first);
        }
    }

    /// The path as the file's own module would write it: a `mod NAME { … }` is one level deeper.
    fn of_file(&self, mut names: Names<'a>) -> Names<'a> {
        for _ in &self.inline {
            if names.first() == Some(&"super") {
                names[0] = "self";
                if names.get(1) == Some(&"super") {
                    names.remove(0);
                }
            }
        }
        names
    }

    fn import(&mut self, module: &mut Module<'a>) {
        let public = ["pub", ")"].contains(&self.at.checked_sub(1).map_or("", |at| self.token(at)));
        self.at += 1;
        let mut all = Vec::new();
        self.tree(&mut Vec::new(), &mut all);
        for (names, name) in all {
            let names = self.of_file(names);
            if name == "*" {
                module.globs.push(names);
                continue;
            }
            module.imports.entry(name).or_default().push(names.clone());
            if public {
                module.exported.push((name, names));
            } else {
                module.used.push(names);
            }
        }
    }

    /// The paths of a `use` tree behind `before`, each with the name that it gets.
    fn tree(&mut self, before: &mut Names<'a>, all: &mut Vec<(Names<'a>, &'a str)>) {
        let length = before.len();
        while self.at < self.tokens.len() {
            let token = self.token(self.at);
            self.at += 1;
            match token {
                "::" => {}
                "{" => {
                    while !["}", ""].contains(&self.token(self.at)) {
                        self.tree(before, all);
                        self.at += usize::from(self.token(self.at) == ",");
                    }
                    self.at += 1;
                    break;
                }
                "*" => {
                    all.push((before.clone(), "*"));
                    break;
                }
                name => {
                    before.push(name);
                    if self.token(self.at) == "::" {
                        continue;
                    }
                    if name == "self" && before.len() > 1 {
                        before.pop();
                    }
                    let mut known = before.last().copied().unwrap_or_default();
                    if self.token(self.at) == "as" {
                        known = self.token(self.at + 1);
                        self.at += 2;
                    }
                    all.push((before.clone(), known));
                    break;
                }
            }
        }
        before.truncate(length);
    }
}

fn begins_name(token: &str) -> bool {
    token.starts_with(|c: char| c == '_' || c.is_alphabetic())
}
