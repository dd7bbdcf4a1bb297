//! `uname -a`, and `uname -r` below a prompt: the kernel's release.

use crate::prompt::command_of;
use crate::{CaptureError, Captured, Kind, lines};

pub(crate) const KIND: Kind = Kind {
    command: "uname",
    gives: "the kernel's release: `-a`, and `-r` below a prompt",
    most_bytes: crate::SHORT,
    looks_like: |text| releases(text).next().is_some(),
    add,
};

/// The release in each line that has one.
fn releases(text: &str) -> impl Iterator<Item = (usize, &str)> {
    // The release alone is known by the command above it.
    let asked = |line| command_of(line).is_some_and(|command| command.starts_with("uname -r"));
    let asked = text.lines().any(asked);
    lines(text).filter_map(move |(index, line)| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let release = match words.as_slice() {
            ["Linux", _, release, rest @ ..] if rest.iter().any(|word| word.starts_with('#')) => {
                release
            }
            [release] if asked => release,
            _ => return None,
        };
        let numbered =
            release.split('.').take(2).all(|part| part.starts_with(|c: char| c.is_ascii_digit()));
        (numbered && release.contains('.')).then_some((index, *release))
    })
}

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let own: Vec<(usize, &str)> = releases(text).collect();
    for (index, line) in lines(text) {
        if !own.iter().any(|(at, _)| *at == index) {
            let wanted = "a kernel's release, like 5.15.0-1042-nvidia";
            captured.skip(CaptureError::new(index, line, 0, wanted));
        }
    }
    if let Some((_, release)) = own.last() {
        captured.machine.host.kernel.release = Some((*release).to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::Captured;

    #[test]
    fn a_release_is_read_below_its_command_or_in_the_whole_line() {
        let whole = "Linux n1 5.15.0-1042-nvidia #42-Ubuntu SMP Wed Nov 15 x86_64 GNU/Linux\n";
        let below = "$ uname -r\n5.15.0-1042-nvidia\n";
        for text in [whole, below] {
            let mut captured = Captured::default();
            crate::read("text", text, &mut captured).unwrap();
            let release = captured.machine.host.kernel.release.as_deref();
            assert_eq!(release, Some("5.15.0-1042-nvidia"), "{text}");
            assert_eq!(captured.texts[0].skipped, [], "{text}");
        }
        let alone = crate::read("text", "5.15.0-1042-nvidia\n", &mut Captured::default());
        assert!(alone.is_err(), "a number without its command may be anything's");
    }
}
