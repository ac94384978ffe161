//! Is a loop of a program one that nothing but another's store can end? Read from its instructions, and from the registers of a thread that
//! was seen in it several times.
//!
//! ```text
//!   L: mov eax, [rip+ready]    the loop is what lies between a jump back and its target, with every sample inside
//!      test eax, eax           each way out of it hangs on flags
//!      je L                    and these on words that the loop neither moves away from nor writes itself
//! ```
//!
//! A way out that hangs on anything the loop changes (a counter, a pointer that walks) makes it a computation, which ends. Nothing
//! is guessed: what this does not understand (an indirect jump, a call's result) is no such loop.

#![expect(clippy::wildcard_enum_match_arm, reason = "of two thousand instructions a dozen are understood here")]

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register,
};

use crate::sys::trace::Registers;

/// Bytes before and behind the samples in which the loop must lie.
const AROUND: u64 = 256;
/// How many steps back a value is followed.
const DEPTH: u32 = 8;
/// The same for the address of what a loop writes: each step asks about all that the loop writes.
const DEPTH_OF_WRITES: u32 = 2;

/// What the process has in its memory.
pub trait Memory {
    /// Fills `bytes` from this address: true if it could.
    fn read(&self, address: u64, bytes: &mut [u8]) -> bool;
    /// Is it shared memory?
    fn is_shared(&self, address: u64) -> bool;
}

/// A load of shared memory that a loop's end hangs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The word.
    pub address: u64,
    /// Its bytes.
    pub size: usize,
    /// The instruction.
    pub at: u64,
}

/// A loop that does not end by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endless {
    /// It ends when one of these words changes.
    Waits(Vec<Load>),
    /// It has neither an end nor a load.
    Empty {
        /// Its first instruction.
        at: u64,
    },
}

/// What a register or word holds, as far as it is known, and the loads of shared memory that it comes from.
#[derive(Default)]
struct Value {
    number: Option<u64>,
    loads: Vec<Load>,
}

struct Loop<'a, M> {
    body: Vec<Instruction>,
    samples: &'a [Registers],
    memory: &'a M,
}

/// The loop that all these samples are in, if it is endless.
pub fn endless<M: Memory>(samples: &[Registers], memory: &M) -> Option<Endless> {
    let lowest = samples.iter().map(|sample| sample.at).min()?;
    let highest = samples.iter().map(|sample| sample.at).max()?;
    let after = decode(memory, lowest, highest + AROUND);
    let back = after.iter().find(|step| step.ip() >= highest && jump_of(step).is_some_and(|to| to <= lowest))?;
    let start = jump_of(back).filter(|start| lowest - start <= AROUND)?;
    let body = decode(memory, start, back.next_ip());
    let is_known = |sample: &Registers| body.iter().any(|step| step.ip() == sample.at);
    if body.last()?.ip() != back.ip() || !samples.iter().all(is_known) {
        return None;
    }
    Loop { body, samples, memory }.endless()
}

/// The instructions from one address up to another, or to the first that cannot be read.
fn decode<M: Memory>(memory: &M, from: u64, to: u64) -> Vec<Instruction> {
    let mut bytes = vec![0; usize::try_from(to - from).unwrap_or(0)];
    while !memory.read(from, &mut bytes) {
        if bytes.len() < 16 {
            return Vec::new();
        }
        bytes.truncate(bytes.len() / 2); // the end of a mapping
    }
    let mut decoder = Decoder::with_ip(64, &bytes, from, DecoderOptions::NONE);
    decoder.iter().take_while(|step| step.code() != Code::INVALID).collect()
}

/// Where a direct jump leads, if the instruction is one.
fn jump_of(step: &Instruction) -> Option<u64> {
    match step.flow_control() {
        FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => Some(step.near_branch_target()),
        FlowControl::Next
        | FlowControl::IndirectBranch
        | FlowControl::Return
        | FlowControl::Call
        | FlowControl::IndirectCall
        | FlowControl::Interrupt
        | FlowControl::XbeginXabortXend
        | FlowControl::Exception => None,
    }
}

impl<M: Memory> Loop<'_, M> {
    fn endless(&self) -> Option<Endless> {
        let (first, last) = (self.body.first()?.ip(), self.body.last()?.ip());
        let leaves = |to: u64| !(first..=last).contains(&to);
        let (mut branches, mut must_all_hold, mut calls) = (Vec::new(), false, false);
        for (index, step) in self.body.iter().enumerate() {
            match step.flow_control() {
                FlowControl::Next => {}
                FlowControl::Call | FlowControl::IndirectCall => calls = true,
                FlowControl::ConditionalBranch => {
                    branches.push((index, leaves(step.near_branch_target()) || step.ip() == last));
                }
                FlowControl::UnconditionalBranch => must_all_hold |= leaves(step.near_branch_target()),
                FlowControl::Return => must_all_hold = true,
                FlowControl::IndirectBranch
                | FlowControl::Interrupt
                | FlowControl::XbeginXabortXend
                | FlowControl::Exception => return None,
            }
        }
        let mut loads: Vec<Load> = Vec::new();
        for &(index, _) in branches.iter().filter(|(_, leaves)| *leaves || must_all_hold) {
            for load in self.flags_before(index, DEPTH)? {
                if !loads.contains(&load) {
                    loads.push(load);
                }
            }
        }
        if !loads.is_empty() {
            return self.leaves_alone(&loads, DEPTH_OF_WRITES).then_some(Endless::Waits(loads));
        }
        let touches = |step: &Instruction| (0..step.op_count()).any(|number| step.op_kind(number) == OpKind::Memory);
        let is_empty = branches.is_empty() && !must_all_hold && !calls && !self.body.iter().any(touches);
        is_empty.then_some(Endless::Empty { at: first })
    }

    /// The indices before `index`, the nearest first, around the loop to `index` itself.
    fn backwards(&self, index: usize) -> impl Iterator<Item = usize> + use<'_, M> {
        (0..index).rev().chain((index..self.body.len()).rev())
    }

    /// The loads that the flags hang on with which the branch at `index` is taken; `None` if they hang on more than that.
    fn flags_before(&self, index: usize, depth: u32) -> Option<Vec<Load>> {
        let setter = self.backwards(index).find(|&before| self.body[before].rflags_modified() != 0)?;
        let step = &self.body[setter];
        match step.mnemonic() {
            Mnemonic::Cmp
            | Mnemonic::Test
            | Mnemonic::And
            | Mnemonic::Or
            | Mnemonic::Xor
            | Mnemonic::Sub
            | Mnemonic::Bt => self.operands(setter, depth),
            // What was there tells, whether it was exchanged or not.
            Mnemonic::Cmpxchg => Some(self.operand(setter, 0, depth)?.loads),
            _ => None,
        }
    }

    fn operands(&self, index: usize, depth: u32) -> Option<Vec<Load>> {
        let mut loads = Vec::new();
        for number in 0..self.body[index].op_count() {
            loads.append(&mut self.operand(index, number, depth)?.loads);
        }
        Some(loads)
    }

    fn operand(&self, index: usize, number: u32, depth: u32) -> Option<Value> {
        let step = &self.body[index];
        match step.op_kind(number) {
            OpKind::Register => self.register(step.op_register(number), index, depth),
            OpKind::Memory => self.word(index, depth),
            OpKind::Immediate8
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64 => Some(Value { number: Some(step.immediate(number)), loads: Vec::new() }),
            _ => None,
        }
    }

    /// What a register holds when the instruction at `index` begins.
    fn register(&self, register: Register, index: usize, depth: u32) -> Option<Value> {
        let full = register.full_register();
        if !full.is_gpr64() {
            return None;
        }
        let Some(writer) = self.backwards(index).find(|&before| self.writes(before, full)) else {
            // The loop leaves it alone.
            let mut held = self.samples.iter().map(|sample| sample.general[full.number()]);
            let number = held.next()?;
            return held.all(|other| other == number).then_some(Value { number: Some(number), loads: Vec::new() });
        };
        let depth = depth.checked_sub(1)?;
        let step = &self.body[writer];
        match step.mnemonic() {
            Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd => self.operand(writer, 1, depth),
            Mnemonic::Lea => Some(Value { number: Some(self.address(writer, depth)?), loads: Vec::new() }),
            // The same register twice: zero.
            Mnemonic::Xor if step.op0_kind() == OpKind::Register && step.op0_register() == step.op1_register() => {
                Some(Value { number: Some(0), loads: Vec::new() })
            }
            Mnemonic::And
            | Mnemonic::Or
            | Mnemonic::Xor
            | Mnemonic::Add
            | Mnemonic::Sub
            | Mnemonic::Shl
            | Mnemonic::Shr => Some(Value { number: None, loads: self.operands(writer, depth)? }),
            // What was in memory, if it is memory that is exchanged with.
            Mnemonic::Xchg | Mnemonic::Xadd if step.op0_kind() == OpKind::Memory => {
                Some(Value { number: None, ..self.word(writer, depth)? })
            }
            Mnemonic::Cmpxchg if step.op0_kind() == OpKind::Memory => {
                Some(Value { number: None, ..self.word(writer, depth)? })
            }
            Mnemonic::Sete | Mnemonic::Setne | Mnemonic::Setl | Mnemonic::Setle | Mnemonic::Setg | Mnemonic::Setge => {
                Some(Value { number: None, loads: self.flags_before(writer, depth)? })
            }
            _ => None,
        }
    }

    /// What a call changes it may have changed to anything.
    fn writes(&self, index: usize, full: Register) -> bool {
        let step = &self.body[index];
        let is_call = matches!(step.flow_control(), FlowControl::Call | FlowControl::IndirectCall);
        let is_kept =
            [Register::RBX, Register::RSP, Register::RBP, Register::R12, Register::R13, Register::R14, Register::R15];
        if is_call || step.mnemonic() == Mnemonic::Syscall {
            return !is_kept.contains(&full);
        }
        let mut infos = InstructionInfoFactory::new();
        infos.info(step).used_registers().iter().any(|used| {
            let writes = match used.access() {
                OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite => true,
                OpAccess::None | OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess => false,
            };
            writes && used.register().full_register() == full
        })
    }

    /// The address of the memory that an instruction uses.
    fn address(&self, index: usize, depth: u32) -> Option<u64> {
        let step = &self.body[index];
        // Memory of a thread is nobody else's.
        if step.segment_prefix() != Register::None {
            return None;
        }
        if step.is_ip_rel_memory_operand() {
            return Some(step.ip_rel_memory_address());
        }
        let part = |register: Register| match register {
            Register::None => Some(0),
            register => self.register(register, index, depth)?.number,
        };
        let scaled = part(step.memory_index())?.wrapping_mul(u64::from(step.memory_index_scale()));
        Some(part(step.memory_base())?.wrapping_add(scaled).wrapping_add(step.memory_displacement64()))
    }

    /// The word that an instruction reads.
    fn word(&self, index: usize, depth: u32) -> Option<Value> {
        let step = &self.body[index];
        let depth = depth.checked_sub(1)?;
        let load = Load { address: self.address(index, depth)?, size: step.memory_size().size(), at: step.ip() };
        // Memory that the loop leaves alone is as good as a register, also where it holds what another address is made of.
        let mut bytes = [0; 8];
        let is_read = (1..=8).contains(&load.size) && self.memory.read(load.address, &mut bytes[..load.size]);
        let alone = is_read && self.leaves_alone(&[load], depth.min(DEPTH_OF_WRITES));
        let number = alone.then(|| u64::from_le_bytes(bytes));
        if self.memory.is_shared(load.address) {
            return Some(Value { number, loads: vec![load] });
        }
        if alone {
            return Some(Value { number, loads: Vec::new() });
        }
        // A variable that the loop itself sets, on the stack for want of a register.
        let setter = self.backwards(index).find(|&before| self.stores_to(before, &load, depth.min(DEPTH_OF_WRITES)))?;
        let step = &self.body[setter];
        let is_whole = step.mnemonic() == Mnemonic::Mov && step.memory_size().size() == load.size;
        if is_whole { self.operand(setter, 1, depth) } else { None }
    }

    /// Does the loop write none of these words, as far as its addresses are known? To exchange one is to look at it.
    fn leaves_alone(&self, words: &[Load], depth: u32) -> bool {
        (0..self.body.len()).all(|index| words.iter().all(|word| !self.stores_to(index, word, depth)))
    }

    /// Does this instruction store to some of the word, by an address that is known?
    fn stores_to(&self, index: usize, word: &Load, depth: u32) -> bool {
        let step = &self.body[index];
        let has_operand = (0..step.op_count()).any(|number| step.op_kind(number) == OpKind::Memory);
        let exchanges = matches!(step.mnemonic(), Mnemonic::Xchg | Mnemonic::Cmpxchg);
        if !has_operand || exchanges {
            return false;
        }
        let mut infos = InstructionInfoFactory::new();
        let writes = infos.info(step).used_memory().iter().any(|used| match used.access() {
            OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite => true,
            OpAccess::None | OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess => false,
        });
        let Some(address) = writes.then(|| self.address(index, depth)).flatten() else { return false };
        let end = address + step.memory_size().size() as u64;
        end > word.address && address < word.address + word.size as u64
    }
}

#[cfg(test)]
#[path = "code_tests.rs"]
mod tests;
