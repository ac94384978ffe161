use super::{Endless, Load, Memory, endless};
use crate::sys::trace::Registers;

const CODE: u64 = 0x40_1000;
const STACK: u64 = 0x7fff_0000;
const SHARED: u64 = 0x40_1100;
const RDI: usize = 7;
const RBP: usize = 5;
const RAX: usize = 0;

/// Where shared memory holds a pointer to `SHARED`.
const POINTER: u64 = SHARED + 8;

/// A loop, a pointer to shared memory on the stack, and shared memory behind the code.
struct Process(Vec<u8>);

impl Memory for Process {
    fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        let mut all = self.0.clone();
        all.resize(0x80, 0xcc);
        let stack = SHARED.to_le_bytes();
        let (from, start) = match address {
            address if address >= STACK - 8 => (&stack[..], STACK - 8),
            address if address >= POINTER => (&stack[..], POINTER),
            _ => (&all[..], CODE),
        };
        let Some(found) = address.checked_sub(start).and_then(|at| from.get(at as usize..at as usize + bytes.len()))
        else {
            return false;
        };
        bytes.copy_from_slice(found);
        true
    }

    fn is_shared(&self, address: u64) -> bool {
        (SHARED..SHARED + 4096).contains(&address)
    }
}

/// The word `SHARED` relative to the end of an instruction that ends so many bytes into the code.
fn relative(end: u8) -> [u8; 4] {
    ((SHARED - CODE) as u32 - u32::from(end)).to_le_bytes()
}

/// Samples at these places in the code, and what is concluded.
fn look(code: &[u8], places: &[u64]) -> Option<Endless> {
    let mut general = [0; 16];
    (general[RDI], general[RBP]) = (SHARED, STACK);
    let samples: Vec<_> = places.iter().map(|place| Registers { at: CODE + place, general }).collect();
    endless(&samples, &Process(code.to_vec()))
}

fn waits(size: usize, at: u64) -> Option<Endless> {
    Some(Endless::Waits(vec![Load { address: SHARED, size, at: CODE + at }]))
}

fn join(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

#[test]
fn a_loop_that_loads_a_word_and_tests_it_waits_for_it() {
    // mov eax, [rip+x]; test eax, eax; je
    let code = join(&[&[0x8b, 0x05], &relative(6), &[0x85, 0xc0, 0x74, 0xf6]]);
    assert_eq!(look(&code, &[0, 6, 8, 0]), waits(4, 0));
    assert_eq!(look(&code, &[6, 6, 6]), waits(4, 0), "seen always at one place");
    assert_eq!(look(&code, &[0, 7]), None, "no instruction begins there");
}

#[test]
fn a_comparison_with_memory_does_too() {
    // cmp dword [rip+x], 0; je
    let code = join(&[&[0x83, 0x3d], &relative(7), &[0x00, 0x74, 0xf7]]);
    assert_eq!(look(&code, &[0, 7]), waits(4, 0));
}

#[test]
fn a_pointer_on_the_stack_is_followed_whatever_the_registers_hold_meanwhile() {
    // mov rax, [rbp-8]; mov eax, [rax]; test eax, eax; je
    let code = [0x48, 0x8b, 0x45, 0xf8, 0x8b, 0x00, 0x85, 0xc0, 0x74, 0xf6];
    assert_eq!(look(&code, &[0, 4, 6, 8]), waits(4, 4));
}

#[test]
fn a_pointer_in_shared_memory_is_followed_if_the_loop_leaves_it_alone() {
    // mov rax, [rdi+8]; mov eax, [rax]; test eax, eax; je
    let code = [0x48, 0x8b, 0x47, 0x08, 0x8b, 0x00, 0x85, 0xc0, 0x74, 0xf6];
    assert_eq!(look(&code, &[0, 4, 6, 8]), waits(4, 4));
    // the same, and mov [rdi+8], rcx before the branch: it walks
    let code = [0x48, 0x8b, 0x47, 0x08, 0x8b, 0x00, 0x85, 0xc0, 0x48, 0x89, 0x4f, 0x08, 0x74, 0xf2];
    assert_eq!(look(&code, &[0, 4, 6, 8]), None);
}

#[test]
fn a_loop_that_stores_through_a_pointer_on_the_stack_is_looked_at_to_an_end() {
    // mov rax, [rbp-8]; mov [rax+64], ecx; mov eax, [rip+x]; test eax, eax; je
    let code =
        join(&[&[0x48, 0x8b, 0x45, 0xf8, 0x89, 0x48, 0x40, 0x8b, 0x05], &relative(13), &[0x85, 0xc0, 0x74, 0xef]]);
    assert_eq!(look(&code, &[0, 4, 7, 13]), waits(4, 7));
    // the same, and it stores to the word that it waits for
    let code =
        join(&[&[0x48, 0x8b, 0x45, 0xf8, 0x89, 0x48, 0x00, 0x8b, 0x05], &relative(13), &[0x85, 0xc0, 0x74, 0xef]]);
    assert_eq!(look(&code, &[0, 4, 7, 13]), None);
}

#[test]
fn a_variable_that_the_loop_sets_on_the_stack_is_what_it_was_set_to() {
    // mov eax, [rip+x]; mov [rbp-16], eax; cmp dword [rbp-16], 0; je
    let code = join(&[&[0x8b, 0x05], &relative(6), &[0x89, 0x45, 0xf0, 0x83, 0x7d, 0xf0, 0x00, 0x74, 0xf1]]);
    assert_eq!(look(&code, &[0, 6, 9, 13]), waits(4, 0));
    // add dword [rbp-16], 1; cmp dword [rbp-16], 0; jne: it counts
    let code = [0x83, 0x45, 0xf0, 0x01, 0x83, 0x7d, 0xf0, 0x00, 0x75, 0xf6];
    assert_eq!(look(&code, &[0, 4, 8]), None);
}

#[test]
fn a_lock_that_is_tried_again_and_again_is_waited_for() {
    // mov eax, 1; xchg [rdi], eax; test eax, eax; jne
    let code = [0xb8, 1, 0, 0, 0, 0x87, 0x07, 0x85, 0xc0, 0x75, 0xf5];
    assert_eq!(look(&code, &[5, 7]), waits(4, 5));
}

#[test]
fn a_call_in_the_loop_does_not_matter_if_the_word_is_loaded_after_it() {
    // call; mov eax, [rip+x]; test eax, eax; je
    let code = join(&[&[0xe8, 0, 1, 0, 0, 0x8b, 0x05], &relative(11), &[0x85, 0xc0, 0x74, 0xf1]]);
    assert_eq!(look(&code, &[5, 11]), waits(4, 5));
    // mov eax, [rip+x]; call; test eax, eax; je: what is tested is the call's
    let code = join(&[&[0x8b, 0x05], &relative(6), &[0xe8, 0, 1, 0, 0, 0x85, 0xc0, 0x74, 0xf1]]);
    assert_eq!(look(&code, &[0, 11]), None);
}

#[test]
fn a_wait_that_counts_its_turns_ends_by_itself() {
    // sub ecx, 1; je +9; cmp dword [rip+x], 0; je back
    let code = join(&[&[0x83, 0xe9, 0x01, 0x74, 0x09, 0x83, 0x3d], &relative(12), &[0x00, 0x74, 0xf2]]);
    assert_eq!(look(&code, &[0, 5, 12]), None);
}

#[test]
fn a_loop_over_an_array_ends_by_itself() {
    // movsd xmm0, [rdi+rax]; add rax, 8; cmp rax, [rip+x]; jne: the bound is shared and stays, the index moves
    let code = join(&[
        &[0xf2, 0x0f, 0x10, 0x04, 0x07, 0x48, 0x83, 0xc0, 0x08, 0x48, 0x3b, 0x05],
        &relative(16),
        &[0x75, 0xee],
    ]);
    assert_eq!(look(&code, &[0, 5, 9, 16]), None);
}

#[test]
fn a_wait_for_private_memory_is_no_business_of_ours() {
    // cmp qword [rbp-8], 0; jne
    let code = [0x48, 0x83, 0x7d, 0xf8, 0x00, 0x75, 0xf9];
    assert_eq!(look(&code, &[0, 5]), None);
}

#[test]
fn a_loop_that_counts_in_shared_memory_what_it_waits_for_is_none() {
    // add dword [rdi], 1; cmp dword [rdi], 0; jne
    let code = [0x83, 0x07, 0x01, 0x83, 0x3f, 0x00, 0x75, 0xf8];
    assert_eq!(look(&code, &[0, 3, 6]), None);
}

#[test]
fn a_loop_without_an_end_or_a_load_is_what_a_compiler_makes_of_a_variable_that_is_not_volatile() {
    assert_eq!(look(&[0xeb, 0xfe], &[0, 0]), Some(Endless::Empty { at: CODE }));
    // mov [rdi], rax; jmp: does something
    assert_eq!(look(&[0x48, 0x89, 0x07, 0xeb, 0xfb], &[0, 3]), None);
}

#[test]
fn registers_that_differ_between_samples_say_no_address() {
    // cmp dword [rdi], 0; je
    let code = [0x83, 0x3f, 0x00, 0x74, 0xfb];
    assert_eq!(look(&code, &[0, 3]), waits(4, 0));
    let (mut one, mut other) = (Registers { at: CODE, general: [0; 16] }, Registers { at: CODE, general: [0; 16] });
    (one.general[RDI], other.general[RDI]) = (SHARED, SHARED + 8);
    (one.general[RAX], other.general[RAX]) = (1, 2);
    assert_eq!(endless(&[one, other], &Process(code.to_vec())), None);
}
