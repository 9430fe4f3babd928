//! Command lines of `Exec…=`: parsed into words that still hold their variables; `expand` fills
//! these in later, as a pure function. How backslashes are read is described in `words`.

use std::collections::BTreeSet;

use transom_model::os::Os;

use super::paths::is_absolute;
use super::values::ValueError;
use super::words::{self, Word};

/// One command of an `Exec…=` line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecCommand {
    /// An absolute path, or a bare file name that the executor looks up in `PATH`.
    pub program: String,
    /// The words after the program, with variables not yet filled in.
    pub args: Vec<String>,
    /// `@`: what the program sees as its own name.
    pub argv0: Option<String>,
    /// `-`: a failure counts as success.
    pub ignore_failure: bool,
    /// `:`: `$` has no meaning in the arguments.
    pub no_environment_expansion: bool,
    /// `+`, `!` or `!!`: `User=` and `Group=` do not apply to this command.
    pub full_privileges: bool,
}

/// What a line held.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParsedCommands {
    pub commands: Vec<ExecCommand>,
    /// Remarks that do not keep the commands from running.
    pub remarks: Vec<String>,
}

impl ExecCommand {
    /// Parses one value of `Exec…=`, which may hold several commands separated by `;`.
    /// `specifiers` expands one word.
    pub fn parse_line(
        text: &str,
        os: Os,
        specifiers: impl Fn(&str) -> Result<String, ValueError>,
    ) -> Result<ParsedCommands, ValueError> {
        let split = words::split(text, os).map_err(|error| ValueError::new(error.to_string()))?;
        let mut parsed = ParsedCommands::default();
        for escape in split.unknown_escapes {
            parsed
                .remarks
                .push(format!("`{escape}` is not an escape and is kept as it is"));
        }
        for group in split.words.split(|word| word.is_separator) {
            // A separator at either end separates nothing.
            if !group.is_empty() {
                let command = Self::from_words(group, os, &specifiers)?;
                parsed.remarks.extend(command.suspicion(os));
                parsed.commands.push(command);
            }
        }
        if parsed.commands.is_empty() {
            return Err(ValueError::new("there is no command"));
        }
        Ok(parsed)
    }

    fn from_words(
        group: &[Word],
        os: Os,
        specifiers: &impl Fn(&str) -> Result<String, ValueError>,
    ) -> Result<Self, ValueError> {
        let mut command = Self::default();
        let mut rest = group.iter();
        let first = rest.next().map_or("", |word| word.text.as_str());
        let (program, names_itself) = command.take_prefixes(first)?;
        command.program = specifiers(program)?;
        check_program(&command.program, os)?;
        if names_itself {
            let Some(word) = rest.next() else {
                return Err(ValueError::new(
                    "`@` needs a second word: the name that the program sees",
                ));
            };
            command.argv0 = Some(specifiers(&word.text)?);
        }
        for word in rest {
            command.args.push(specifiers(&word.text)?);
        }
        // No system can hand one on to a program.
        if command
            .argv0
            .iter()
            .chain(&command.args)
            .any(|word| word.contains('\0'))
        {
            return Err(ValueError::new("an argument contains a NUL character"));
        }
        Ok(command)
    }

    /// Takes the marks in front of the program, each at most once, as systemd does.
    fn take_prefixes<'a>(&mut self, first: &'a str) -> Result<(&'a str, bool), ValueError> {
        let mut rest = first;
        let mut names_itself = false;
        loop {
            if rest.starts_with('-') && !self.ignore_failure {
                self.ignore_failure = true;
            } else if rest.starts_with('@') && !names_itself {
                names_itself = true;
            } else if rest.starts_with(':') && !self.no_environment_expansion {
                self.no_environment_expansion = true;
            } else if rest.starts_with(['+', '!']) && !self.full_privileges {
                self.full_privileges = true;
                // `!!` is one mark.
                if rest.starts_with("!!") {
                    rest = &rest[1..];
                }
            } else if rest.starts_with('|') {
                return Err(ValueError::with_hint(
                    "`|` is not supported: a shell is not guessed",
                    "write the shell and its arguments, such as /bin/sh -c \"…\"",
                ));
            } else {
                return Ok((rest, names_itself));
            }
            rest = &rest[1..];
        }
    }

    /// A path with a space that somebody forgot to quote splits into a program that cannot exist.
    fn suspicion(&self, os: Os) -> Option<String> {
        let has_program_suffix = |word: &str| {
            let word = word.to_ascii_lowercase();
            [".exe", ".cmd", ".bat", ".com"]
                .iter()
                .any(|suffix| word.ends_with(suffix))
        };
        let looks_cut = os == Os::Windows
            && self.argv0.is_none()
            && is_absolute(&self.program, os)
            && !has_program_suffix(&self.program)
            && self
                .args
                .iter()
                .any(|word| word.contains('\\') && has_program_suffix(word));
        looks_cut.then(|| {
            format!(
                "the program is `{}`: put a path that contains spaces in quotes",
                self.program
            )
        })
    }

    /// The arguments with variables filled in from `lookup`: `$NAME` alone becomes any number of
    /// words, `${NAME}` is replaced within its word, `$$` is a dollar sign. Variables that are not
    /// set count as empty. The program and `argv0` are not part of the answer.
    pub fn expand(&self, lookup: impl Fn(&str) -> Option<String>) -> Vec<String> {
        if self.no_environment_expansion {
            return self.args.clone();
        }
        let mut expanded = Vec::with_capacity(self.args.len());
        for word in &self.args {
            match Piece::whole_word_variable(word) {
                Some(name) => {
                    expanded.extend(lookup(name).iter().flat_map(|value| split_value(value)));
                }
                None => expanded.push(
                    Piece::all(word)
                        .into_iter()
                        .map(|piece| match piece {
                            Piece::Text(text) => text.to_owned(),
                            Piece::Variable(name) => lookup(name).unwrap_or_default(),
                        })
                        .collect(),
                ),
            }
        }
        expanded
    }

    /// The variables that the arguments use.
    pub fn variables(&self) -> BTreeSet<String> {
        if self.no_environment_expansion {
            return BTreeSet::new();
        }
        let mut names = BTreeSet::new();
        for word in &self.args {
            names.extend(Piece::whole_word_variable(word).map(str::to_owned));
            names.extend(
                Piece::all(word)
                    .into_iter()
                    .filter_map(|piece| match piece {
                        Piece::Variable(name) => Some(name.to_owned()),
                        Piece::Text(_) => None,
                    }),
            );
        }
        names
    }

    /// Writes the command as a unit file would hold it.
    pub fn render(&self, os: Os) -> String {
        let mut program = String::new();
        for (mark, is_set) in [
            ('-', self.ignore_failure),
            ('@', self.argv0.is_some()),
            (':', self.no_environment_expansion),
            ('+', self.full_privileges),
        ] {
            if is_set {
                program.push(mark);
            }
        }
        program.push_str(&self.program);
        std::iter::once(&program)
            .chain(&self.argv0)
            .chain(&self.args)
            .map(|word| words::quote(&word.replace('%', "%%"), os))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

fn check_program(program: &str, os: Os) -> Result<(), ValueError> {
    let separators: &[char] = match os {
        Os::Linux => &['/'],
        Os::Windows => &['/', '\\', ':'],
    };
    if program.is_empty() {
        return Err(ValueError::new("there is no program after the marks"));
    }
    if program.contains('\0') {
        return Err(ValueError::new("the program contains a NUL character"));
    }
    if program.ends_with(separators) || program == "." || program == ".." {
        return Err(ValueError::new(format!(
            "`{program}` is a folder, not a program"
        )));
    }
    if !is_absolute(program, os) && program.contains(separators) {
        return Err(ValueError::with_hint(
            format!("`{program}` is neither an absolute path nor a plain file name"),
            "unit files have no current folder: write the whole path",
        ));
    }
    Ok(())
}

/// Words of a variable's value; quotes work, and one that is never closed runs to the end.
fn split_value(value: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for character in value.chars() {
        match (character, quote) {
            (space, None) if space.is_whitespace() => found.extend(word.take()),
            ('"' | '\'', None) => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (end, Some(open)) if end == open => quote = None,
            (other, _) => word.get_or_insert_default().push(other),
        }
    }
    found.extend(word);
    found
}

enum Piece<'a> {
    Text(&'a str),
    Variable(&'a str),
}

impl<'a> Piece<'a> {
    fn whole_word_variable(word: &'a str) -> Option<&'a str> {
        word.strip_prefix('$').filter(|name| is_variable_name(name))
    }

    fn all(word: &'a str) -> Vec<Self> {
        let mut pieces = Vec::new();
        let mut rest = word;
        while let Some(at) = rest.find('$') {
            pieces.push(Self::Text(&rest[..at]));
            let after = &rest[at + 1..];
            if let Some(remaining) = after.strip_prefix('$') {
                pieces.push(Self::Text("$"));
                rest = remaining;
            } else if let Some((name, remaining)) = braced(after) {
                pieces.push(Self::Variable(name));
                rest = remaining;
            } else {
                pieces.push(Self::Text("$"));
                rest = after;
            }
        }
        pieces.push(Self::Text(rest));
        pieces
    }
}

/// Looks no farther than a name reaches, so that many open braces cost little.
fn braced(after_dollar: &str) -> Option<(&str, &str)> {
    let inside = after_dollar.strip_prefix('{')?;
    let end =
        inside.find(|character: char| !character.is_ascii_alphanumeric() && character != '_')?;
    let (name, rest) = inside.split_at(end);
    let remaining = rest.strip_prefix('}')?;
    is_variable_name(name).then_some((name, remaining))
}

/// Letters, digits and underscores, not starting with a digit.
pub fn is_variable_name(name: &str) -> bool {
    let mut characters = name.chars();
    characters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && characters.all(|other| other.is_ascii_alphanumeric() || other == '_')
}
