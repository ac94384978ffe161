//! `finespun explain`: the catalogue of errors, offline.

use finespun_errors::{Code, Place, Report};

use crate::output;

/// Prints one error's explanation, or the list of all.
pub fn explain(number: Option<&str>) -> Result<i32, Report> {
    let Some(number) = number else {
        output::print(&Code::ALL.iter().map(|code| format!("{code}  {}\n", code.why())).collect::<String>());
        return Ok(0);
    };
    let code = number.parse::<Code>().map_err(|_| {
        let what = format!("\"{number}\" is no number of an error; `finespun explain` lists them");
        Report { code: Code::Usage, place: Place::Launcher, what }
    })?;
    let (why, more, fix, exit) = (code.why(), wrapped(code.more(), 80), code.fix(), exit_code(code));
    output::print(&format!("{code}: {why}\n\n{more}\n\nWhat to do: {fix}.\nExit code:  {exit}\n"));
    Ok(0)
}

/// Three errors pass the program's own end on.
fn exit_code(code: Code) -> String {
    let own = code.exit_code().to_string();
    if code == Code::Died {
        return "128 plus the signal".into();
    }
    if code == Code::Left {
        return format!("the process's own, or {own} if that was 0");
    }
    if code == Code::Aborted {
        return "the one given to fsp_abort".into();
    }
    own
}

fn wrapped(text: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a line");
        if !line.is_empty() && line.len() + 1 + word.len() > width {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn text_is_wrapped_at_words() {
        assert_eq!(wrapped("one two three", 7), "one two\nthree");
        assert_eq!(wrapped("muchtoolong x", 5), "muchtoolong\nx");
    }
}
