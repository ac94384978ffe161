//! Names for addresses: a process tells addresses, and the launcher says what the program calls them.

use std::path::Path;

use finespun_symbols::Symbols;

/// The message with the name of a variable, or the function and line that calls, behind each address in its first line that is one's.
/// `image` is where the program is loaded.
#[must_use]
pub fn named(message: &str, program: &Path, image: u64) -> String {
    let first = message.split('\n').next().unwrap_or_default();
    if !first.contains("0x") {
        return message.to_owned();
    }
    // Names are a courtesy.
    let Ok(symbols) = Symbols::read(program) else { return message.to_owned() };
    let moved = if symbols.is_position_independent() { image } else { 0 };
    let name = |address: u64| {
        let address = address.checked_sub(moved)?;
        let Some(variable) = symbols.variable(address) else {
            // Where a call returns to: the call is what stands before it.
            let call = symbols.instruction(address.checked_sub(1)?);
            return call.function.is_some().then(|| call.to_string());
        };
        (!variable.is_of_library).then(|| variable.to_string())
    };
    format!("{}{}", with_names(first, name), &message[first.len()..])
}

/// A line with a name in parentheses behind each hexadecimal number that has one.
fn with_names(line: &str, name: impl Fn(u64) -> Option<String>) -> String {
    let mut parts = line.split("0x");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_hexdigit()).len();
        let (number, rest) = part.split_at(digits);
        let found = u64::from_str_radix(number, 16).ok().and_then(&name);
        text += &format!("0x{number}");
        text += &found.map_or_else(String::new, |name| format!(", {name}"));
        // A sentence that goes on closes the insertion.
        if text.ends_with([')', '`']) && rest.starts_with(' ') {
            text.push(',');
        }
        text += rest;
    }
    text
}

/// The variable at an address, or the address.
#[must_use]
pub fn of(address: u64, program: &Path, image: u64) -> String {
    let symbols = Symbols::read(program).ok();
    let variable = symbols.and_then(|symbols| {
        let moved = if symbols.is_position_independent() { image } else { 0 };
        symbols.variable(address.checked_sub(moved)?)
    });
    variable.map_or_else(|| format!("the variable at {address:#x}"), |variable| variable.to_string())
}

#[cfg(test)]
mod tests {
    use super::{named, with_names};

    #[test]
    fn a_name_stands_behind_the_address_it_belongs_to() {
        let name = |address| (address == 0x4050).then(|| "`lock` (a.c:3)".to_owned());
        assert_eq!(
            with_names("the mutex at 0x4050 is private", name),
            "the mutex at 0x4050, `lock` (a.c:3), is private"
        );
        assert_eq!(with_names("called for 0x4050, which", name), "called for 0x4050, `lock` (a.c:3), which");
        assert_eq!(with_names("0x7 and 0x4050", name), "0x7 and 0x4050, `lock` (a.c:3)");
        assert_eq!(with_names("nothing", name), "nothing");
    }

    #[test]
    fn without_a_program_a_message_stays_as_it_is() {
        let message = "finespun: error E011: the mutex at 0x4050\n  why: 0x1";
        assert_eq!(named(message, std::path::Path::new("/no/such/program"), 0), message);
    }
}
