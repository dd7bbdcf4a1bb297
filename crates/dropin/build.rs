//! The linker's flags for the shared object.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The name by which programs ask for it, whatever its file is called.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcufile.so.0");
    // Its threads run on after dlclose(3): it must stay in memory. NVIDIA's library is marked so
    // too.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
