//! The reference page of unit files, written from the table that reads them.

use super::condition::{KINDS, UNDECIDABLE_KINDS};
use super::directives::{self, Directive, Section, Support};

/// The page `docs/reference/unit-files.md`.
pub fn reference_markdown() -> String {
    let mut page = vec![INTRODUCTION.to_owned()];
    for section in Section::ALL {
        page.push(format!("\n## [{}]\n\n", section.name()));
        let known: Vec<Directive> = directives::all()
            .filter(|entry| entry.section == section)
            .collect();
        page.push("| directive | value | meaning |\n|---|---|---|\n".to_owned());
        for entry in &known {
            let limit = match entry.support {
                Support::Full(_) => String::new(),
                Support::Limited(_, restriction) => format!(" ({restriction})"),
                Support::None(_) => continue,
            };
            page.push(format!(
                "| `{}=` | {} | {}{limit} |\n",
                entry.name, entry.value, entry.summary
            ));
        }
        push_not_supported(&mut page, &known);
        if section == Section::Unit {
            push_conditions(&mut page);
        }
    }
    page.concat()
}

fn push_not_supported(page: &mut Vec<String>, known: &[Directive]) {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for entry in known {
        let Support::None(reason) = entry.support else {
            continue;
        };
        let name = format!("`{}=`", entry.name);
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(name),
            None => reasons.push((reason, vec![name])),
        }
    }
    if reasons.is_empty() {
        return;
    }
    page.push("\nKnown and not supported; each use is reported:\n\n".to_owned());
    for (reason, names) in reasons {
        page.push(format!("- {reason}: {}\n", names.join(", ")));
    }
}

fn push_conditions(page: &mut Vec<String>) {
    let join = |names: &mut dyn Iterator<Item = &str>| {
        names
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    page.push("\n### Conditions\n\n".to_owned());
    page.push(CONDITIONS.to_owned());
    page.push(format!(
        "\nDecided: {}\n",
        join(&mut KINDS.iter().map(|(name, _)| *name))
    ));
    page.push(format!(
        "\nNever met, and reported, because nothing here can decide them: {}\n",
        join(&mut UNDECIDABLE_KINDS.into_iter())
    ));
}

const INTRODUCTION: &str = r#"# Unit files

This page is written by the table that reads unit files; a test keeps the two equal.

The supervisor reads `.service`, `.target` and `.timer` files with systemd's syntax: sections,
`Name=value`, comments with `#` and `;`, lines continued with a backslash, lists that grow with each
line and start over with an empty value, drop-ins in `<unit>.d/*.conf`, templates, aliases, and the
folders `<unit>.wants`, `<unit>.requires` and `<unit>.upholds`. A file has at most 1 MiB.

Nothing is ignored silently. A line that has no effect is a warning with its file and line; a unit
that cannot be used as it was meant is refused, with the reason. Names that begin with `X-` belong to
others and are left alone.

## Backslashes

What a backslash means depends on the system that the unit is for.

| | Linux | Windows |
|---|---|---|
| in a value | starts an escape: `\n`, `\t`, `\s`, `\\`, `\"`, `\x41`, `\u00e4` | an ordinary character: `C:\new\tool.exe`, `\\server\share` |
| before a quote | escapes it | `\"` is a quote, `\\"` is a backslash and the end of the quotation |
| at the end of a line | continues the line | continues the line if white space stands before it |

Paths that contain spaces are written in quotes on both systems:
`ExecStart="C:\Program Files\Demo\demo.exe" --port 80`.

On Windows a masked unit is an empty file or one that holds only `# masked by transom`, and a link is
a small file that holds the path of the unit. In file names of units `\` is written `%5C` and `:`
is written `%3A`.

## Commands

`ExecStart=` and the others take a program and its words. In front of the program: `-` ignores its
failure, `@` takes the next word as the name it sees, `:` keeps `$` as it is, `+`, `!` and `!!` run it
without `User=`. `;` as a word of its own separates commands. `$NAME` as a word of its own becomes as
many words as its value has, `${NAME}` is replaced inside of a word, `$$` is a dollar sign. The
program is an absolute path or a name that is looked up in `PATH`.

## Calendar events

`Mon..Fri *-*-* 08:00:00 Europe/Berlin`: days of the week, date, time, zone, each but one optional.
Fields hold `*`, lists (`1,15`), ranges (`1..5`) and steps (`0/15`); `*-*~01` is the last day of a
month. Local times that a change of the clock skips do not happen. Local times that happen twice
count twice for events of every hour, and once for all others.
"#;

const CONDITIONS: &str = "Each of these names follows `Condition` (the unit is skipped) or `Assert` (the start fails). `!`
negates; of the conditions with `|` in front one is enough. An empty value takes all back.
";
