//! The device code in this crate: PTX for every GPU, and code that is compiled already.
//!
//! A driver compiles PTX when it first sees it, for 60 to 130 ms a module, while copies of all
//! threads wait; its cache is empty in a new container. Compiled code of an architecture X.y runs
//! on devices X.z with z of at least y ("CUDA C++ Programming Guide", binary compatibility).

/// The code of one source in `kernels`.
pub(crate) struct Code {
    /// PTX, which the driver compiles.
    pub(crate) ptx: &'static str,
    /// Images for some architectures, in ascending order.
    compiled: &'static [Compiled],
}

struct Compiled {
    /// Major and minor compute capability.
    built_for: (u32, u32),
    image: &'static Aligned<[u8]>,
}

/// An ELF image has headers of 8-byte words, which the driver may read in place.
#[repr(C, align(16))]
struct Aligned<T: ?Sized>(T);

impl Code {
    /// The image for a device of this compute capability.
    pub(crate) fn compiled_for(&self, (major, minor): (u32, u32)) -> Option<&'static [u8]> {
        let fits = |built: (u32, u32)| built.0 == major && built.1 <= minor;
        let found = self.compiled.iter().rev().find(|compiled| fits(compiled.built_for))?;
        Some(&found.image.0)
    }
}

macro_rules! code {
    ($($name:ident: $file:literal [$(($major:literal, $minor:literal)),*];)*) => {
        $(pub(crate) static $name: Code = Code {
            ptx: include_str!(concat!("../kernels/", $file, ".ptx")),
            compiled: &[$(Compiled {
                built_for: ($major, $minor),
                image: &Aligned(*include_bytes!(concat!(
                    "../kernels/compiled/", $file, ".sm_", $major, $minor, ".cubin"
                ))),
            }),*],
        };)*
    };
}

// Compiled is what a program waits for: the first read or write, the first digests.
code! {
    BUSY: "busy" [];
    GATHER: "gather" [(8, 0), (9, 0), (10, 0), (12, 0)];
    INITIATED: "initiated" [];
    PATTERN: "pattern" [(8, 0), (9, 0), (10, 0), (12, 0)];
    RESIDENT: "resident" [];
    RESIDENT_COPY: "resident_copy" [(8, 0), (9, 0), (10, 0), (12, 0)];
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const ALL: [(&str, &Code); 6] = [
        ("busy", &BUSY),
        ("gather", &GATHER),
        ("initiated", &INITIATED),
        ("pattern", &PATTERN),
        ("resident", &RESIDENT),
        ("resident_copy", &RESIDENT_COPY),
    ];

    fn hash(bytes: impl IntoIterator<Item = u8>) -> String {
        let hash = bytes.into_iter().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
        });
        format!("fnv1a64:{hash:016x}")
    }

    fn read(name: &str) -> Vec<u8> {
        std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels").join(name)).unwrap()
    }

    #[test]
    fn the_ptx_is_of_this_source() {
        for (name, code) in ALL {
            let mut sources = vec![format!("{name}.cu"), "device.cuh".into(), "copy.cuh".into()];
            sources.extend((name == "initiated").then(|| "gpuio_device.cuh".to_owned()));
            let hash = hash(sources.iter().flat_map(|source| read(source)));
            let expected = format!("// made by kernels/build.sh from {name}.cu {hash}");
            let first = code.ptx.lines().next();
            assert_eq!(first, Some(&*expected), "{name}.ptx is older: run kernels/build.sh");
        }
    }

    #[test]
    fn the_compiled_code_is_of_this_ptx() {
        let made = String::from_utf8(read("compiled/made")).unwrap();
        let mut lines: Vec<&str> = made.lines().collect();
        for (name, code) in ALL {
            for Compiled { built_for: (major, minor), image } in code.compiled {
                let (ptx, image) = (hash(code.ptx.bytes()), hash(image.0.iter().copied()));
                let file = format!("compiled/{name}.sm_{major}{minor}.cubin");
                let expected = format!("{file} {image} from {name}.ptx {ptx}");
                let line = lines.iter().position(|line| *line == expected);
                lines
                    .swap_remove(line.unwrap_or_else(|| panic!("{file} is older than {name}.ptx")));
            }
        }
        assert_eq!(lines, [""; 0], "made for no device in the table");
    }

    #[test]
    fn compiled_code_is_of_the_devices_major_release_and_of_no_later_minor_one() {
        let of = |compute| GATHER.compiled_for(compute).map(<[u8]>::as_ptr);
        assert_eq!(of((8, 9)), of((8, 0)));
        assert_ne!(of((9, 0)), of((8, 0)));
        assert!(of((9, 0)).is_some() && of((10, 3)).is_some());
        assert_eq!([of((7, 5)), of((11, 0)), of((13, 0))], [None; 3]);
    }
}
