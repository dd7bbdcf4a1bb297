//! Replaces paths of a preset that can't run here.

use gpuio_job::sweep::Preset;

use super::child;
use crate::args::Work;
use crate::failure::Failure;

/// Replaces the preset's path by one that can run here, and says so in the preset's note.
pub(super) fn fall_back(
    keys: &mut [(String, String)],
    work: &Work,
    preset: Option<&Preset>,
) -> Result<String, Failure> {
    let own = preset.map_or("", |preset| preset.note).to_owned();
    let Some(preset) = preset.filter(|preset| !preset.fallbacks.is_empty()) else { return Ok(own) };
    let theirs = preset.keys.iter().find(|(key, _)| *key == "path").map(|(_, path)| *path);
    let gpu = keys.iter().find(|(key, _)| key == "gpu").map(|(_, gpu)| gpu.clone());
    let requested =
        keys.iter_mut().find(|(key, path)| key == "path" && Some(path.as_str()) == theirs);
    let Some((_, path)) = requested else { return Ok(own) };
    let mut why = None;
    for name in std::iter::once(path.clone()).chain(preset.fallbacks.iter().map(|&n| n.to_owned()))
    {
        let mut words = vec!["bench".to_owned(), "--path".to_owned(), name.clone()];
        let gpu = gpu.iter().filter(|_| name != "host").cloned();
        words.extend(gpu.flat_map(|gpu| ["--gpu".to_owned(), gpu]));
        let library = work.own.cufile.cufile_lib.iter().map(|file| file.display().to_string());
        words.extend(library.flat_map(|file| ["--cufile-lib".to_owned(), file]));
        match child::unavailable(&words)? {
            None if why.is_none() => return Ok(own),
            None => {
                let instead = format!(
                    "path {path} can't run here, so path {name} is used instead: these are not \
                     results of {path}. {}",
                    why.unwrap_or_default()
                );
                *path = name;
                return Ok(instead);
            }
            Some(reason) => why = why.or(Some(reason)),
        }
    }
    Ok(own)
}
