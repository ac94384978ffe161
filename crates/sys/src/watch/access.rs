//! How many bytes an instruction loads or stores.

use iced_x86::{Decoder, DecoderOptions};

/// The longest instruction.
const INSTRUCTION_BYTES: usize = 15;
/// The most that is looked at: a register of AVX-512.
pub const ACCESS_MAX: usize = 64;

/// Fills the decoder's tables, which allocates: before any signal handler needs them.
pub fn prepare() {
    size_in(&[0x8b, 0x03]);
}

/// The bytes that the instruction here touches at its memory operand; 1 if that is not known.
///
/// # Safety
/// `instruction` is the address of an instruction that this process was executing.
pub unsafe fn size_at(instruction: usize) -> usize {
    let to_page_end = crate::PAGE_BYTES - instruction % crate::PAGE_BYTES;
    let start = std::ptr::with_exposed_provenance::<u8>(instruction);
    let bytes = |count: usize| {
        // SAFETY: by contract the instruction's page is mapped and readable, and so is the next if the instruction goes on there.
        unsafe { std::slice::from_raw_parts(start, count) }
    };
    let first = bytes(to_page_end.min(INSTRUCTION_BYTES));
    size_in(first).unwrap_or_else(|| size_in(bytes(INSTRUCTION_BYTES)).unwrap_or(1))
}

/// The same for these bytes; `None` if they end too early, or are no instruction.
fn size_in(bytes: &[u8]) -> Option<usize> {
    let instruction = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
    if instruction.is_invalid() {
        return None;
    }
    Some(instruction.memory_size().size().clamp(1, ACCESS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_operands() {
        let sizes = [
            (&[0x8a, 0x03][..], 1),                      // mov al,[rbx]
            (&[0x66, 0x89, 0x03], 2),                    // mov [rbx],ax
            (&[0x83, 0x05, 0, 0, 0, 0, 1], 4),           // add dword [rip],1
            (&[0x48, 0xa5], 8),                          // movsq
            (&[0xf3, 0xaa], 1),                          // rep stosb
            (&[0x0f, 0x11, 0x03], 16),                   // movups [rbx],xmm0
            (&[0xc5, 0xfe, 0x6f, 0x03], 32),             // vmovdqu ymm0,[rbx]
            (&[0x62, 0xf1, 0xfe, 0x48, 0x6f, 0x03], 64), // vmovdqu64 zmm0,[rbx]
            (&[0xff, 0x13], 8),                          // call [rbx]
            (&[0xf2, 0x0f, 0x58, 0x03], 8),              // addsd xmm0,[rbx]
        ];
        for (bytes, size) in sizes {
            assert_eq!(size_in(bytes), Some(size), "{bytes:x?}");
        }
        assert_eq!(size_in(&[0x83, 0x05, 0]), None, "it is not all there");
    }

    #[test]
    fn a_size_is_found_where_the_code_stands() {
        // SAFETY: the beginning of a function.
        assert!(unsafe { size_at(prepare as *const () as usize) } >= 1);
    }
}
