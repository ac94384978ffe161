//! The name under which programs ask the loader for the library: it ends in the first number of the version.

fn main() {
    let major = env!("CARGO_PKG_VERSION_MAJOR");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libfinespun.so.{major}");
    println!("cargo::rerun-if-changed=build.rs");
}
