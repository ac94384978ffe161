//! From paths to the files that define what they name.

use std::collections::BTreeSet;

use crate::graph::Graph;
use crate::source::{Import, Source};

/// How many imports are followed one after the other, so that names that import each other end.
const IMPORTS_MAX: usize = 16;

/// What a path names.
#[derive(Clone, Copy)]
enum Named {
    Module(usize),
    ItemOf(usize),
}

/// The arrows between the files of `source`.
pub fn graph(source: &Source) -> Graph {
    let mut uses = vec![BTreeSet::new(); source.files.len()];
    for (module, of) in source.modules.iter().enumerate() {
        let own = of.imports.iter().filter(|import| !is_only_handed_on(import, &of.names)).map(|import| &import.path);
        for path in own.chain(&of.paths) {
            if let Some(Named::ItemOf(defining)) = resolve(source, module, path, IMPORTS_MAX) {
                uses[of.file].insert(source.modules[defining].file);
            }
        }
    }
    Graph::new(source.files.clone(), uses)
}

/// A re-export of a name that its own module does not use.
fn is_only_handed_on(import: &Import, names: &BTreeSet<String>) -> bool {
    import.is_public && import.name.as_ref().is_none_or(|name| !names.contains(name))
}

/// `None` if the path leaves the crate, or names what no module defines, like a local variable.
fn resolve(source: &Source, module: usize, path: &[String], imports_left: usize) -> Option<Named> {
    let mut at = Named::Module(module);
    for (place, name) in path.iter().enumerate() {
        let Named::Module(inside) = at else { return Some(at) };
        at = match (place, name.as_str()) {
            (0, "crate") => Named::Module(0),
            (0, "self") => Named::Module(inside),
            (_, "super") => Named::Module(source.modules[inside].parent?),
            _ => look_up(source, inside, name, imports_left)?,
        };
    }
    Some(at)
}

fn look_up(source: &Source, module: usize, name: &str, imports_left: usize) -> Option<Named> {
    let of = &source.modules[module];
    if let Some(&child) = of.children.get(name) {
        return Some(Named::Module(child));
    }
    if of.defined.contains(name) {
        return Some(Named::ItemOf(module));
    }
    let left = imports_left.checked_sub(1)?;
    let named = of.imports.iter().filter(|import| import.name.as_deref() == Some(name));
    let by_name = named.filter(|import| import.path.len() > 1 || import.path[0] != name);
    let mut found = by_name.filter_map(|import| resolve(source, module, &import.path, left));
    found.next().or_else(|| {
        let globs = of.imports.iter().filter(|import| import.name.is_none());
        globs.filter_map(|glob| resolve(source, module, &glob.path, left)).find_map(|from| match from {
            Named::Module(from) if from != module => look_up(source, from, name, left),
            Named::Module(_) | Named::ItemOf(_) => None,
        })
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The arrows of a crate made of these files, as `from -> to`.
    fn arrows(files: &[(&str, &str)]) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a file stands in a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        let graph = graph(&Source::read(&folder.path().join("lib.rs")).expect("a crate"));
        graph.arrows().map(|(from, to)| format!("{} -> {}", graph.name(from), graph.name(to))).collect()
    }

    #[test]
    fn a_use_and_a_path_in_code_are_arrows() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::b::Thing;"),
            ("b.rs", "pub struct Thing; fn f() { super::c::g(); }"),
        ];
        assert_eq!(arrows(&[&files[..], &[("c.rs", "pub fn g() {}")]].concat()), ["a -> b", "b -> c"]);
    }

    #[test]
    fn a_path_through_a_module_that_was_imported_is_an_arrow_and_the_import_alone_is_none() {
        let files =
            [("lib.rs", "mod a; mod b; mod c;"), ("a.rs", "use crate::{b, c}; fn f() { println!(\"{}\", b::g()); }")];
        assert_eq!(arrows(&[&files[..], &[("b.rs", "pub fn g() {}"), ("c.rs", "")]].concat()), ["a -> b"]);
    }

    #[test]
    fn a_name_that_is_handed_on_is_an_arrow_to_where_it_is_defined() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::Thing;"),
            ("b.rs", "mod c; pub use c::Thing;"),
            ("b/c.rs", "pub struct Thing;"),
        ];
        assert_eq!(arrows(&files), ["a -> b/c"]);
    }

    #[test]
    fn tests_have_no_arrows() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "#[cfg(test)] mod tests { use crate::b::Thing; }"),
            ("b.rs", "pub struct Thing;"),
        ];
        assert!(arrows(&files).is_empty());
    }
}
