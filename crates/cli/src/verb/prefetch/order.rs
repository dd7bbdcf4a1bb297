//! Which bytes of which files, in the order in which they will be needed.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::path::{Path, PathBuf};

use gpuio_base::trace::{MAGIC, Op, Trace};

use crate::failure::Failure;
use crate::verb::{replay, workload};

/// Most bytes of a piece.
pub(super) const PIECE: u64 = 8 << 20;
/// Bytes of a trace's file that are wanted as soon as a call reads one of them.
const GRAIN: u64 = 1 << 20;
/// Longer texts are no first line of fio's.
const HEAD: usize = 16;

/// Files that can be read, and pieces of them in order. They are not kept open: a program may read
/// more of them than this process may have open.
#[derive(Debug, Default)]
pub(super) struct Order {
    pub(super) files: Vec<PathBuf>,
    /// Numbers of files, and their bytes.
    pub(super) pieces: Vec<(usize, Range<u64>)>,
}

impl Order {
    /// The files of all paths, one after the other.
    pub(super) fn of(paths: &[PathBuf]) -> Result<Order, Failure> {
        let mut order = Order::default();
        for path in paths {
            let failed = |error| wrong(path, error);
            if std::fs::metadata(path).map_err(failed)?.is_dir() {
                order.add_directory(path)?;
            } else if is_trace(path).map_err(failed)? {
                order.add_trace(path, &replay::read(path)?)?;
            } else {
                order.add_whole(path)?;
            }
        }
        Ok(order)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.pieces.iter().map(|(_, range)| range.end - range.start).sum()
    }

    /// The files of a model, or all that are in it.
    fn add_directory(&mut self, directory: &Path) -> Result<(), Failure> {
        let failed = |error| wrong(directory, error);
        let entries = std::fs::read_dir(directory).map_err(failed)?;
        let mut names: Vec<PathBuf> = entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()
            .map_err(failed)?;
        names.retain(|path| path.is_file());
        names.sort();
        let model = ".safetensors";
        if names.iter().any(|path| path.as_os_str().as_encoded_bytes().ends_with(model.as_bytes()))
        {
            let (named, note) = workload::model_files(directory, model)?;
            if let Some(note) = note {
                message!("note: {note}");
            }
            names = named.into_iter().map(PathBuf::from).collect();
        }
        if names.is_empty() {
            return Err(wrong(directory, "no file is in it; name the directory of a model"));
        }
        names.iter().try_for_each(|path| self.add_whole(path))
    }

    fn add_whole(&mut self, path: &Path) -> Result<(), Failure> {
        let (_, size) = opened(path).map_err(|error| wrong(path, error))?;
        let number = self.files.len();
        self.files.push(path.to_owned());
        let all = std::iter::successors(Some(0), |at| Some(at + PIECE));
        let starts = all.take_while(|at| *at < size);
        self.pieces.extend(starts.map(|at| (number, at..size.min(at + PIECE))));
        Ok(())
    }

    /// The bytes that calls of a trace have read, in the order of their beginnings.
    fn add_trace(&mut self, path: &Path, trace: &Trace) -> Result<(), Failure> {
        let mut numbers = Vec::new();
        let mut absent = Vec::new();
        for file in &trace.files {
            let Some(name) = &file.path else {
                let why = "it has no names of files (--anonymous); name the model's directory";
                return Err(wrong(path, why));
            };
            numbers.push(match opened(Path::new(name)) {
                Ok((_, size)) => {
                    self.files.push(name.into());
                    Some((self.files.len() - 1, size))
                }
                Err(error) => {
                    absent.push(format!("{name}: {error}"));
                    None
                }
            });
        }
        if let Some(first) = absent.first() {
            let names = format!("{} of its {} files", absent.len(), trace.files.len());
            if absent.len() == trace.files.len() {
                return Err(wrong(path, format!("none of its files can be read: {first}")));
            }
            message!("note: {}: {names} can't be read: {first}", path.display());
        }
        let size = |file: usize| numbers.get(file).copied().flatten().map_or(0, |(_, size)| size);
        for (file, range) in grains(trace, size) {
            let Some(Some((number, size))) = numbers.get(file) else { continue };
            let range = range.start..range.end.min(*size);
            if range.is_empty() {
                continue;
            }
            match self.pieces.last_mut() {
                Some((last, before))
                    if *last == *number
                        && before.end == range.start
                        && range.end - before.start <= PIECE =>
                {
                    before.end = range.end;
                }
                _ => self.pieces.push((*number, range)),
            }
        }
        Ok(())
    }
}

/// Each grain of a file that calls read, once, where the first of them began. None lies behind the
/// size of the file: a trace may say anything.
fn grains(trace: &Trace, size: impl Fn(usize) -> u64) -> Vec<(usize, Range<u64>)> {
    let mut calls: Vec<_> = trace.calls.iter().filter(|call| call.op == Op::Read).collect();
    calls.sort_by_key(|call| call.begin_ns);
    let (mut seen, mut found) = (HashSet::new(), Vec::new());
    for call in calls {
        let Some(range) = call.moved() else { continue };
        let end = range.end.min(size(call.file as usize));
        for grain in range.start / GRAIN..end.div_ceil(GRAIN) {
            if seen.insert((call.file, grain)) {
                let at = grain * GRAIN;
                found.push((call.file as usize, at..at.saturating_add(GRAIN)));
            }
        }
    }
    found
}

/// A regular file, open to be read, and its size.
fn opened(path: &Path) -> std::io::Result<(File, u64)> {
    // A pipe would wait for its writer.
    if !std::fs::metadata(path)?.is_file() {
        let what = "it is no regular file";
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, what));
    }
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    Ok((file, size))
}

/// Whether a file begins as a trace of gpuio's or fio's.
fn is_trace(path: &Path) -> std::io::Result<bool> {
    let (file, _) = opened(path)?;
    let mut head = Vec::new();
    file.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head.starts_with(&MAGIC) || head.starts_with(b"fio version "))
}

fn wrong(path: &Path, what: impl std::fmt::Display) -> Failure {
    Failure::Usage(format!("{}: {what}", path.display()))
}
