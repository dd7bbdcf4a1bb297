//! A running machine: QEMU, its control channel (QMP on its standard streams) and its end.
//!
//! QEMU gets SIGKILL when the thread that started it ends (`setpriv --pdeathsig`), however that
//! ends, so no machine outlives the task.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use super::image::Image;
use super::kernel::Release;
use super::machine::Parts;

pub(super) struct Running {
    child: Child,
    /// None in a shell, which has the standard streams.
    control: Option<(ChildStdin, BufReader<ChildStdout>)>,
}

/// The differences between boots.
pub(super) struct Boot<'a> {
    pub(super) machine: &'a str,
    /// From 1.
    pub(super) number: u32,
    /// `tcg,thread=multi` or `kvm`.
    pub(super) accelerator: &'a str,
    /// The console is the terminal.
    pub(super) shell: bool,
}

impl Running {
    /// Starts QEMU in `dir`, which has the images of its drives.
    pub(super) fn start(
        dir: &Path,
        image: &Image,
        parts: &Parts,
        boot: &Boot,
    ) -> anyhow::Result<Running> {
        let Boot { machine, number, accelerator, shell } = boot;
        let aarch64 = image.release == Release::Aarch64;
        let (emulator, board, console) = match aarch64 {
            true => ("qemu-system-aarch64", "virt", "ttyAMA0"),
            false => ("qemu-system-x86_64", parts.board(), "ttyS0"),
        };
        let cpu = match *accelerator {
            "kvm" => "host",
            // Without pointer authentication, which takes an emulator long.
            _ if aarch64 => "cortex-a72",
            _ => "max",
        };
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", emulator, "-nodefaults"]);
        command.args(["-display", "none", "-no-reboot", "-accel", accelerator]);
        command.args(["-machine", board, "-cpu", cpu]);
        command.args(&parts.arguments).arg("-kernel").arg(&image.kernel);
        command.arg("-initrd").arg(&image.initramfs).arg("-append");
        // The kernel tests its timer by waiting for ticks, which a busy host may not give in time.
        command.arg(format!(
            "console={console} panic=-1 no_timer_check lab.machine={machine} lab.boot={number} {}",
            parts.kernel
        ));
        command.args(["-fsdev", "local,id=share,path=share,security_model=none"]);
        command.args(["-device", "virtio-9p-pci,fsdev=share,mount_tag=lab,bus=pcie.0"]);
        if *shell {
            command.args(["-serial", "mon:stdio"]);
            let child = command.current_dir(dir).spawn().context("setpriv")?;
            return Ok(Running { child, control: None });
        }
        command.args(["-serial", &format!("file:console.{machine}.{number}")]);
        command.args(["-qmp", "stdio"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let errors = dir.join(format!("qemu.{machine}.{number}"));
        command.stderr(File::create(&errors)?);
        let mut child = command.current_dir(dir).spawn().context("setpriv")?;
        let input = child.stdin.take().context("stdin")?;
        let output = BufReader::new(child.stdout.take().context("stdout")?);
        let mut running = Running { child, control: Some((input, output)) };
        let greeted = running.command("qmp_capabilities", &json!({}));
        greeted.with_context(|| std::fs::read_to_string(&errors).unwrap_or_default())?;
        Ok(running)
    }

    /// Runs a command of QMP, and gives its result.
    pub(super) fn command(&mut self, name: &str, arguments: &Value) -> anyhow::Result<Value> {
        let (input, output) = self.control.as_mut().context("no control channel")?;
        let text = json!({ "execute": name, "arguments": arguments });
        writeln!(input, "{text}").with_context(|| format!("QEMU is gone before {name}"))?;
        loop {
            let mut line = String::new();
            if output.read_line(&mut line)? == 0 {
                bail!("QEMU ended at {name}");
            }
            let mut answer: Value = serde_json::from_str(&line).context("QMP")?;
            if let Some(result) = answer.get_mut("return") {
                return Ok(result.take());
            }
            if let Some(error) = answer.get("error") {
                bail!("{name}: {error}");
            }
            // A greeting or an event.
        }
    }

    pub(super) fn has_ended(&mut self) -> anyhow::Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    pub(super) fn wait(&mut self) -> anyhow::Result<()> {
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Running {
    /// The power goes.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
