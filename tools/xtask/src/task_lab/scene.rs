//! A scene, read from its file: what it proves, machines, scripts, what must hold, planted faults.
//!
//! The file has a head of `key value` lines and sections; `#` begins a comment line:
//!
//! ```text
//! proves bench reports the rate of a drive          one line, for the list
//! group truth                                       for the list
//! limit 120                                         seconds, for all of it
//! smoke                                             it is in the smoke set
//! modules raid0                                     kernel modules it needs
//! tools mdadm@mdadm                                 programs or /files, and Debian's packages
//! objects libgpuio_softgpu.so                       gpuio's own, of the binary under test
//! set WORD=VALUE                                    a variable of the scripts
//! [machine NAME]                                    lines of `machine.rs`
//! [script NAME]                                     what the machine runs, for sh
//! [holds]                                           claims of `claim.rs`, one a line
//! [plant NAME]                                      a fault that the claims must catch
//! drive a iops-read=500                             keys of a machine's line with other values
//! set WORD=VALUE                                    a variable of the scripts
//! catches read.json#/jobs                           how a claim that then fails begins
//! ```
//!
//! A scene with several machines names each; a script belongs to the machine of its name.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail, ensure};

use super::claim::Claim;
use super::image::Wanted;
use super::kernel::Release;
use super::machine::{Line, Machine};

/// The name of the machine of a scene that has one.
const ONLY: &str = "one";

const SECTIONS: [&str; 4] = ["machine", "script", "holds", "plant"];

/// A scene as its file says.
#[derive(Debug, Clone)]
pub(super) struct Scene {
    /// The file's name without its extension.
    pub(super) name: String,
    pub(super) proves: String,
    pub(super) group: String,
    /// Seconds after which its machines are stopped.
    pub(super) limit: u64,
    pub(super) smoke: bool,
    pub(super) machines: Vec<Machine>,
    /// By the machine's name.
    pub(super) scripts: BTreeMap<String, String>,
    pub(super) holds: Vec<Claim>,
    pub(super) plants: Vec<Plant>,
    pub(super) variables: Vec<(String, String)>,
    pub(super) wanted: Wanted,
}

/// A change of the scene that at least one of its claims must notice.
#[derive(Debug, Clone)]
pub(super) struct Plant {
    pub(super) name: String,
    lines: Vec<Line>,
    variables: Vec<(String, String)>,
    /// How a claim that it breaks begins.
    pub(super) catches: String,
}

impl Scene {
    pub(super) fn read(name: &str, text: &str) -> anyhow::Result<Scene> {
        let mut scene = Scene {
            name: name.to_owned(),
            proves: String::new(),
            group: String::new(),
            limit: 120,
            smoke: false,
            machines: Vec::new(),
            scripts: BTreeMap::new(),
            holds: Vec::new(),
            plants: Vec::new(),
            variables: Vec::new(),
            wanted: Wanted::default(),
        };
        let mut section = String::new();
        for (index, line) in text.lines().enumerate() {
            let head = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
            // A script may have such lines of its own.
            let is_section = |head: &&str| SECTIONS.contains(&head.split(' ').next().unwrap_or(""));
            let head = head.filter(|head| is_section(head) || !section.starts_with("script"));
            let read = match head {
                Some(head) => {
                    section = head.to_owned();
                    scene.begin(head)
                }
                None => scene.line(&section, line),
            };
            read.with_context(|| format!("{name}.scene, line {}", index + 1))?;
        }
        scene.check().with_context(|| format!("{name}.scene"))?;
        Ok(scene)
    }

    fn begin(&mut self, head: &str) -> anyhow::Result<()> {
        let (kind, name) = head.split_once(' ').unwrap_or((head, ONLY));
        match kind {
            "machine" => self.machines.push(Machine::new(name)),
            "script" => drop(self.scripts.insert(name.to_owned(), String::new())),
            "holds" => {}
            "plant" => self.plants.push(Plant {
                name: name.to_owned(),
                lines: Vec::new(),
                variables: Vec::new(),
                catches: String::new(),
            }),
            _ => bail!("[{head}]: sections are {}", SECTIONS.join(", ")),
        }
        Ok(())
    }

    fn line(&mut self, section: &str, line: &str) -> anyhow::Result<()> {
        let (kind, name) = section.split_once(' ').unwrap_or((section, ONLY));
        if kind == "script" {
            let script = self.scripts.get_mut(name).context("no such script")?;
            script.push_str(line);
            script.push('\n');
            return Ok(());
        }
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        match kind {
            "machine" => {
                let machine = self.machines.last_mut().context("no machine")?;
                machine.lines.push(Line::read(line)?);
            }
            "holds" => self.holds.push(Claim::read(line)?),
            "plant" => self.plants.last_mut().context("no plant")?.line(line)?,
            _ => self.head(line)?,
        }
        Ok(())
    }

    fn head(&mut self, line: &str) -> anyhow::Result<()> {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        let value = value.trim();
        match key {
            "proves" => self.proves = value.to_owned(),
            "group" => self.group = value.to_owned(),
            "limit" => self.limit = value.parse().context("limit: seconds")?,
            "smoke" => self.smoke = true,
            "set" => self.variables.push(variable(value)?),
            "modules" => {
                self.wanted.modules.extend(value.split_whitespace().map(str::to_owned));
            }
            "tools" => {
                for word in value.split_whitespace() {
                    let (tool, package) = word.split_once('@').context("tools PROGRAM@PACKAGE")?;
                    self.wanted.tools.insert((tool.to_owned(), package.to_owned()));
                }
            }
            "objects" => {
                self.wanted.objects.extend(value.split_whitespace().map(str::to_owned));
            }
            _ => bail!("{key}: keys are proves, group, limit, smoke, modules, tools, objects, set"),
        }
        Ok(())
    }

    /// Whether it is complete: it says what it proves, and something shows that it can fail.
    fn check(&self) -> anyhow::Result<()> {
        ensure!(!self.proves.is_empty() && !self.group.is_empty(), "`proves` and `group` are due");
        ensure!(!self.machines.is_empty(), "it has no machine");
        ensure!(!self.holds.is_empty(), "it claims nothing: add [holds]");
        ensure!(!self.plants.is_empty(), "nothing shows that it can fail: add a [plant NAME]");
        for machine in &self.machines {
            let name = &machine.name;
            ensure!(self.scripts.contains_key(name), "machine {name:?} has no script");
            machine.release(Release::Stable)?;
        }
        for plant in &self.plants {
            let caught = |claim: &Claim| claim.text.starts_with(&plant.catches);
            let name = &plant.name;
            ensure!(!plant.catches.is_empty(), "plant {name} has no `catches`");
            ensure!(self.holds.iter().any(caught), "plant {name}: no claim begins so");
            self.with(plant)?;
        }
        Ok(())
    }

    /// Whether one of its machines is of aarch64.
    pub(super) fn needs_aarch64(&self, default: Release) -> anyhow::Result<bool> {
        let releases = self.machines.iter().map(|machine| machine.release(default));
        let releases = releases.collect::<anyhow::Result<Vec<_>>>()?;
        Ok(releases.contains(&Release::Aarch64))
    }

    pub(super) fn with(&self, plant: &Plant) -> anyhow::Result<Scene> {
        let mut scene = self.clone();
        for change in &plant.lines {
            let lines = scene.machines.iter_mut().flat_map(|machine| &mut machine.lines);
            let same = |line: &&mut Line| line.fits(change);
            let found = lines.into_iter().find(same);
            let missing = || format!("plant {}: there is no {change:?}", plant.name);
            found.with_context(missing)?.replace(change);
        }
        scene.variables.extend(plant.variables.iter().cloned());
        Ok(scene)
    }
}

impl Plant {
    fn line(&mut self, line: &str) -> anyhow::Result<()> {
        match line.split_once(' ') {
            Some(("set", rest)) => self.variables.push(variable(rest)?),
            Some(("catches", rest)) => rest.trim().clone_into(&mut self.catches),
            _ => self.lines.push(Line::read(line)?),
        }
        Ok(())
    }
}

fn variable(text: &str) -> anyhow::Result<(String, String)> {
    let (name, value) = text.trim().split_once('=').context("set NAME=VALUE")?;
    let plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "_.:-".contains(c));
    ensure!(plain(name) && plain(value), "set: letters, digits and _.:- only");
    Ok((name.to_owned(), value.to_owned()))
}
