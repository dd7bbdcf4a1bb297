//! Linker options of the shared object.

fn main() {
    // Stream threads run code of the object: it must stay mapped when a program closes it, as the
    // CUDA driver does too (ld(1), -z nodelete).
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
