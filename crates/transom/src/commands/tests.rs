//! Checks over the whole command line.

use super::*;

#[test]
fn the_command_line_contradicts_itself_nowhere() {
    command_line().debug_assert();
}

#[test]
fn every_visible_command_is_in_exactly_one_group() {
    let root = command_line();
    let mut grouped: Vec<&str> = GROUPS
        .iter()
        .flat_map(|(_, names)| names.iter().copied())
        .collect();
    let mut visible: Vec<&str> = root
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .map(clap::Command::get_name)
        .collect();
    grouped.sort_unstable();
    visible.sort_unstable();
    assert_eq!(grouped, visible);
}

#[test]
fn every_command_has_examples_and_every_option_an_explanation() {
    let mut root = command_line();
    root.build();
    for (name, command) in tree::walk(&root).into_iter().skip(1) {
        let after = command.get_after_help().map(ToString::to_string);
        let after = after.unwrap_or_default();
        assert!(after.starts_with("Examples:\n"), "{name} has no examples");
        assert!(!tree::about(command).is_empty(), "{name} says nothing");
        for argument in command.get_arguments() {
            assert!(argument.get_help().is_some(), "{name} {argument}");
        }
    }
}
