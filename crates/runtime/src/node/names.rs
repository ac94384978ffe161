//! What processors and threads are called in messages.
//!
//! The numbers of the job's processors are followed by numbers for other threads that call the library, [`GUESTS`] for each node: seats of
//! a program that makes as many threads as it likes, and threads that the runtime has not made. Such a number means nothing to a user.

use std::sync::atomic::{AtomicU32, Ordering};

use finespun_errors::Place;

use crate::sys::shape::{GUESTS, SEATS};

/// The job's processors; none until the process has joined.
static PROCESSORS: AtomicU32 = AtomicU32::new(u32::MAX);

/// So many processors the job has.
pub fn count(processors: usize) {
    PROCESSORS.store(processors as u32, Ordering::Relaxed);
}

/// A thread that is no processor: its node, and what it is called there.
pub fn guest(number: u32, processors: u32) -> Option<(u32, String)> {
    let number = number.checked_sub(processors)?;
    let (node, index) = (number / GUESTS as u32, number % GUESTS as u32);
    Some((node, of_guest(index)))
}

/// What a guest of a node is called, by its number there.
pub fn of_guest(index: u32) -> String {
    match index.checked_sub(SEATS as u32) {
        None => format!("thread {index} beside the processors"),
        Some(own) => format!("thread {own} of the program's own"),
    }
}

/// Where a processor, or another thread, of a node stands.
pub fn place(node: u32, number: u32) -> Place {
    match guest(number, PROCESSORS.load(Ordering::Relaxed)) {
        None => Place::Processor { node, processor: number },
        Some((_, name)) => Place::Thread { node, name },
    }
}

/// A text in which a number after `processor` that is no processor's is a name.
pub fn named(text: &str) -> String {
    named_beside(text, PROCESSORS.load(Ordering::Relaxed))
}

fn named_beside(text: &str, processors: u32) -> String {
    let mut parts = text.split("processor ");
    let mut named = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        match part[..digits].parse().ok().and_then(|number| guest(number, processors)) {
            Some((node, name)) => named += &format!("{name} (node {node}){}", &part[digits..]),
            None => named = named + "processor " + part,
        }
    }
    named
}

#[cfg(test)]
mod tests {
    use super::{GUESTS, SEATS, guest, named_beside};

    #[test]
    fn only_threads_that_are_no_processors_have_names() {
        assert_eq!(guest(1, 2), None);
        assert_eq!(guest(2 + 5, 2), Some((0, "thread 5 beside the processors".into())));
        let own = 2 + GUESTS + SEATS;
        assert_eq!(guest(own as u32, 2), Some((1, "thread 0 of the program's own".into())));
    }

    #[test]
    fn a_text_names_them_where_it_has_their_numbers() {
        let text = format!("unlock, which processor {} holds, and processor 1; a processor of 2", 2 + GUESTS + SEATS);
        let expected = "unlock, which thread 0 of the program's own (node 1) holds, and processor 1; a processor of 2";
        assert_eq!(named_beside(&text, 2), expected);
        assert_eq!(
            named_beside("there is no processor 9: the job has 2", u32::MAX),
            "there is no processor 9: the job has 2"
        );
    }
}
