//! Who touched a byte, and where in the program: one word of the shared table.

/// One access, as it stands in the table.
///
/// ```text
///   63           53  52  51       46  45                        0
///  | processor + 1 | lib | first byte |  address of instruction  |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The processor, counted over the whole job.
    pub processor: u32,
    /// The instruction's address as the linker has it; if [`Record::in_library`], that behind the program's call.
    pub instruction: u64,
    /// The instruction is a library's.
    pub in_library: bool,
    /// How many bytes of the access come before this one.
    pub before: u8,
}

const INSTRUCTION_BITS: u32 = 46;
const BEFORE_BITS: u32 = 6;
const LIBRARY_BIT: u32 = INSTRUCTION_BITS + BEFORE_BITS;
const PROCESSOR_BIT: u32 = LIBRARY_BIT + 1;

/// A byte that the process has stored itself: what it reads there is its own.
pub const OWN: u64 = u64::MAX;

/// What one look into the table gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Nothing happened that matters.
    Empty,
    /// The process stores here itself.
    Own,
    /// Somebody's access.
    By(Record),
}

impl Record {
    /// As a word, never 0 and never [`OWN`].
    #[must_use]
    pub const fn encode(self) -> u64 {
        (self.processor as u64 + 1) << PROCESSOR_BIT
            | (self.in_library as u64) << LIBRARY_BIT
            | (self.before as u64 & ((1 << BEFORE_BITS) - 1)) << INSTRUCTION_BITS
            | self.instruction & ((1 << INSTRUCTION_BITS) - 1)
    }

    /// Says this more than what is known? Functions of the C library read whole registers, past the end of what they were given.
    #[must_use]
    pub fn is_better_than(self, known: Entry) -> bool {
        match known {
            Entry::Empty => true,
            Entry::Own => false,
            Entry::By(known) => self.certainty() > known.certainty(),
        }
    }

    const fn certainty(self) -> u8 {
        match (self.in_library, self.before) {
            (false, _) => 2,
            (true, 0) => 1,
            (true, _) => 0,
        }
    }

    /// With the byte at this place of the access.
    #[must_use]
    pub const fn at(self, before: usize) -> Self {
        let most = (1 << BEFORE_BITS) - 1;
        Self { before: if before < most { before as u8 } else { most as u8 }, ..self }
    }
}

impl Entry {
    /// What a word says.
    #[must_use]
    pub const fn decode(word: u64) -> Self {
        match word {
            0 => Self::Empty,
            OWN => Self::Own,
            word => Self::By(Record {
                processor: (word >> PROCESSOR_BIT) as u32 - 1,
                instruction: word & ((1 << INSTRUCTION_BITS) - 1),
                in_library: word >> LIBRARY_BIT & 1 == 1,
                before: (word >> INSTRUCTION_BITS & ((1 << BEFORE_BITS) - 1)) as u8,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_its_word() {
        let least = Record { processor: 0, instruction: 0, in_library: false, before: 0 };
        let most = Record { processor: 1023, instruction: (1 << 46) - 1, in_library: true, before: 63 };
        for record in [least, most, Record { in_library: true, ..least }, Record { before: 5, ..least }] {
            assert_eq!(Entry::decode(record.encode()), Entry::By(record));
        }
        assert_eq!([0, OWN].map(Entry::decode), [Entry::Empty, Entry::Own]);
    }

    #[test]
    fn the_place_in_the_access_stays_in_its_bits() {
        let record = Record { processor: 1, instruction: 2, in_library: false, before: 0 };
        assert_eq!(record.at(7).before, 7);
        assert_eq!(Entry::decode(record.at(100).encode()), Entry::By(record.at(63)));
    }
}
