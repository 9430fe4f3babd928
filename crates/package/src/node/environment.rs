//! The environment files of a generation, and paths of the root in texts meant for a node without
//! links. The same contents always give the same text: packages by name, variables by name.

use camino::Utf8Path;
use transom_host::files::path;
use transom_model::os::Os;

use super::manifest::Contents;
use super::places::{
    ENVIRONMENT, ENVIRONMENT_EXPORT, ENVIRONMENT_EXPORT_PS1, ENVIRONMENT_PS1, FAMILIAR,
};

const TITLE: &str = "# Pkgpanda provided environment variables\n";

/// The environment files of a generation by their names. On Linux they name the root, whose links
/// lead into whatever is active; on Windows the folder of the generation, which needs no link.
pub(super) fn render(contents: &Contents, generation: &Utf8Path) -> Vec<(&'static str, String)> {
    match contents.os {
        Os::Linux => {
            let root = &contents.root;
            let plain =
                format!("LD_LIBRARY_PATH={root}/lib\nPATH={root}/bin:/usr/bin:/bin:/sbin\n\n");
            let export =
                format!("export LD_LIBRARY_PATH={root}/lib\nexport PATH=\"{root}/bin:$PATH\"\n\n");
            vec![
                (
                    ENVIRONMENT,
                    file(contents, &plain, |k, v| format!("{k}={v}")),
                ),
                (
                    ENVIRONMENT_EXPORT,
                    file(contents, &export, |k, v| format!("export {k}={v}")),
                ),
            ]
        }
        Os::Windows => windows(contents, generation),
    }
}

fn windows(contents: &Contents, generation: &Utf8Path) -> Vec<(&'static str, String)> {
    let bin = path::join(Os::Windows, generation, "bin");
    let ours = format!(r"{bin};{bin}\scripts");
    let value = |value: &str| rewrite(value, &contents.root, generation);
    let plain = format!("PATH={ours};C:\\Windows\\system32;C:\\Windows\n\n");
    let export = format!("export PATH=\"{ours};$PATH\"\n\n");
    let ps1 = format!("$env:PATH=\"{ours};$env:SystemRoot\\system32;$env:SystemRoot\"\n\n");
    let export_ps1 = format!("$env:PATH=\"{ours};$env:PATH\"\n\n");
    let line = |k: &str, v: &str| format!("$env:{k}=\"{}\"", escape(&value(v)));
    vec![
        (
            ENVIRONMENT,
            file(contents, &plain, |k, v| format!("{k}={}", value(v))),
        ),
        (
            ENVIRONMENT_EXPORT,
            file(contents, &export, |k, v| format!("export {k}={}", value(v))),
        ),
        (ENVIRONMENT_PS1, file(contents, &ps1, line)),
        (ENVIRONMENT_EXPORT_PS1, file(contents, &export_ps1, line)),
    ]
}

fn file(contents: &Contents, head: &str, line: impl Fn(&str, &str) -> String) -> String {
    let mut text = format!("{TITLE}{head}");
    for package in &contents.packages {
        text.push_str("# package: ");
        text.push_str(package.id.as_str());
        text.push('\n');
        for (variable, value) in &package.environment {
            text.push_str(&line(variable, value));
            text.push('\n');
        }
        text.push('\n');
    }
    text
}

/// A value between the quotes of PowerShell. `$env:NAME` keeps its meaning, all else is literal.
fn escape(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for (at, character) in value.char_indices() {
        let rest = &value[at..];
        let is_variable = rest.starts_with("$env:") || rest.starts_with("${env:");
        if matches!(character, '`' | '"') || character == '$' && !is_variable {
            escaped.push('`');
        }
        escaped.push(character);
    }
    escaped
}

/// Lets mentions of the root's links (`C:\root\bin`, `C:\root\current\…`) name a generation's own
/// folder. Case and kind of separator do not matter, as nowhere on Windows.
pub(super) fn rewrite(text: &str, root: &Utf8Path, generation: &Utf8Path) -> String {
    let root = root.as_str().trim_end_matches(['\\', '/']);
    let mut rewritten = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        match mention(rest, root) {
            Some(length) => {
                rewritten.push_str(generation.as_str());
                rest = &rest[length..];
            }
            None => {
                rewritten.push(next);
                rest = &rest[next.len_utf8()..];
            }
        }
    }
    rewritten
}

/// How much of the text's beginning stands for the active generation's folder.
fn mention(text: &str, root: &str) -> Option<usize> {
    let same = |a: u8, b: u8| {
        let fold = |byte: u8| match byte {
            b'/' => b'\\',
            other => other.to_ascii_lowercase(),
        };
        fold(a) == fold(b)
    };
    let bytes = text.as_bytes();
    let is_root = bytes.len() > root.len()
        && root.bytes().zip(bytes).all(|(a, b)| same(a, *b))
        && matches!(bytes[root.len()], b'\\' | b'/');
    if !is_root {
        return None;
    }
    let below = &text[root.len() + 1..];
    let end = below
        .find(|c: char| !(c.is_alphanumeric() || matches!(c, '.' | '_' | '-')))
        .unwrap_or(below.len());
    let name = &below[..end];
    let is_known = |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    if is_known(&["current"]) {
        return Some(root.len() + 1 + end);
    }
    // The separator stays: what follows it is the same below the generation.
    (is_known(&FAMILIAR) || is_known(&[ENVIRONMENT_PS1, ENVIRONMENT_EXPORT_PS1]))
        .then_some(root.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mentions_of_links_become_the_generation_and_nothing_else_does() {
        let root = Utf8Path::new(r"C:\opt\mesosphere");
        let generation = Utf8Path::new(r"C:\opt\mesosphere\generations\7");
        for (text, expected) in [
            (
                r"ExecStart=C:\opt\mesosphere\bin\x.exe",
                r"ExecStart=C:\opt\mesosphere\generations\7\bin\x.exe",
            ),
            (
                r"-c:/OPT/mesosphere/Etc/a;C:\opt\mesosphere\lib",
                r"-C:\opt\mesosphere\generations\7/Etc/a;C:\opt\mesosphere\generations\7\lib",
            ),
            (
                r#""C:\opt\mesosphere\current\bin" C:\opt\mesosphere\environment.ps1"#,
                r#""C:\opt\mesosphere\generations\7\bin" C:\opt\mesosphere\generations\7\environment.ps1"#,
            ),
            (r"C:\opt\mesosphere\binary", r"C:\opt\mesosphere\binary"),
            (
                r"C:\opt\mesosphere\packages\a",
                r"C:\opt\mesosphere\packages\a",
            ),
            (r"C:\opt\mesospherebin", r"C:\opt\mesospherebin"),
            ("ä C:\\opt\\mesosphere", "ä C:\\opt\\mesosphere"),
        ] {
            assert_eq!(rewrite(text, root, generation), expected, "{text}");
        }
    }

    #[test]
    fn values_for_powershell_keep_variables_and_nothing_else_alive() {
        assert_eq!(
            escape(r#"a"b`c $x $env:PATH ${env:X}"#),
            r#"a`"b``c `$x $env:PATH ${env:X}"#
        );
    }
}
