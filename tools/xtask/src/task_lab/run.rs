//! One run of a scene: its machines from their start to their end, and what they ask for.
//!
//! Machines and host share a directory (9p). `share/out` has the results. A file in `share/ask` is
//! a request; the host acts and answers with `NAME.done`:
//!
//! ```text
//! power-loss                    QEMU is killed and the machine boots again, with BOOT one higher
//! unplug DRIVE                  the drive is taken out
//! throttle DRIVE KEY=VALUE…     other rates, keys as in QMP: iops, iops_rd, bps_wr, …
//! counters NAME                 QEMU's counters of its drives, as NAME.json
//! pause MACHINE, resume MACHINE the machine stands still
//! ```

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde_json::{Map, Value, json};

use super::image::{Image, Images};
use super::machine::Parts;
use super::scene::Scene;
use super::vm::{Boot, Running};

const LOOK: Duration = Duration::from_millis(50);

/// A scene's machines and their directory.
pub(super) struct Run<'a> {
    scene: &'a Scene,
    images: &'a Images,
    accelerator: &'a str,
    dir: PathBuf,
    parts: Vec<Parts>,
    /// Boots so far, by machine.
    boots: Vec<u32>,
    running: Vec<Option<Running>>,
}

impl<'a> Run<'a> {
    /// Makes the directory with the disk images; one of an earlier run is removed.
    pub(super) fn new(
        scene: &'a Scene,
        images: &'a Images,
        accelerator: &'a str,
        dir: PathBuf,
    ) -> anyhow::Result<Run<'a>> {
        if dir.exists() {
            fs::remove_dir_all(&dir)?;
        }
        for sub in ["share/out", "share/ask"] {
            fs::create_dir_all(dir.join(sub))?;
        }
        let lines = scene.variables.iter().map(|(name, value)| format!("export {name}={value}\n"));
        fs::write(dir.join("share/variables"), lines.collect::<String>())?;
        for (name, text) in &scene.scripts {
            fs::write(dir.join(format!("share/script.{name}")), text)?;
        }
        let mut parts = Vec::new();
        for (index, machine) in scene.machines.iter().enumerate() {
            let is_first = |link: &str| {
                !scene.machines[..index].iter().any(|other| other.links().any(|name| name == link))
            };
            let one = machine.parts(index, &is_first);
            parts.push(one.with_context(|| format!("machine {}", machine.name))?);
        }
        for (index, (name, size)) in parts.iter().flat_map(|one| &one.images).enumerate() {
            let mut earlier = parts.iter().flat_map(|one| &one.images).take(index);
            ensure!(!earlier.any(|(other, _)| other == name), "two drives are called {name}");
            File::create(dir.join(name))?.set_len(bytes(size)?)?;
        }
        let count = parts.len();
        let running = (0..count).map(|_| None).collect();
        Ok(Run { scene, images, accelerator, dir, parts, boots: vec![0; count], running })
    }

    /// Boots the machines and serves them until all have ended.
    ///
    /// # Errors
    /// A machine ended before its script did, a request failed, or the time is over.
    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        let result = self.serve();
        // The power goes, before the files do.
        self.running.clear();
        for (name, _) in self.parts.iter().flat_map(|parts| &parts.images) {
            let _ = fs::remove_file(self.dir.join(name));
        }
        result
    }

    fn serve(&mut self) -> anyhow::Result<()> {
        let until = Instant::now() + Duration::from_secs(self.scene.limit);
        for index in 0..self.parts.len() {
            self.boot(index)?;
        }
        loop {
            self.answer()?;
            let mut all = true;
            for (index, machine) in self.scene.machines.iter().enumerate() {
                let Some(running) = &mut self.running[index] else { continue };
                if !running.has_ended()? {
                    all = false;
                    continue;
                }
                let end = self.dir.join(format!("share/ask/{}.end", machine.name));
                ensure!(end.exists(), "machine {} ended before its script did", machine.name);
                self.running[index] = None;
            }
            if all {
                return Ok(());
            }
            ensure!(Instant::now() < until, "not over after {} s: stopped", self.scene.limit);
            std::thread::sleep(LOOK);
        }
    }

    fn boot(&mut self, index: usize) -> anyhow::Result<()> {
        self.boots[index] += 1;
        let machine = &self.scene.machines[index].name;
        let boot = Boot {
            machine,
            number: self.boots[index],
            accelerator: self.accelerator,
            shell: false,
        };
        self.running[index] =
            Some(Running::start(&self.dir, self.image(index)?, &self.parts[index], &boot)?);
        Ok(())
    }

    /// Boots one machine with its console on the terminal, without its script.
    pub(super) fn shell(&self, machine: &str) -> anyhow::Result<()> {
        let machines = &self.scene.machines;
        let index = machines.iter().position(|one| one.name == machine);
        let names = machines.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", ");
        let index = index.with_context(|| format!("machines are {names}"))?;
        File::create(self.dir.join("share/shell"))?;
        let boot = Boot { machine, number: 1, accelerator: self.accelerator, shell: true };
        Running::start(&self.dir, self.image(index)?, &self.parts[index], &boot)?.wait()
    }

    /// The image that a machine boots.
    fn image(&self, index: usize) -> anyhow::Result<&'a Image> {
        self.images.of(&self.scene.machines[index])
    }

    fn answer(&mut self) -> anyhow::Result<()> {
        let ask = self.dir.join("share/ask");
        for entry in fs::read_dir(&ask)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("").to_owned();
            let done = ask.join(format!("{name}.done"));
            let other = [".new", ".done", ".end"].iter().any(|end| name.ends_with(end));
            if other || name.starts_with("signal.") || done.exists() {
                continue;
            }
            let text = fs::read_to_string(&path)?;
            let machine = name.split('.').next().unwrap_or("");
            let index = self.index(machine)?;
            self.act(index, text.trim()).with_context(|| format!("{machine} asked: {text}"))?;
            File::create(&done)?;
        }
        Ok(())
    }

    fn index(&self, machine: &str) -> anyhow::Result<usize> {
        let found = self.scene.machines.iter().position(|one| one.name == machine);
        found.with_context(|| format!("no machine {machine}"))
    }

    fn act(&mut self, index: usize, request: &str) -> anyhow::Result<()> {
        let words: Vec<&str> = request.split_whitespace().collect();
        match words.as_slice() {
            ["power-loss", ..] => {
                self.running[index] = None;
                self.boot(index)
            }
            ["unplug", drive] => self
                .command(index, "device_del", &json!({ "id": format!("dev-{drive}") }))
                .map(drop),
            ["throttle", drive, rates @ ..] => {
                let rates = throttle(drive, rates)?;
                self.command(index, "block_set_io_throttle", &rates).map(drop)
            }
            ["counters", name] => {
                let counters = self.command(index, "query-blockstats", &json!({}))?;
                let path = self.dir.join(format!("share/out/{name}.json"));
                Ok(fs::write(path, counters.to_string())?)
            }
            ["pause", machine] => self.command(self.index(machine)?, "stop", &json!({})).map(drop),
            ["resume", machine] => self.command(self.index(machine)?, "cont", &json!({})).map(drop),
            _ => bail!("requests are power-loss, unplug, throttle, counters, pause, resume"),
        }
    }

    fn command(&mut self, index: usize, name: &str, with: &Value) -> anyhow::Result<Value> {
        self.running[index].as_mut().context("it has ended")?.command(name, with)
    }
}

/// The arguments of `block_set_io_throttle`: all rates, zero for none.
pub(super) fn throttle(drive: &str, rates: &[&str]) -> anyhow::Result<Value> {
    let mut all = Map::new();
    all.insert("device".to_owned(), json!(drive));
    for key in ["bps", "bps_rd", "bps_wr", "iops", "iops_rd", "iops_wr"] {
        all.insert(key.to_owned(), json!(0));
    }
    for rate in rates {
        let (key, value) = rate.split_once('=').context("KEY=VALUE")?;
        let value: u64 = value.parse().context("a rate is a number")?;
        ensure!(all.insert(key.to_owned(), json!(value)).is_some(), "no rate {key}");
    }
    Ok(Value::Object(all))
}

/// A size with K, M or G.
pub(super) fn bytes(text: &str) -> anyhow::Result<u64> {
    let (number, shift) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], 10),
        Some(b'M') => (&text[..text.len() - 1], 20),
        Some(b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number: u64 = number.parse().with_context(|| format!("{text} is no size"))?;
    Ok(number << shift)
}

/// The content of a result, if there is one.
pub(super) fn result(dir: &Path, name: &str) -> Option<String> {
    let bytes = fs::read(dir.join("share/out").join(name)).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
