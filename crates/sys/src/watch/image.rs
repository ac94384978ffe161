//! Where the main program's own variables and code are in this process.

use std::ffi::{c_int, c_void};
use std::ops::Range;

use crate::PAGE_BYTES;

/// The main program as loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// What to take away from an address here to have the linker's.
    pub base: usize,
    /// The pages of `.data` and `.bss`, and of what the linker has put beside them, that stay writable.
    pub variables: Range<usize>,
    /// The code.
    pub code: Range<usize>,
}

impl Image {
    /// Of this process.
    #[must_use]
    pub fn of_this_process() -> Self {
        let mut found = Self::default();
        // SAFETY: `on_image` gets `found`, which outlives the call, and is called by this thread only.
        unsafe { libc::dl_iterate_phdr(Some(on_image), (&raw mut found).cast()) };
        found
    }
}

/// Called for each loaded image; the first is the main program, and the 1 ends the round.
unsafe extern "C" fn on_image(info: *mut libc::dl_phdr_info, _size: usize, data: *mut c_void) -> c_int {
    // SAFETY: the dynamic linker passes a filled entry, and the pointer that `of_this_process` gave it.
    let (info, found) = unsafe { (&*info, &mut *data.cast::<Image>()) };
    // SAFETY: the entry says how many headers there are; they are mapped as long as the program.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    found.base = info.dlpi_addr as usize;
    let mut read_only = 0;
    for header in headers {
        let start = (info.dlpi_addr + header.p_vaddr) as usize;
        let end = start + header.p_memsz as usize;
        match (header.p_type, header.p_flags & (libc::PF_W | libc::PF_X)) {
            (libc::PT_LOAD, libc::PF_X) => found.code = start..end,
            (libc::PT_LOAD, libc::PF_W) => found.variables = start..end.next_multiple_of(PAGE_BYTES),
            // The loader makes the whole pages of it read-only once it has filled them in.
            (libc::PT_GNU_RELRO, _) => read_only = end / PAGE_BYTES * PAGE_BYTES,
            _ => {}
        }
    }
    let start = found.variables.start.max(read_only) / PAGE_BYTES * PAGE_BYTES;
    found.variables.start = start.min(found.variables.end);
    1
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    static VARIABLE: AtomicU32 = AtomicU32::new(7);

    #[test]
    fn a_variable_and_a_function_are_where_the_image_says() {
        let image = Image::of_this_process();
        assert!(image.variables.contains(&(&raw const VARIABLE).addr()));
        assert!(image.code.contains(&(on_image as *const () as usize)));
        assert!(image.variables.start.is_multiple_of(PAGE_BYTES) && image.variables.end.is_multiple_of(PAGE_BYTES));
        assert!(image.base <= image.code.start);
    }
}
