//! Walks over the command line as data: for the overview, the reference and the checks. Invariant:
//! what is documented is what is parsed, because both come from the same tree.

use std::fmt::Write as _;

use clap::Command;
use clap::builder::styling::Style;

/// The commands by group, as `transom` alone shows them.
pub(super) fn render_overview(root: &Command, groups: &[(&str, &[&str])]) -> String {
    const TITLE: Style = Style::new().bold().underline();
    const NAME: Style = Style::new().bold();
    let longest = root
        .get_subcommands()
        .map(|command| command.get_name().len());
    let longest = longest.max().unwrap_or(0);
    let mut text = String::new();
    for (title, names) in groups {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{TITLE}{title}:{TITLE:#}");
        for command in names.iter().filter_map(|name| root.find_subcommand(name)) {
            let name = command.get_name();
            let about = about(command);
            let _ = writeln!(text, "  {NAME}{name:<longest$}{NAME:#}  {about}");
        }
        text.push('\n');
    }
    text.trim_end().to_owned()
}

/// The first sentence about a command.
pub(super) fn about(command: &Command) -> String {
    command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default()
}

/// Every visible command below `root` with its full name, parents first. `root` must be built.
pub(super) fn walk(root: &Command) -> Vec<(String, &Command)> {
    fn visit<'a>(command: &'a Command, name: &str, found: &mut Vec<(String, &'a Command)>) {
        found.push((name.to_owned(), command));
        for child in command
            .get_subcommands()
            .filter(|child| !child.is_hide_set())
        {
            visit(child, &format!("{name} {}", child.get_name()), found);
        }
    }
    let mut found = Vec::new();
    visit(root, root.get_name(), &mut found);
    found
}
