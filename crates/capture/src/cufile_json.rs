//! cuFile's configuration, `/etc/cufile.json`, as it lies there: JSON with comments.

use gpuio_record::facts::Fact;

use crate::{CaptureError, Captured, Kind};

pub(crate) const KIND: Kind = Kind {
    command: "cat /etc/cufile.json",
    most_bytes: crate::SHORT,
    looks_like: gpuio_cufilejson::looks_like,
    add,
};

/// Takes the whole text with its mistakes: `gpuio check` reports them.
fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let facts = &mut captured.machine.cufile;
    facts.path = "cufile.json".to_owned();
    facts.text = Fact::Known(Some(text.to_owned()));
    facts.environment = Fact::unknown("the file does not show environment variables");
    facts.log_directory_writable = Fact::unknown("the directory is on the other machine");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
