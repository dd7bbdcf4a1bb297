//! The bill of materials: the crates in the program and its objects, as CycloneDX 1.6.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::{Job, output};

pub(crate) fn write(job: &Job) -> anyhow::Result<PathBuf> {
    let path = job.out.join(format!("gpuio-{}-{}.cdx.json", job.version, job.machine()));
    let mut cargo = Command::new(crate::cargo());
    cargo.current_dir(&job.root).args(["metadata", "--format-version", "1", "--locked"]);
    let text = output(cargo.args(["--filter-platform", &job.triple]))?;
    let bill = bill(job, &serde_json::from_str(&text)?)?;
    std::fs::write(&path, format!("{}\n", serde_json::to_string_pretty(&bill)?))?;
    Ok(path)
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

fn bill(job: &Job, metadata: &Value) -> anyhow::Result<Value> {
    let packages = list(metadata, "packages");
    let nodes = list(&metadata["resolve"], "nodes");
    let id = |name: &str| {
        packages.iter().find(|package| package["name"] == name).map(|package| &package["id"])
    };
    let mut open = vec![id("gpuio").context("no package gpuio")?];
    let mut seen = BTreeSet::new();
    while let Some(next) = open.pop() {
        if !seen.insert(next.as_str().unwrap_or_default()) {
            continue;
        }
        let node = nodes.iter().find(|node| node["id"] == *next).context("no node")?;
        let linked = |dependency: &&Value| {
            list(dependency, "dep_kinds").iter().any(|kind| kind["kind"].is_null())
        };
        open.extend(list(node, "deps").iter().filter(linked).map(|dependency| &dependency["pkg"]));
    }
    let is_other = |package: &&Value| {
        seen.contains(package["id"].as_str().unwrap_or_default()) && !package["source"].is_null()
    };
    let components: Vec<Value> = packages.iter().filter(is_other).map(component).collect();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "name": "gpuio",
                "version": job.version,
                "licenses": [{ "expression": "Apache-2.0" }],
                "properties": [{ "name": "target", "value": job.triple }],
            }
        },
        "components": components,
    }))
}

fn component(package: &Value) -> Value {
    let text = |name: &str| package[name].as_str().unwrap_or_default();
    let (name, version) = (text("name"), text("version"));
    let licence = text("license").replace('/', " OR ");
    json!({
        "type": "library",
        "name": name,
        "version": version,
        "purl": format!("pkg:cargo/{name}@{version}"),
        "licenses": [{ "expression": licence }],
    })
}
