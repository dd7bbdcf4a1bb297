//! `cargo xtask lab`: gpuio on machines under QEMU whose drives, rates, topology and faults are
//! known, because the scene says them.
//!
//! A scene is a file in `tools/xtask/scenes`: machines, a script for each, and what must hold of
//! the results. Each has planted faults, with which `--plants` shows that it can fail. `scene.rs`
//! reads the file, `machine.rs` makes QEMU's arguments of a machine, `kernel.rs` and `image.rs`
//! make what it boots, `run.rs` serves it until its end, `claim.rs` checks the results. Scene,
//! machine and claim are pure.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};

mod claim;
mod image;
mod kernel;
mod machine;
mod run;
mod scene;
#[cfg(test)]
mod tests;
mod vm;

use image::{Base, Images, Wanted};
use kernel::{Kernel, Release};
use run::Run;
use scene::{Plant, Scene};

const INIT: &str = include_str!("guest_init.sh");
const USAGE: &str = "flags are --scene NAME, --smoke, --plants, --list, --shell SCENE[/MACHINE], \
                     --details, --binary FILE, --aarch64 FILE, --kernel RELEASE, --accel NAME, \
                     --no-install";

pub(crate) fn run(root: &Path, arguments: &[String]) -> anyhow::Result<()> {
    let options = Options::of(arguments)?;
    let all = scenes(&root.join("tools/xtask/scenes"))?;
    if options.list {
        for Scene { name, group, proves, .. } in &all {
            println!("{name:<22}{group:<10}{proves}");
        }
        return Ok(());
    }
    let chosen = options.choose(&all)?;
    let target = crate::task_ci::target(root);
    let binary = options.binary(root, &target)?;
    let (dir, _lock) = directory(&target)?;
    let chosen = options.without_aarch64(chosen)?;
    prepare(&dir, &chosen, &options)?;
    Lab::new(dir, &binary, options)?.run(&chosen)
}

/// The smoke set with a binary that is built already, or why it can't run on this machine.
pub(crate) fn smoke(root: &Path, binary: &Path, install: bool) -> anyhow::Result<&'static str> {
    let smoke = ["--smoke".to_owned()];
    let options = Options { install, ..Options::of(&smoke)? };
    let chosen = options.choose(&scenes(&root.join("tools/xtask/scenes"))?)?;
    let (dir, _lock) = directory(&crate::task_ci::target(root))?;
    if let Err(why) = prepare(&dir, &chosen, &options) {
        println!("the laboratory does not run here: {why:#}");
        return Ok("not run");
    }
    Lab::new(dir, binary, options)?.run(&chosen)?;
    Ok("ok")
}

/// The laboratory's directory, which one task has at a time.
fn directory(target: &Path) -> anyhow::Result<(PathBuf, File)> {
    let dir = target.join("lab");
    fs::create_dir_all(&dir)?;
    let dir = dir.canonicalize()?;
    let lock = File::create(dir.join("lock"))?;
    ensure!(lock.try_lock().is_ok(), "another `cargo xtask lab` runs in {}", dir.display());
    Ok((dir, lock))
}

/// Installs what scenes need on this machine, and fetches their kernels.
fn prepare(dir: &Path, scenes: &[Scene], options: &Options) -> anyhow::Result<()> {
    let mut wanted = Wanted::default();
    for scene in scenes {
        wanted.tools.extend(scene.wanted.tools.iter().cloned());
    }
    image::install_missing(&wanted, options.aarch64.is_some(), options.install)?;
    for machine in scenes.iter().flat_map(|scene| &scene.machines) {
        Kernel::of(machine.release(options.release)?, dir)?;
    }
    Ok(())
}

struct Options {
    /// All where none is named.
    scenes: Vec<String>,
    smoke: bool,
    plants: bool,
    list: bool,
    details: bool,
    shell: Option<String>,
    binary: Option<PathBuf>,
    /// The binary under test for aarch64.
    aarch64: Option<PathBuf>,
    /// The kernel of machines that name none.
    release: Release,
    accelerator: String,
    install: bool,
}

impl Options {
    fn of(arguments: &[String]) -> anyhow::Result<Options> {
        let mut options = Options {
            scenes: Vec::new(),
            smoke: false,
            plants: false,
            list: false,
            details: false,
            shell: None,
            binary: None,
            aarch64: None,
            release: Release::Stable,
            accelerator: "tcg,thread=multi".to_owned(),
            install: true,
        };
        let mut words = arguments.iter();
        while let Some(flag) = words.next() {
            let mut value = || words.next().with_context(|| format!("{flag} needs a value"));
            match flag.as_str() {
                "--scene" => options.scenes.push(value()?.clone()),
                "--shell" => options.shell = Some(value()?.clone()),
                "--binary" => options.binary = Some(PathBuf::from(value()?)),
                "--aarch64" => {
                    let path = PathBuf::from(value()?);
                    let found = path.canonicalize();
                    options.aarch64 = Some(found.with_context(|| path.display().to_string())?);
                }
                "--kernel" => options.release = Release::read(value()?)?,
                "--accel" => options.accelerator.clone_from(value()?),
                "--smoke" => options.smoke = true,
                "--plants" => options.plants = true,
                "--list" => options.list = true,
                "--details" => options.details = true,
                "--no-install" => options.install = false,
                _ => bail!("{flag}: {USAGE}"),
            }
        }
        Ok(options)
    }

    fn choose(&self, all: &[Scene]) -> anyhow::Result<Vec<Scene>> {
        let mut names = self.scenes.clone();
        let shell = self.shell.as_deref();
        names.extend(shell.map(|name| name.split('/').next().unwrap_or(name).to_owned()));
        if let Some(name) = names.iter().find(|name| !all.iter().any(|one| one.name == **name)) {
            bail!("there is no scene {name}: `cargo xtask lab --list` has them");
        }
        let is_in = |scene: &&Scene| {
            (names.is_empty() || names.contains(&scene.name)) && (scene.smoke || !self.smoke)
        };
        Ok(all.iter().filter(is_in).cloned().collect())
    }

    /// Without scenes of aarch64 where no binary for it is given; they are named.
    fn without_aarch64(&self, scenes: Vec<Scene>) -> anyhow::Result<Vec<Scene>> {
        let mut kept = Vec::new();
        for scene in scenes {
            if self.aarch64.is_none() && scene.needs_aarch64(self.release)? {
                println!("{:<22}SKIPPED  it needs --aarch64 FILE, a gpuio for aarch64", scene.name);
            } else {
                kept.push(scene);
            }
        }
        Ok(kept)
    }

    /// The binary under test.
    fn binary(&self, root: &Path, target: &Path) -> anyhow::Result<PathBuf> {
        if let Some(binary) = &self.binary {
            return binary.canonicalize().with_context(|| binary.display().to_string());
        }
        let mut command = Command::new(crate::task_ci::cargo_path());
        let arguments = ["build", "-p", "gpuio", "-p", "gpuio-softgpu"];
        let built = command.current_dir(root).args(arguments).status();
        ensure!(built.context("cannot start cargo")?.success(), "gpuio does not build");
        target.join("debug/gpuio").canonicalize().context("target/debug/gpuio")
    }
}

/// The scenes of a directory, by name.
fn scenes(dir: &Path) -> anyhow::Result<Vec<Scene>> {
    let mut scenes = Vec::new();
    for entry in fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        let name = name.strip_suffix(".scene");
        let name = name.with_context(|| format!("{} is no .scene", path.display()))?;
        scenes.push(Scene::read(name, &fs::read_to_string(&path)?)?);
    }
    scenes.sort_by(|a, b| (&a.group, &a.name).cmp(&(&b.group, &b.name)));
    Ok(scenes)
}

struct Lab {
    base: Base,
    /// With the binary for aarch64, where there is one.
    aarch64: Option<Base>,
    dir: PathBuf,
    options: Options,
}

/// The outcome of a run: each claim, with the value found or the error.
type Outcome = anyhow::Result<Vec<(String, anyhow::Result<String>)>>;

impl Lab {
    fn new(dir: PathBuf, binary: &Path, options: Options) -> anyhow::Result<Lab> {
        let base = Base::make(&dir, binary, INIT, false)?;
        let aarch64 = options.aarch64.as_deref();
        let aarch64 = aarch64.map(|binary| Base::make(&dir, binary, INIT, true)).transpose()?;
        Ok(Lab { base, aarch64, dir, options })
    }

    fn run(&self, scenes: &[Scene]) -> anyhow::Result<()> {
        if let Some(shell) = &self.options.shell {
            let scene = scenes.first().context("no scene")?;
            let first = scene.machines.first().map_or("", |machine| machine.name.as_str());
            let machine = shell.split_once('/').map_or(first, |(_, machine)| machine);
            let dir = self.dir.join("run").join(format!("{}-shell", scene.name));
            let images =
                Images::make((&self.base, self.aarch64.as_ref()), scene, self.options.release)?;
            return Run::new(scene, &images, &self.options.accelerator, dir)?.shell(machine);
        }
        let start = Instant::now();
        let kernel = Kernel::of(self.options.release, &self.dir)?.version;
        println!("kernel {kernel}, accelerator {}", self.options.accelerator);
        let mut count = 0;
        let mut bad = Vec::new();
        for scene in scenes {
            if self.options.plants {
                for plant in &scene.plants {
                    count += 1;
                    if !self.plant(scene, plant)? {
                        bad.push(format!("{}+{}", scene.name, plant.name));
                    }
                }
            } else {
                count += 1;
                if !self.scene(scene) {
                    bad.push(scene.name.clone());
                }
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        println!("{} of {count} as they should be, {seconds:.0} s", count - bad.len());
        ensure!(bad.is_empty(), "not as they should be: {}", bad.join(", "));
        Ok(())
    }

    /// Runs a scene and prints its line; whether all holds.
    fn scene(&self, scene: &Scene) -> bool {
        let start = Instant::now();
        let outcome = self.outcome(scene, &scene.name);
        let seconds = start.elapsed().as_secs_f64();
        let (word, rest) = match &outcome {
            Ok(claims) => {
                let failed = claims.iter().filter(|(_, found)| found.is_err()).count();
                let word = if failed == 0 { "ok" } else { "FAILED" };
                (word, format!("{} of {} claims hold", claims.len() - failed, claims.len()))
            }
            Err(error) => ("FAILED", format!("{error:#}")),
        };
        println!("{:<22}{word:<8}{seconds:>6.1} s  {rest}", scene.name);
        for (text, found) in outcome.iter().flatten() {
            match found {
                Err(error) => println!("    FAILED  {text}: {error:#}"),
                Ok(found) if self.options.details => println!("    holds   {text}: {found}"),
                Ok(_) => {}
            }
        }
        if word != "ok" {
            let at = self.dir.join("run").join(&scene.name);
            println!("    results and consoles: {}", at.display());
        }
        word == "ok"
    }

    /// Runs a scene with a planted fault and prints its line; whether the fault was caught.
    fn plant(&self, scene: &Scene, plant: &Plant) -> anyhow::Result<bool> {
        let start = Instant::now();
        let name = format!("{}+{}", scene.name, plant.name);
        let outcome = self.outcome(&scene.with(plant)?, &name);
        let seconds = start.elapsed().as_secs_f64();
        let caught = outcome.as_ref().ok().and_then(|claims| {
            let mut failed = claims.iter().filter(|(_, found)| found.is_err());
            failed.find(|(text, _)| text.starts_with(&plant.catches))
        });
        let (word, rest) = match (&outcome, caught) {
            (_, Some((text, Err(error)))) => ("caught", format!("{text}: {error:#}")),
            (Err(error), _) => ("FAILED", format!("{error:#}")),
            _ => ("MISSED", format!("no claim that begins with {} failed", plant.catches)),
        };
        println!("{name:<34}{word:<8}{seconds:>6.1} s  {rest}");
        Ok(word == "caught")
    }

    fn outcome(&self, scene: &Scene, name: &str) -> Outcome {
        let dir = self.dir.join("run").join(name);
        let images =
            Images::make((&self.base, self.aarch64.as_ref()), scene, self.options.release)?;
        Run::new(scene, &images, &self.options.accelerator, dir.clone())?.finish()?;
        let files = |name: &str| run::result(&dir, name);
        let check = |claim: &claim::Claim| (claim.text.clone(), claim.check(&files));
        Ok(scene.holds.iter().map(check).collect())
    }
}
