//! cuFile's configuration, `/etc/cufile.json`, as it lies there: JSON with comments.

use gpuio_record::facts::Fact;

use crate::{CaptureError, Captured, Kind};

pub(crate) const KIND: Kind = Kind {
    command: "cat /etc/cufile.json",
    gives: "settings of cuFile, for `gpuio check`",
    most_bytes: crate::SHORT,
    looks_like: gpuio_base::cufilejson::looks_like,
    add,
};

/// The expected content instead of a title.
pub(crate) const NO_TITLE: &str = "JSON (`#` begins no comment there)";
/// More lines above the JSON than a title has.
const TITLE_LINES: usize = 5;

/// Whether the JSON, or a comment above it, may begin here.
pub(crate) fn begins(line: &str) -> bool {
    ["{", "//", "/*"].iter().any(|mark| line.trim_start().starts_with(mark))
}

/// A text of which people have put a title above the JSON: with blank lines instead, and the lines
/// that were taken out. cuFile takes no such line, not even one with `#`, which begins no comment.
pub(crate) fn below_a_title(text: &str) -> Option<(String, Vec<CaptureError>)> {
    let first = text.lines().position(begins)?;
    let (mut titles, mut above) = (Vec::new(), 0);
    let mut below = String::with_capacity(text.len());
    for (index, line) in text.lines().enumerate() {
        if index < first && !line.trim().is_empty() {
            above += 1;
            if !crate::prompt::is_prompt(line) {
                titles.push(CaptureError::new(index, line, 0, NO_TITLE));
            }
        } else {
            below.push_str(line);
        }
        below.push('\n');
    }
    let few = (1..=TITLE_LINES).contains(&above);
    let above: String = text.lines().take(first).map(|line| format!("{line}\n")).collect();
    // The text above may be another tool's output.
    let title = few && crate::kind_of(&above).is_none();
    (title && (KIND.looks_like)(&below)).then_some((below, titles))
}

/// Takes the whole text with its mistakes: `gpuio check` reports them.
fn add(as_printed: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    // Pages make them of plain quotes; positions in lines stay.
    let text = as_printed.replace(['\u{201c}', '\u{201d}', '\u{201e}'], "\"");
    if text != as_printed {
        captured.remark(
            "cufile.json has typographic quotes, as pages make them, and is read as with plain \
             ones: if the file itself has them, cuFile can't read it."
                .to_owned(),
        );
    }
    let facts = &mut captured.machine.cufile;
    facts.path = "cufile.json".to_owned();
    facts.text = Fact::Known(Some(text));
    facts.environment = Fact::unknown("the file does not show environment variables");
    facts.log_directory_writable = Fact::unknown("the directory is on the other machine");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typographic_quotes_are_a_page_s() {
        let text = "{\n \"properties\": {\n \"allow_compat_mode\": “false”\n }\n}\n";
        let mut captured = Captured::default();
        crate::read("post", text, &mut captured).unwrap();
        let known = captured.machine.cufile.text.known().unwrap().as_deref().unwrap();
        assert!(known.contains(": \"false\"") && !captured.remarks().is_empty(), "{known}");
    }

    #[test]
    fn the_text_is_kept_with_its_mistakes() {
        let text = "{ \"logging\": { }, \"properties\": { \"zebra\": 1 \n";
        let kind = crate::kind_of(text).unwrap();
        assert_eq!(kind.command, KIND.command);
        let mut captured = Captured::default();
        crate::add(kind, text, &mut captured).unwrap();
        assert_eq!(captured.machine.cufile.text, Fact::Known(Some(text.to_owned())));
    }
}
