//! cuFile's configuration: the file that `CUFILE_ENV_PATH_JSON` names or `/etc/cufile.json`, and
//! the variables that go before it (NVIDIA, GPUDirect Storage Installation and Troubleshooting
//! Guide, "Environment Variables Used by GPUDirect Storage").

use std::collections::BTreeMap;
use std::path::Path;

use gpuio_base::cufilejson::{DEFAULT_PATH, VARIABLE};
use gpuio_record::facts::{CufileFacts, Fact};
use rustix::fs::{Access, access};

use crate::Root;

/// Longer files are no configuration.
const MOST_BYTES: usize = 1 << 20;

/// Reads the configuration that a process with these variables would get; without them, the file
/// at its usual path. The library itself is not looked for.
pub fn read(root: &Root, environment: Fact<BTreeMap<String, String>>) -> CufileFacts {
    let named =
        environment.known().and_then(|all| all.get(VARIABLE)).filter(|path| !path.is_empty());
    let path = named.map_or(DEFAULT_PATH, String::as_str).to_owned();
    let text = text(root, &path, named.is_some());
    let log_directory_writable = match text.known() {
        Some(Some(text)) if root.is_live() => writable(text),
        _ => Fact::unknown("no file of this machine names one"),
    };
    CufileFacts {
        path,
        text,
        log_directory_writable,
        environment,
        library: Fact::unknown("the library was not looked for"),
    }
}

fn text(root: &Root, path: &str, named: bool) -> Fact<Option<String>> {
    // Read on the live machine too, so that a capture of it has the answer.
    let copied = root.exists("etc") || root.is_live();
    match root.read(path) {
        Ok(Some(text)) if text.body.len() > MOST_BYTES => {
            let bytes = text.body.len();
            Fact::unknown(format!("{path} has {bytes} bytes, which is no configuration"))
        }
        Ok(Some(text)) => Fact::Known(Some(text.body)),
        // A tree without /etc was copied without it.
        Ok(None) if named => {
            Fact::unknown(format!("{VARIABLE} names {path}, and no such file is there"))
        }
        Ok(None) if copied => Fact::Known(None),
        Ok(None) => Fact::unknown("the tree has no etc"),
        Err(error) => Fact::unknown(error.to_string()),
    }
}

fn writable(text: &str) -> Fact<bool> {
    let keys = gpuio_base::cufilejson::keys(text).unwrap_or_default();
    let dir = keys.get("logging").and_then(|group| group.get("dir"));
    match dir.and_then(|dir| dir.as_str()).filter(|dir| !dir.is_empty()) {
        Some(dir) => {
            let wanted = Access::WRITE_OK | Access::EXEC_OK;
            Fact::Known(Path::new(dir).is_dir() && access(dir, wanted).is_ok())
        }
        None => Fact::unknown("the file names no directory"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(root: &Root) -> CufileFacts {
        read(root, Fact::unknown("not reported"))
    }

    #[test]
    fn a_tree_with_and_without_the_file() {
        let tree = tempfile::tempdir().unwrap();
        let root = Root::at(tree.path());
        assert_eq!(of(&root).text.why(), Some("the tree has no etc"));
        std::fs::create_dir(tree.path().join("etc")).unwrap();
        assert_eq!(of(&root).text, Fact::Known(None));
        std::fs::write(tree.path().join("etc/cufile.json"), "{}").unwrap();
        let facts = of(&root);
        assert_eq!(
            (facts.text, facts.path.as_str()),
            (Fact::Known(Some("{}".to_owned())), DEFAULT_PATH)
        );
        let named = BTreeMap::from([(VARIABLE.to_owned(), "/mine.json".to_owned())]);
        let facts = read(&root, Fact::Known(named));
        assert_eq!(facts.path, "/mine.json");
        assert!(facts.text.why().unwrap().contains("no such file"));
        std::fs::write(tree.path().join("etc/cufile.json"), vec![b' '; MOST_BYTES + 1]).unwrap();
        assert!(of(&root).text.why().unwrap().contains("1048577 bytes"));
    }

    #[test]
    fn the_directory_of_the_log() {
        let tree = tempfile::tempdir().unwrap();
        let text = |dir: &Path| format!("{{ \"logging\": {{ \"dir\": \"{}\" }} }}", dir.display());
        assert_eq!(writable(&text(tree.path())), Fact::Known(true));
        assert_eq!(writable(&text(&tree.path().join("none"))), Fact::Known(false));
        assert_eq!(writable("{}").known(), None);
    }
}
