//! Texts that people write: job files, flags, configurations, systems on paper.

use gpuio_base::document::{Cell, Columns, Document, Item, Layout};
use gpuio_base::units::{format_bytes, format_cpu_list, format_duration_ns};

use crate::is_inside;

/// Job files of gpuio, fio and gdsio.
pub(crate) fn job_file(data: &[u8]) {
    let environment = |name: &str| (name.len() < 6).then(|| "a b;c".to_owned());
    let read = || gpuio_job::spec::parse_job_file("f", data, &environment);
    match read() {
        Ok(spec) => assert_eq!(Ok(spec), read(), "the same text is the same jobs"),
        Err(errors) => {
            assert!(!errors.is_empty() && errors.len() <= gpuio_job::spec::MAX_ERRORS + 1);
            let text = String::from_utf8_lossy(data);
            let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
            for error in errors {
                is_inside(text, error.line as usize, error.column as usize);
                assert!(!error.to_string().is_empty());
            }
        }
    }
}

/// gdsio's command line, one word a line.
pub(crate) fn gdsio_flags(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let words: Vec<String> = text.lines().map(str::to_owned).collect();
    if let Err(error) = gpuio_job::spec::parse_gdsio(&words, &|word| word == "--output") {
        assert!(!error.to_string().is_empty());
    }
}

/// Sizes, times and lists: what is printed of a value reads back as it.
pub(crate) fn quantity(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(bytes) = gpuio_base::units::parse_bytes(text) {
        assert_eq!(gpuio_base::units::parse_bytes(&format_bytes(bytes)), Ok(bytes));
    }
    if let Ok(ns) = gpuio_base::units::parse_duration_ns(text) {
        assert_eq!(gpuio_base::units::parse_duration_ns(&format_duration_ns(ns)), Ok(ns));
    }
    if let Ok(cpus) = gpuio_base::units::parse_cpu_list(text) {
        assert_eq!(gpuio_base::units::parse_cpu_list(&format_cpu_list(&cpus)), Ok(cpus));
    }
    let _ = gpuio_base::units::parse_index_list(text);
    let _ = gpuio_base::units::parse_percent(text);
    let _ = gpuio_base::units::parse_count(text);
    let _ = gpuio_base::units::parse_bytes_per_second(text);
    for shown in [
        gpuio_base::units::printable_short(text).into_owned(),
        gpuio_base::units::csv_text(text).into_owned(),
        gpuio_base::units::label_value(text),
    ] {
        crate::is_shown(&shown);
        assert!(!shown.contains('\n'), "it is one line");
    }
    document(text);
}

/// A text at every place of a document that takes one from outside.
fn document(text: &str) {
    let table = Columns::<&str>::new()
        .words("name", |text| (*text).to_owned())
        .figures("size", |text| Cell::bytes(text.len() as u64))
        .table("texts", [text]);
    let mut page = Document::default();
    let section = page.begin("texts", text);
    section.paragraph(text).table(table);
    section.item(Layout::labels(8), Item::new("text", text));
    for width in [20, 60, 80] {
        crate::is_shown(&page.terminal(width));
    }
    crate::is_shown(&page.markdown());
    crate::is_shown(&page.csv());
    assert!(!gpuio_base::document::fragment(&page.sections).contains("<script"));
    assert!(serde_json::from_str::<serde_json::Value>(&page.json()).is_ok());
}

/// cuFile's configuration.
pub(crate) fn cufile_json(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match gpuio_base::cufilejson::read(&text) {
        Ok(config) => {
            for entry in &config.entries {
                is_inside(&text, entry.line, entry.column);
            }
            for fault in gpuio_base::cufilejson::faults(&config) {
                assert!(!format!("{fault:?}").is_empty());
            }
            assert!(gpuio_base::cufilejson::keys(&text).is_ok(), "the lenient reader reads it too");
        }
        Err(error) => is_inside(&text, error.line, error.column),
    }
    let _ = gpuio_base::cufilejson::looks_like(&text);
}

/// `gpuio plan --system`.
pub(crate) fn system(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let figures = gpuio_machine::flow::Figures::built_in();
    match gpuio_machine::flow::paper::System::read("f", &text, figures) {
        Ok(system) => {
            let answer = system.answer();
            let finite =
                |rate: Option<f64>| rate.is_none_or(|rate| rate.is_finite() && rate >= 0.0);
            assert!(finite(answer.total.bytes_per_s), "{:?}", answer.total);
            assert!(!gpuio_machine::flow::paper::document(&answer).unbroken().is_empty());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// `--spec`.
pub(crate) fn figures(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut figures = gpuio_machine::flow::Figures::built_in();
    if let Err(error) = figures.add("f", &text) {
        assert!(!error.to_string().is_empty());
    }
    let _ = figures.drive("nvme0n1", Some("Samsung SSD 980"));
}

/// `--server`.
pub(crate) fn server(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Err(error) = gpuio_machine::flow::ServerFigures::parse(&text) {
        assert!(!error.to_string().is_empty());
    }
}

/// A safetensors file: tensors lie in it, one behind the other, and an error lies in it, too.
pub(crate) fn tensors(data: &[u8]) {
    use gpuio_base::safetensors::{LENGTH_BYTES, ReadError, read};
    let length = data.len() as u64;
    let read_at = |bytes: &mut [u8], at: u64| {
        let rest = &data[usize::try_from(at).unwrap_or(usize::MAX).min(data.len())..];
        let known = rest.len().min(bytes.len());
        bytes[..known].copy_from_slice(&rest[..known]);
        Ok(known)
    };
    match read(length, read_at) {
        Ok(header) => {
            let all = &header.tensors;
            let first = all.iter().map(|tensor| tensor.offset).min().unwrap_or(length);
            assert!(first >= LENGTH_BYTES);
            assert_eq!(first + all.iter().map(|tensor| tensor.length).sum::<u64>(), length);
        }
        Err(ReadError::Wrong(error)) => assert!(error.offset <= length, "{error}"),
        Err(ReadError::Io(error)) => panic!("{error}"),
    }
}
