//! A crate as it is written: its modules, what each defines and imports, and the paths that each names.
#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "syn's enums may gain variants: a match without `_` does not compile"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{Spacing, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, Item, ItemMod, UseTree, Visibility};

/// A crate: the root is module 0.
pub struct Source {
    pub modules: Vec<Module>,
    pub files: Vec<String>,
    /// For each module below the root, in the order of their groups in the root file: which group.
    layers: BTreeMap<String, usize>,
}

/// A module: a file, or a part of one between braces.
#[derive(Default)]
pub struct Module {
    pub file: usize,
    pub parent: Option<usize>,
    pub children: BTreeMap<String, usize>,
    pub defined: BTreeSet<String>,
    pub imports: Vec<Import>,
    /// Paths of two names and more that stand in code, and single names.
    pub paths: BTreeSet<Vec<String>>,
    pub names: BTreeSet<String>,
}

/// One name that a `use` brings; a glob has none.
pub struct Import {
    pub path: Vec<String>,
    pub name: Option<String>,
    pub is_public: bool,
}

impl Source {
    /// Reads the crate whose root file is `root`.
    pub fn read(root: &Path) -> Result<Self, String> {
        let text = text_of(root)?;
        let mut source = Self { modules: Vec::new(), files: Vec::new(), layers: layers_of(&text) };
        let folder = root.parent().expect("a file stands in a folder").to_path_buf();
        source.file(root, &folder, None, "lib")?;
        Ok(source)
    }

    /// The layer of the top module that `file` belongs to; the root file has none.
    pub fn layer_of(&self, file: usize) -> Option<usize> {
        let top = self.files[file].split('/').next().unwrap_or_default();
        self.layers.get(top).copied()
    }

    fn file(&mut self, path: &Path, folder: &Path, parent: Option<usize>, name: &str) -> Result<usize, String> {
        let parsed = syn::parse_file(&text_of(path)?).map_err(|error| format!("{}: {error}", path.display()))?;
        self.files.push(name.to_owned());
        self.module(parsed.items, folder, parent, self.files.len() - 1)
    }

    fn module(&mut self, items: Vec<Item>, folder: &Path, parent: Option<usize>, file: usize) -> Result<usize, String> {
        let this = self.modules.len();
        self.modules.push(Module { file, parent, ..Module::default() });
        for item in items {
            if attributes(&item).iter().any(is_for_tests) {
                continue;
            }
            match item {
                Item::Mod(item) => {
                    let name = item.ident.to_string();
                    let child = self.child(item, folder, this)?;
                    self.modules[this].children.insert(name, child);
                }
                Item::Use(item) => {
                    let is_public = !matches!(item.vis, Visibility::Inherited);
                    imports(&item.tree, &mut Vec::new(), is_public, &mut self.modules[this].imports);
                }
                item => {
                    let module = &mut self.modules[this];
                    module.defined.extend(name_of(&item));
                    paths(item.to_token_stream(), module);
                }
            }
        }
        Ok(this)
    }

    fn child(&mut self, item: ItemMod, folder: &Path, parent: usize) -> Result<usize, String> {
        let name = item.ident.to_string();
        if let Some((_, items)) = item.content {
            return self.module(items, &folder.join(&name), Some(parent), self.modules[parent].file);
        }
        let beside: PathBuf = folder.join(format!("{name}.rs"));
        let inside = folder.join(&name).join("mod.rs");
        let shown = match self.files[self.modules[parent].file].as_str() {
            "lib" => name.clone(),
            above => format!("{above}/{name}"),
        };
        self.file(if beside.exists() { &beside } else { &inside }, &folder.join(&name), Some(parent), &shown)
    }
}

fn text_of(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The groups of `mod` lines in a root file, numbered from above.
fn layers_of(text: &str) -> BTreeMap<String, usize> {
    let mut layers = BTreeMap::new();
    let (mut group, mut is_open) = (0, false);
    for line in text.lines() {
        let words = line.trim_start_matches("pub(crate) ").trim_start_matches("pub ");
        if let Some(name) = words.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')) {
            layers.insert(name.to_owned(), group);
            is_open = true;
        } else if is_open && line.trim().is_empty() {
            group += 1;
            is_open = false;
        }
    }
    layers
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn is_for_tests(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg") && attribute.parse_args::<syn::Ident>().is_ok_and(|what| what == "test")
}

fn name_of(item: &Item) -> Option<String> {
    match item {
        Item::Const(item) => Some(item.ident.to_string()),
        Item::Enum(item) => Some(item.ident.to_string()),
        Item::Fn(item) => Some(item.sig.ident.to_string()),
        Item::Macro(item) => item.ident.as_ref().map(ToString::to_string),
        Item::Static(item) => Some(item.ident.to_string()),
        Item::Struct(item) => Some(item.ident.to_string()),
        Item::Trait(item) => Some(item.ident.to_string()),
        Item::Type(item) => Some(item.ident.to_string()),
        Item::Union(item) => Some(item.ident.to_string()),
        _ => None,
    }
}

fn imports(tree: &UseTree, before: &mut Vec<String>, is_public: bool, found: &mut Vec<Import>) {
    let mut take = |before: &[String], last: String, name: String| {
        let mut path = before.to_vec();
        if last != "self" {
            path.push(last);
        }
        let name = if name == "self" { path.last().cloned() } else { Some(name) };
        found.push(Import { path, name, is_public });
    };
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            imports(&path.tree, before, is_public, found);
            before.pop();
        }
        UseTree::Name(name) => take(before, name.ident.to_string(), name.ident.to_string()),
        UseTree::Rename(name) => take(before, name.ident.to_string(), name.rename.to_string()),
        UseTree::Glob(_) => found.push(Import { path: before.clone(), name: None, is_public }),
        UseTree::Group(group) => group.items.iter().for_each(|tree| imports(tree, before, is_public, found)),
    }
}

/// Every name of the tokens, and every path `a::b::c`, the arguments of macros included.
fn paths(tokens: TokenStream, module: &mut Module) {
    let mut path: Vec<String> = Vec::new();
    let mut colons = 0;
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => {
                if colons != 2 {
                    keep(&mut path, module);
                }
                path.push(ident.to_string());
                colons = 0;
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' && (punct.spacing() == Spacing::Joint || colons == 1) => {
                colons += 1
            }
            TokenTree::Group(group) => {
                keep(&mut path, module);
                colons = 0;
                paths(group.stream(), module);
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {
                keep(&mut path, module);
                colons = 0;
            }
        }
    }
    keep(&mut path, module);
}

fn keep(path: &mut Vec<String>, module: &mut Module) {
    module.names.extend(path.first().cloned());
    if path.len() > 1 {
        module.paths.insert(std::mem::take(path));
    }
    path.clear();
}
