//! A capture of a server from its table (crates/testkit/machines), for trying things
//! out: `cargo run -p gpuio-capture --example server -- TABLE OUT.tar`.
#![expect(clippy::unwrap_used, reason = "a tool of developers: what fails there fails it")]

fn main() {
    let mut words = std::env::args().skip(1);
    let (table, out) = (words.next().unwrap(), words.next().unwrap());
    let tree = gpuio_testkit::tree::build(&std::fs::read_to_string(table).unwrap());
    let (root, recorder) = tree.root().recording();
    // Its result is not wanted, but the files that it reads.
    let _ = gpuio_host::machine::read(&root);
    let redacted = gpuio_capture::pack::redact(&recorder.tree(), &[], 0);
    std::fs::write(out, gpuio_capture::pack::write(&redacted).unwrap()).unwrap();
}
