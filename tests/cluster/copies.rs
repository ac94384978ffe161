//! What the built library copies on the path of a fault and of a release: pages, and nothing else.
//!
//! A structure of more than 128 bytes that is moved by value is a call of `memcpy`: no line of the source shows it, and a table's answer
//! moved three times costs a tenth of a release. So this looks into the functions of the path, as the compiler left them.

use std::collections::{BTreeMap, HashSet};
use std::fs;

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget};

use crate::support::built;

/// Parts of the names of the functions of the path: faults, releases and acquires, transactions, tables.
const PATH: &[&str] = &[
    "finespun_runtime7process6faults",
    "finespun_runtime11consistency",
    "finespun_runtime..consistency..nest",
    "finespun_engine",
    "finespun_protocol",
];

/// Parts of the names of others that stand beside them: lazy release consistency, messages that are joined, and what is told along with
/// messages of synchronization. They copy what they send.
const BESIDE: &[&str] =
    &["finespun_runtime11consistency3tmk", "finespun_runtime11consistency4join", "finespun_runtime11consistency5along"];

/// The page.
const PAGE: u64 = 4096;

/// How many bytes each call of `memcpy` copies, by function; none if they are not known before.
fn copies(library: &[u8]) -> BTreeMap<String, Vec<Option<u64>>> {
    let file = ElfFile64::<object::Endianness>::parse(library).expect("an ELF library");
    let slots = slots(&file);
    let mut copies = BTreeMap::new();
    for symbol in file.symbols().filter(|symbol| symbol.is_definition() && symbol.size() > 0) {
        let name = symbol.name().unwrap_or_default();
        let section = symbol.section_index().and_then(|index| file.section_by_index(index).ok());
        let is_of = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
        let is_on_path = is_of(PATH) && !is_of(BESIDE);
        if !is_on_path || !section.is_some_and(|section| section.name() == Ok(".text")) {
            continue;
        }
        let section = file.section_by_name(".text").expect("it has code");
        let code = section.data_range(symbol.address(), symbol.size()).ok().flatten().expect("a function's code");
        copies.insert(name.to_owned(), copies_of(code, symbol.address(), &slots));
    }
    copies
}

/// The addresses of the pointers by which `memcpy` and `memmove` are called.
fn slots(file: &ElfFile64<'_>) -> HashSet<u64> {
    let names: HashSet<_> = file
        .dynamic_symbols()
        .filter(|symbol| matches!(symbol.name(), Ok("memcpy" | "memmove")))
        .map(|symbol| symbol.index())
        .collect();
    let relocations = file.dynamic_relocations().expect("the library is linked to others");
    let to_them = relocations.filter(
        |(_, relocation)| matches!(relocation.target(), RelocationTarget::Symbol(symbol) if names.contains(&symbol)),
    );
    to_them.map(|(address, _)| address).collect()
}

fn copies_of(code: &[u8], address: u64, slots: &HashSet<u64>) -> Vec<Option<u64>> {
    let (mut copies, mut bytes) = (Vec::new(), None);
    for instruction in Decoder::with_ip(64, code, address, DecoderOptions::NONE).iter() {
        let called = instruction.code() == Code::Call_rm64 && instruction.is_ip_rel_memory_operand();
        if called && slots.contains(&instruction.ip_rel_memory_address()) {
            copies.push(bytes);
        }
        if let Some(known) = third_argument(&instruction) {
            bytes = known;
        }
    }
    copies
}

/// What an instruction leaves in the register of the third argument: nothing new, or a number, or something that is not known before.
#[allow(clippy::option_option)]
fn third_argument(instruction: &Instruction) -> Option<Option<u64>> {
    let mnemonic = instruction.mnemonic();
    if mnemonic == Mnemonic::Call {
        return Some(None);
    }
    let is_it = matches!(instruction.op0_register(), Register::RDX | Register::EDX | Register::DX | Register::DL);
    let only_reads = [Mnemonic::Cmp, Mnemonic::Test, Mnemonic::Push].contains(&mnemonic);
    if instruction.op_count() == 0 || instruction.op0_kind() != OpKind::Register || !is_it || only_reads {
        return None;
    }
    let is_number = [OpKind::Immediate32, OpKind::Immediate32to64].contains(&instruction.op1_kind());
    Some((mnemonic == Mnemonic::Mov && is_number).then(|| instruction.immediate(1)))
}

#[test]
fn the_path_of_a_fault_or_a_release_copies_pages_only() {
    let library = fs::read(built("lib/libfinespun.so")).expect("the library that make built");
    let copies = copies(&library);
    let pages = copies.values().flatten().filter(|bytes| **bytes == Some(PAGE)).count();
    let has = |part: &str| copies.keys().any(|name| name.contains(part));
    assert!(has("4nest") && has("finespun_protocol8cashmere9requester"), "functions of the path have other names now");
    assert!(pages > 0, "a page is copied somewhere on it");
    let others: Vec<_> = copies.iter().filter(|(_, bytes)| bytes.iter().any(|bytes| *bytes != Some(PAGE))).collect();
    assert!(others.is_empty(), "these copy something else (bytes): {others:#?}");
}
