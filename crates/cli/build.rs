//! Makes the archive of the shared objects that the program carries (docs/install.md).
//!
//! `GPUIO_OBJECTS` names an archive that was made before (`cargo xtask dist`). Without it, the
//! feature `carry` builds the objects here, by a cargo of its own in a directory of its own: what
//! cargo builds for this package has other settings, and is made after this program has run.
//! Without either the archive is empty, and the program looks for the objects beside it.

use std::path::PathBuf;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=GPUIO_OBJECTS");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let archive = out.join("objects.tar.gz");
    let bytes = match std::env::var_os("GPUIO_OBJECTS") {
        Some(made) => {
            let made = PathBuf::from(made);
            println!("cargo:rerun-if-changed={}", made.display());
            std::fs::read(&made).unwrap_or_else(|error| panic!("{}: {error}", made.display()))
        }
        None => carry::archive(&out.join("objects")),
    };
    std::fs::write(&archive, bytes).expect("OUT_DIR can be written");
}

#[cfg(not(feature = "carry"))]
mod carry {
    /// Nothing is carried.
    pub(super) fn archive(_: &std::path::Path) -> Vec<u8> {
        Vec::new()
    }
}

#[cfg(feature = "carry")]
mod carry {
    use std::path::Path;
    use std::process::Command;

    use flate2::{Compression, write::GzEncoder};

    /// Package, cargo's file, and the name that programs ask for.
    const OBJECTS: [(&str, &str, &str); 4] = [
        ("gpuio-dropin", "libcufile.so", "libcufile.so.0"),
        ("gpuio-softgpu", "libgpuio_softgpu.so", "libgpuio_softgpu.so"),
        ("gpuio-softcufile", "libgpuio_softcufile.so", "libgpuio_softcufile.so"),
        ("gpuio-clib", "libgpuio.so", "libgpuio.so.0"),
    ];

    pub(super) fn archive(directory: &Path) -> Vec<u8> {
        println!("cargo:rerun-if-changed=..");
        let target = std::env::var("TARGET").expect("cargo sets TARGET");
        let mut cargo = Command::new(std::env::var_os("CARGO").expect("cargo sets CARGO"));
        cargo.args(["build", "--release", "--manifest-path", "../../Cargo.toml", "--target"]);
        cargo.arg(&target).arg("--target-dir").arg(directory);
        cargo.args(OBJECTS.iter().flat_map(|(package, _, _)| ["-p", package]));
        cargo.env("CARGO_PROFILE_RELEASE_STRIP", "true").env("CARGO_PROFILE_RELEASE_DEBUG", "0");
        // Set where clippy runs this program.
        cargo.env_remove("RUSTC_WORKSPACE_WRAPPER");
        let status = cargo.status().expect("cargo can be started");
        assert!(status.success(), "{cargo:?} ended with {status}");
        let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::best()));
        for (_, file, name) in OBJECTS {
            let path = directory.join(&target).join("release").join(file);
            archive.append_path_with_name(&path, name).expect("the object was built");
        }
        archive.into_inner().and_then(GzEncoder::finish).expect("memory can be written")
    }
}
