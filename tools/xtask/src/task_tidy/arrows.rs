//! A crate may use only the crates that ARCHITECTURE.md lists before it.

use serde_json::Value;

use super::Finding;
use super::architecture::Rules;

const RULE: &str = "arrow";
const PREFIX: &str = "gpuio-";

/// One of our crates and those of ours that it is built with, without the `gpuio-` of the package
/// name. Dev-dependencies are not among them: tests may use any crate.
pub(super) struct Package {
    pub(super) manifest: String,
    pub(super) name: String,
    pub(super) uses: Vec<String>,
}

pub(super) fn check(rules: &Rules, packages: &[Package]) -> Vec<Finding> {
    packages.iter().flat_map(|package| check_one(rules, package)).collect()
}

fn check_one(rules: &Rules, package: &Package) -> Vec<Finding> {
    let user = &package.name;
    let finding = |what: String| Finding::new(&package.manifest, 1, RULE, what);
    let Some(at) = rules.crates.iter().position(|name| name == user) else {
        return vec![finding(format!(
            "`{user}` is not in the table of crates in ARCHITECTURE.md, add it behind all that it \
             uses"
        ))];
    };
    let before = &rules.crates[..at];
    let wrong = package.uses.iter().filter(|used| !before.contains(used));
    wrong
        .map(|used| {
            finding(format!(
                "`{user}` may not use `{used}`, which comes after it in the table of crates in \
                 ARCHITECTURE.md: move the code to a later crate, or pass a value in"
            ))
        })
        .collect()
}

/// The packages in `cargo metadata`'s output. `gpuio` is the package in `crates/cli`.
pub(super) fn read(metadata: &Value, root: &str) -> Vec<Package> {
    let all = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let ours = all.iter().filter_map(|package| {
        let manifest = package["manifest_path"].as_str()?.strip_prefix(root)?;
        let manifest = manifest.trim_start_matches('/');
        let name = manifest.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
        let dependencies = package["dependencies"].as_array().map_or(&[][..], Vec::as_slice);
        let built_with = dependencies.iter().filter(|one| one["kind"] != "dev");
        let needs = built_with.filter_map(|one| one["name"].as_str());
        let names = needs.filter_map(|name| name.strip_prefix(PREFIX));
        Some(Package {
            manifest: manifest.to_owned(),
            name: name.to_owned(),
            uses: names.map(str::to_owned).collect(),
        })
    });
    ours.collect()
}
