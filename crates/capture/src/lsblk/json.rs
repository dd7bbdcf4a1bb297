//! `lsblk -J`: a tree of objects. Keys are the columns' names in lower case; releases before 2.33
//! print every value as text, later ones numbers and truth values too.

use serde_json::Value;

use super::row::Row;
use super::{MOST_DEVICES, forget_empty, put};
use crate::{CaptureError, Captured, Kind, json};

pub(crate) const KIND: Kind = Kind {
    command: "lsblk -J",
    gives: "drives, models, sizes, arrays, mounts",
    most_bytes: crate::SHORT,
    looks_like: |text| text.contains("\"blockdevices\"") && json::find(text, is_ours).is_some(),
    add,
};

/// Members within members: more than any stack of volumes has.
const DEEPEST: usize = 16;

fn is_ours(value: &Value) -> bool {
    value["blockdevices"].is_array()
}

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let Some(found) = json::find(text, is_ours) else {
        let line = text.lines().next().unwrap_or_default();
        return Err(CaptureError::new(0, line, 0, "{\"blockdevices\": [ … ]}"));
    };
    let disks_alone = level(&found.value["blockdevices"], None, captured, DEEPEST)?;
    forget_empty(captured, disks_alone);
    json::skip_others(text, &found, captured);
    Ok(())
}

/// Adds devices; whether all of them are disks.
fn level(
    list: &Value,
    above: Option<&str>,
    captured: &mut Captured,
    deep: usize,
) -> Result<bool, CaptureError> {
    let mut disks_alone = true;
    for device in list.as_array().map_or(&[][..], Vec::as_slice) {
        if captured.machine.block.len() > MOST_DEVICES || deep == 0 {
            return Err(CaptureError::new(0, "", 0, "fewer devices"));
        }
        let value = |column: &str| {
            let key = column.to_ascii_lowercase();
            let points = &device[key.as_str()];
            match points.as_array() {
                // `mountpoints` has several.
                Some(all) => {
                    let all: Vec<&str> = all.iter().filter_map(Value::as_str).collect();
                    Some(all.join("\\x0a"))
                }
                None if points.is_null() => device.get(&key).map(|_| String::new()),
                None => json::word(points),
            }
        };
        let Some(row) = Row::of(0, value) else { continue };
        let name = row.name.clone();
        let parent = value("PKNAME").filter(|name| !name.is_empty());
        disks_alone &= put(captured, row, above.or(parent.as_deref()));
        disks_alone &= level(&device["children"], Some(&name), captured, deep - 1)?;
    }
    Ok(disks_alone)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `lsblk -J -o KNAME,PATH,TYPE,MOUNTPOINT`.
    #[test]
    fn a_volume_has_the_name_that_its_mount_has() {
        let text = r#"{"blockdevices": [{"kname": "sda", "path": "/dev/sda", "type": "disk",
            "children": [{"kname": "dm-0", "path": "/dev/mapper/vg0-data", "type": "lvm",
            "mountpoint": "/data"}]}]}"#;
        let mut captured = Captured::default();
        crate::read("text", text, &mut captured).unwrap();
        let mount = &captured.machine.mounts[0];
        assert_eq!(mount.mount.source, "/dev/mapper/vg0-data");
        assert_eq!(mount.devices, ["vg0-data"]);
    }
}
