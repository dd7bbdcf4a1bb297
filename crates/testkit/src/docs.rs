//! Parts of the pages in `docs/` that code makes.

use crate::repository;

/// Fails unless the part of `docs/PAGE` between `<!-- NAME: begin -->` and `<!-- NAME: end -->` is
/// this text. With `UPDATE_DOCS` set it is written there instead.
#[track_caller]
pub fn documented(page: &str, name: &str, text: &str) {
    let path = repository("docs").join(page);
    let document = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = (format!("<!-- {name}: begin -->\n"), format!("<!-- {name}: end -->"));
    let (before, rest) = document.split_once(&begin).expect("where it begins");
    let (found, after) = rest.split_once(&end).expect("where it ends");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        return std::fs::write(path, format!("{before}{begin}{text}{end}{after}")).unwrap();
    }
    assert!(found == text, "docs/{page} is not up to date: run this test with UPDATE_DOCS=1");
}
