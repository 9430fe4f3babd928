//! What Windows wants in place of an argument list and an environment: one string each. Pure, so
//! that a Linux machine can render and test both.
//!
//! Invariant: a program that splits its command line by Microsoft's rules sees exactly the arguments
//! that were given. What cannot be passed without a chance of another meaning is refused.

use std::collections::BTreeMap;

/// Why arguments or variables have no safe form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandLineError {
    #[error("argument {index} contains a NUL")]
    Nul { index: usize },
    #[error("argument {index} contains `{character}`, which a batch file may take for a command")]
    BatchArgument { index: usize, character: char },
    #[error("variable `{name}` has an empty name, or a NUL or `=` in it")]
    BadVariable { name: String },
    #[error("variables `{first}` and `{second}` are one variable to Windows")]
    SameVariable { first: String, second: String },
}

/// Whether `program` is run by the command interpreter, which has rules of its own.
pub fn is_batch_file(program: &str) -> bool {
    let lower = program.to_ascii_lowercase();
    // Windows ignores spaces and dots at the end of a name.
    let name = lower.trim_end_matches(['.', ' ']);
    name.rsplit_once('.')
        .is_some_and(|(_, extension)| matches!(extension, "bat" | "cmd"))
}

/// The command line of an ordinary program: its name, then each argument.
pub fn render(program: &str, args: &[String]) -> Result<String, CommandLineError> {
    // A path cannot contain a quotation mark, so quoting it is always right.
    let mut line = format!("\"{program}\"");
    for (index, argument) in args.iter().enumerate() {
        if argument.contains('\0') {
            return Err(CommandLineError::Nul { index: index + 1 });
        }
        line.push(' ');
        push_quoted(&mut line, argument);
    }
    Ok(line)
}

/// Backslashes are literal unless a quotation mark follows them: then each needs a second one.
fn push_quoted(line: &mut String, argument: &str) {
    let plain = !argument.is_empty() && !argument.contains([' ', '\t', '\n', '\x0b', '"']);
    if plain {
        line.push_str(argument);
        return;
    }
    line.push('"');
    let mut backslashes = 0;
    for character in argument.chars() {
        match character {
            '\\' => backslashes += 1,
            '"' => {
                line.extend(std::iter::repeat_n('\\', backslashes + 1));
                backslashes = 0;
            }
            _ => backslashes = 0,
        }
        line.push(character);
    }
    line.extend(std::iter::repeat_n('\\', backslashes));
    line.push('"');
}

/// The command line that makes `interpreter` (cmd.exe) run a batch file. Inside quotation marks the
/// interpreter still acts on `%`, and on `!` at times, so these are refused, as is the mark itself.
pub fn render_batch(
    interpreter: &str,
    program: &str,
    args: &[String],
) -> Result<String, CommandLineError> {
    let mut line = format!("\"{interpreter}\" /e:ON /v:OFF /d /c \"\"{program}\"");
    for (index, argument) in [program]
        .into_iter()
        .chain(args.iter().map(String::as_str))
        .enumerate()
    {
        if let Some(character) = argument.chars().find(|c| "\"%!\r\n\0".contains(*c)) {
            return Err(CommandLineError::BatchArgument { index, character });
        }
    }
    for argument in args {
        // A trailing backslash would swallow the mark that follows it in a program the file calls.
        let backslashes = argument.len() - argument.trim_end_matches('\\').len();
        line.extend([" \"", argument, &"\\".repeat(backslashes), "\""]);
    }
    line.push('"');
    Ok(line)
}

/// The environment block: `name=value` and a NUL each, sorted as Windows sorts, and a NUL at the end.
pub fn environment_block(
    variables: &BTreeMap<String, String>,
) -> Result<Vec<u16>, CommandLineError> {
    let mut sorted: BTreeMap<String, (&str, &str)> = BTreeMap::new();
    for (name, value) in variables {
        // Names such as `=C:` are real, so the first character may be anything.
        let tail = name.chars().skip(1).any(|c| c == '=');
        if name.is_empty() || tail || name.contains('\0') || value.contains('\0') {
            return Err(CommandLineError::BadVariable { name: name.clone() });
        }
        if let Some((first, _)) = sorted.insert(name.to_uppercase(), (name, value)) {
            return Err(CommandLineError::SameVariable {
                first: first.to_owned(),
                second: name.clone(),
            });
        }
    }
    let mut block: Vec<u16> = Vec::new();
    for (name, value) in sorted.values() {
        block.extend(format!("{name}={value}").encode_utf16());
        block.push(0);
    }
    if block.is_empty() {
        block.push(0);
    }
    block.push(0);
    Ok(block)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn strings(args: &[&str]) -> Vec<String> {
        args.iter().map(ToString::to_string).collect()
    }

    /// Splits as Microsoft's C runtime does, written from its documented rules.
    fn split(line: &str) -> Vec<String> {
        let mut characters = line.chars().peekable();
        // The program's own name knows no escapes.
        assert_eq!(characters.next(), Some('"'));
        characters.by_ref().take_while(|c| *c != '"').for_each(drop);
        let mut arguments = Vec::new();
        loop {
            while characters.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
            if characters.peek().is_none() {
                return arguments;
            }
            let (mut argument, mut quoted) = (String::new(), false);
            loop {
                let mut backslashes = 0;
                while characters.next_if_eq(&'\\').is_some() {
                    backslashes += 1;
                }
                if characters.peek() == Some(&'"') {
                    argument.push_str(&"\\".repeat(backslashes / 2));
                    characters.next();
                    if backslashes % 2 == 1 {
                        argument.push('"');
                    } else {
                        quoted = !quoted;
                    }
                    continue;
                }
                argument.push_str(&"\\".repeat(backslashes));
                match characters.peek() {
                    None => break,
                    Some(' ' | '\t') if !quoted => break,
                    Some(_) => argument.extend(characters.next()),
                }
            }
            arguments.push(argument);
        }
    }

    proptest! {
        #[test]
        fn a_program_sees_the_arguments_that_were_given(
            args in proptest::collection::vec(r#"[a \\"\tü%]{0,8}"#, 0..5)
        ) {
            let line = render(r"C:\a b\c.exe", &args).unwrap();
            prop_assert_eq!(split(&line), args);
        }
    }

    #[test]
    fn awkward_arguments_have_the_documented_form() {
        let args = strings(&["", "a b", r"c:\dir\", r"c:\a dir\", r#"say "hi""#, r#"\""#]);
        assert_eq!(
            render("x.exe", &args).unwrap(),
            r#""x.exe" "" "a b" c:\dir\ "c:\a dir\\" "say \"hi\"" "\\\"""#
        );
    }

    #[test]
    fn a_batch_file_is_known_by_its_name_whatever_the_case() {
        assert!(is_batch_file(r"C:\x\Run.CMD"));
        assert!(is_batch_file("run.bat. "));
        assert!(!is_batch_file("run.bat.exe"));
        assert!(!is_batch_file("cmd"));
    }

    #[test]
    fn a_batch_file_gets_no_argument_that_could_be_a_command() {
        for bad in ["a\"b", "%PATH%", "!x!", "a\nb", "a\rb", "a\0b"] {
            let result = render_batch("cmd.exe", "x.cmd", &strings(&["fine", bad]));
            assert!(
                matches!(
                    result,
                    Err(CommandLineError::BatchArgument { index: 2, .. })
                ),
                "{bad:?} gave {result:?}"
            );
        }
        assert_eq!(
            render_batch("cmd.exe", "x.cmd", &strings(&["a & b", r"c\"])).unwrap(),
            r#""cmd.exe" /e:ON /v:OFF /d /c ""x.cmd" "a & b" "c\\"""#
        );
    }

    #[test]
    fn the_environment_is_sorted_without_regard_to_case_and_ends_twice() {
        let variables = BTreeMap::from([
            ("b".to_owned(), "2".to_owned()),
            ("A".to_owned(), "1".to_owned()),
            ("C".to_owned(), "ü".to_owned()),
        ]);
        let block = environment_block(&variables).unwrap();
        assert_eq!(String::from_utf16(&block).unwrap(), "A=1\0b=2\0C=ü\0\0");
        assert_eq!(environment_block(&BTreeMap::new()).unwrap(), [0, 0]);
    }

    #[test]
    fn variables_that_windows_cannot_hold_are_refused() {
        let one = |name: &str| BTreeMap::from([(name.to_owned(), "x".to_owned())]);
        for bad in ["", "a=b", "a\0"] {
            assert!(environment_block(&one(bad)).is_err(), "{bad:?}");
        }
        assert!(environment_block(&one("=C:")).is_ok());
        let mut twice = one("Path");
        twice.insert("PATH".to_owned(), "y".to_owned());
        assert!(matches!(
            environment_block(&twice),
            Err(CommandLineError::SameVariable { .. })
        ));
    }
}
