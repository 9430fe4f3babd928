//! Command lines print as they are read, on both systems, and expand without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use transom_model::os::Os;
use transom_supervisor::unit::ExecCommand;

fuzz_target!(|text: &str| {
    for os in [Os::Linux, Os::Windows] {
        // Without specifiers a percent sign is written twice.
        let plain = |word: &str| Ok(word.replace("%%", "%"));
        let Ok(parsed) = ExecCommand::parse_line(text, os, plain) else {
            continue;
        };
        for command in parsed.commands {
            let again = ExecCommand::parse_line(&command.render(os), os, plain).expect("a printed command can be read");
            assert_eq!(vec![command.clone()], again.commands);
            command.expand(|name| Some(format!("a '{name}' b")));
        }
    }
});
