//! `/proc/cmdline`, and the arguments of the kernel that GRUB's file sets for the next boot
//! (grub(5), `GRUB_CMDLINE_LINUX`, `GRUB_CMDLINE_LINUX_DEFAULT`; `args=` of grubby(8)).

use gpuio_host::settings::parse_command_line;

use crate::prompt::command_of;
use crate::{CaptureError, Captured, Kind, lines};

pub(crate) const KIND: Kind = Kind {
    command: "cat /proc/cmdline",
    gives: "arguments of the kernel on IOMMU, PCI, NVMe and others, and those of GRUB's file",
    most_bytes: crate::SHORT,
    looks_like: |text| {
        let is_asked = is_asked(text);
        lines(text).any(|(_, line)| words(line, is_asked).is_some())
    },
    add,
};

const OF_GRUB: [&str; 3] = ["GRUB_CMDLINE_LINUX=", "GRUB_CMDLINE_LINUX_DEFAULT=", "args="];

/// Whether a prompt asks for the kernel's command line.
fn is_asked(text: &str) -> bool {
    let mut commands = text.lines().filter_map(command_of);
    commands.any(|command| command.ends_with("/proc/cmdline"))
}

/// The arguments of a line, and whether they are those of the next boot.
fn words(line: &str, is_asked: bool) -> Option<(&str, bool)> {
    let line = line.trim();
    if let Some(rest) = OF_GRUB.iter().find_map(|name| line.strip_prefix(name)) {
        let quoted = rest.strip_prefix(['"', '\'']).and_then(|rest| rest.split(['"', '\'']).next());
        return quoted.map(|words| (words, true));
    }
    let begins = line.starts_with("BOOT_IMAGE=") || line.starts_with("initrd=");
    let boots = line.contains(" root=") && line.split_whitespace().any(|w| w == "ro" || w == "rw");
    (is_asked || begins && (boots || line.contains(' '))).then_some((line, false))
}

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let mut asked = is_asked(text);
    for (index, line) in lines(text) {
        match words(line, asked) {
            Some((words, true)) => captured.next_boot.extend(parse_command_line(words)),
            Some((words, false)) => {
                captured.machine.settings.command_line = Some(parse_command_line(words));
                // It is one line.
                asked = false;
            }
            None => {
                let wanted = "the kernel's command line, like BOOT_IMAGE=/vmlinuz root=… iommu=pt";
                captured.skip(CaptureError::new(index, line, 0, wanted));
            }
        }
    }
    Ok(())
}

impl Captured {
    /// The arguments that are known: those of GRUB's file count where the running kernel's are not
    /// among the texts.
    pub(crate) fn finish_command_line(&mut self) {
        let next = std::mem::take(&mut self.next_boot);
        let list = |words: &[String]| words.join(" ");
        if let Some(now) = self.machine.settings.command_line.clone() {
            let open: Vec<String> = next.into_iter().filter(|word| !now.contains(word)).collect();
            if !open.is_empty() {
                self.remark(format!(
                    "In GRUB's file and not on the running kernel's command line: {}. They count \
                     from the next boot, once GRUB's configuration is made anew.",
                    list(&open)
                ));
            }
            if !now.is_empty() {
                self.remark(format!("The kernel's command line has {}.", list(&now)));
            }
        } else if !next.is_empty() {
            self.remark(format!(
                "GRUB's file has {}: whether the running kernel was booted with it is not among \
                 the texts (cat /proc/cmdline).",
                list(&next)
            ));
            self.machine.settings.command_line = Some(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Captured {
        let mut captured = Captured::default();
        crate::read("text", text, &mut captured).unwrap();
        captured.finish();
        captured
    }

    #[test]
    fn arguments_are_those_of_the_running_kernel_or_of_the_next_one() {
        let running = "BOOT_IMAGE=/vmlinuz-5.15 root=UUID=1 ro quiet intel_iommu=on \
                       nvme.poll_queues=4 pci=realloc\n";
        let words = |captured: &Captured| captured.machine.settings.command_line.clone().unwrap();
        for text in [running.to_owned(), format!("$ cat /proc/cmdline\n{}", &running[25..])] {
            let captured = of(&text);
            assert_eq!(words(&captured), ["intel_iommu=on", "nvme.poll_queues=4", "pci=realloc"]);
            assert_eq!(captured.texts[0].skipped, [], "{text}");
        }
        let grub = "GRUB_TIMEOUT_STYLE=hidden\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet iommu=pt\"\n\
                    GRUB_CMDLINE_LINUX=\"intel_iommu=on\"\n";
        let next = of(grub);
        assert_eq!(words(&next), ["iommu=pt", "intel_iommu=on"]);
        assert!(next.remarks()[0].contains("whether the running kernel"), "{:?}", next.remarks());
        for both in [format!("{grub}{running}"), format!("{running}{grub}")] {
            let both = of(&both);
            assert_eq!(words(&both)[0], "intel_iommu=on");
            let open = "not on the running kernel's command line: iommu=pt.";
            assert!(both.remarks().join(" ").contains(open), "{:?}", both.remarks());
        }
        let none = crate::read("text", "We boot with root=x ro\n", &mut Captured::default());
        assert!(none.is_err());
    }
}
