//! Where this machine's apt gets Debian from. The next release is taken from the same mirror, so no
//! host name is written down here.

/// The first mirror of Debian's main archive in a `.sources` file (deb822) or a `sources.list`.
pub(crate) fn mirror(text: &str) -> Option<&str> {
    text.lines().find_map(|line| {
        let uris = match line.strip_prefix("URIs:") {
            Some(uris) => uris,
            None => line.strip_prefix("deb ")?,
        };
        uris.split_whitespace()
            .find(|word| is_main_archive(word))
            .map(|word| word.trim_end_matches('/'))
    })
}

fn is_main_archive(word: &str) -> bool {
    word.contains("://") && word.trim_end_matches('/').ends_with("/debian")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sources_file_names_its_mirror() {
        let text = "Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm\n\n\
                    Types: deb\nURIs: http://mirror.example/debian-security\n";
        assert_eq!(mirror(text), Some("http://mirror.example/debian"));
    }

    #[test]
    fn a_sources_list_names_its_mirror_after_the_options() {
        let text = "# comment\ndeb https://other.example/apt stable main\n\
                    deb [arch=amd64 signed-by=/k] https://mirror.example/debian/ bookworm main\n";
        assert_eq!(mirror(text), Some("https://mirror.example/debian"));
    }

    #[test]
    fn foreign_repositories_are_not_debian() {
        assert_eq!(mirror("URIs: https://deb.example/node_20.x\n"), None);
        assert_eq!(mirror(""), None);
    }
}
