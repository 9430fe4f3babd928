//! Links in proxied pages: what a page calls `/x` is below the proxy's own path for the browser.
//!
//! Only links to the same host are changed, and everything that is not understood stays as it is.

/// Between whom a page is handed on.
#[derive(Clone, Debug)]
pub(super) struct Link<'a> {
    /// The path up to the proxied one, like `/api/v1/nodes/n/proxy`.
    pub(super) prefix: &'a str,
    /// Where the page comes from, as `host:port`.
    pub(super) source: &'a str,
    /// What the client calls this server.
    pub(super) asked: &'a str,
}

impl Link<'_> {
    /// The address for the client; `None` if it is right as it is.
    pub(super) fn rewrite(&self, address: &str) -> Option<String> {
        let (head, host, rest) = split(address)?;
        let is_ours = host.is_empty() || host == self.source || host == self.asked;
        if !is_ours || !rest.starts_with('/') {
            return None;
        }
        let kept = if host == self.asked { head } else { "" };
        let path_end = rest.find(['?', '#']).unwrap_or(rest.len());
        let prefix = if rest[..path_end].starts_with(self.prefix) {
            ""
        } else {
            self.prefix.trim_end_matches('/')
        };
        let rewritten = format!("{kept}{prefix}{rest}");
        (rewritten != address).then_some(rewritten)
    }

    /// A page with its links rewritten.
    pub(super) fn page(&self, page: &str) -> String {
        let mut out = String::with_capacity(page.len() + page.len() / 16);
        let mut rest = page;
        while let Some(at) = rest.find('<') {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            let end = if rest.starts_with("<!--") {
                rest.find("-->").map(|end| end + 3)
            } else {
                tag_end(rest)
            };
            let Some(end) = end else { break };
            let tag = &rest[..end];
            rest = &rest[end..];
            let name = tag_name(tag);
            self.tag(tag, &name, &mut out);
            // What stands in these elements is no markup.
            if matches!(name.as_str(), "script" | "style" | "textarea" | "title") {
                let close = closing(rest, &name);
                out.push_str(&rest[..close]);
                rest = &rest[close..];
            }
        }
        out.push_str(rest);
        out
    }

    /// One tag, with the addresses in its attributes rewritten.
    fn tag(&self, tag: &str, name: &str, out: &mut String) {
        let links = link_attributes(name);
        if links.is_empty() {
            out.push_str(tag);
            return;
        }
        let mut copied = 0;
        for (attribute, from, to) in attributes(tag) {
            let is_link = links
                .iter()
                .any(|link| link.eq_ignore_ascii_case(attribute));
            if is_link && let Some(rewritten) = self.rewrite(&tag[from..to]) {
                out.push_str(&tag[copied..from]);
                out.push_str(&rewritten);
                copied = to;
            }
        }
        out.push_str(&tag[copied..]);
    }
}

/// Scheme with host, host alone, and what follows. `None` for addresses that no page of ours can mean.
fn split(address: &str) -> Option<(&str, &str, &str)> {
    let head = ["http://", "https://", "//"]
        .into_iter()
        .find(|head| address.starts_with(head));
    let Some(head) = head else {
        return address.starts_with('/').then_some(("", "", address));
    };
    let after = &address[head.len()..];
    let end = after.find(['/', '?', '#']).unwrap_or(after.len());
    let whole = head.len() + end;
    Some((&address[..whole], &after[..end], &after[end..]))
}

/// Where a tag ends, past its `>`; quotes may hold one.
fn tag_end(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match (quote, byte) {
            (None, b'>') => return Some(at + 1),
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    None
}

/// In small letters; empty for what is no opening tag.
fn tag_name(tag: &str) -> String {
    tag[1..]
        .chars()
        .take_while(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_lowercase())
        .collect()
}

/// Where the closing tag of an element begins, or the end.
fn closing(text: &str, name: &str) -> usize {
    let mut from = 0;
    while let Some(at) = text[from..].find("</") {
        let at = from + at;
        let found = text[at + 2..].get(..name.len());
        if found.is_some_and(|found| found.eq_ignore_ascii_case(name)) {
            return at;
        }
        from = at + 2;
    }
    text.len()
}

/// The attributes of a tag: the name, and where the value begins and ends.
fn attributes(tag: &str) -> Vec<(&str, usize, usize)> {
    let bytes = tag.as_bytes();
    let skip = |mut at: usize, is_in: &dyn Fn(u8) -> bool| {
        while at < bytes.len() && is_in(bytes[at]) {
            at += 1;
        }
        at
    };
    let is_space = |byte: u8| byte.is_ascii_whitespace() || byte == b'/';
    let is_name = |byte: u8| !is_space(byte) && byte != b'=' && byte != b'>';
    let mut found = Vec::new();
    let mut at = skip(1, &is_name);
    loop {
        at = skip(at, &is_space);
        let name_end = skip(at, &is_name);
        if name_end == at {
            return found;
        }
        let name = &tag[at..name_end];
        at = skip(name_end, &|byte| byte.is_ascii_whitespace());
        if bytes.get(at) != Some(&b'=') {
            continue;
        }
        at = skip(at + 1, &|byte| byte.is_ascii_whitespace());
        let quote = bytes
            .get(at)
            .copied()
            .filter(|byte| matches!(byte, b'"' | b'\''));
        let (from, to, next) = if let Some(quote) = quote {
            let end = skip(at + 1, &|byte| byte != quote);
            (at + 1, end, end + 1)
        } else {
            let end = skip(at, &|byte| !byte.is_ascii_whitespace() && byte != b'>');
            (at, end, end)
        };
        found.push((name, from, to));
        at = next.min(bytes.len());
    }
}

/// The attributes of an element that hold an address, as upstream knows them.
fn link_attributes(name: &str) -> &'static [&'static str] {
    match name {
        "a" | "area" | "base" | "link" => &["href"],
        "applet" => &["codebase"],
        "audio" | "embed" | "script" | "source" => &["src"],
        "blockquote" | "del" | "ins" | "q" => &["cite"],
        "body" => &["background"],
        "button" => &["formaction"],
        "command" => &["icon"],
        "form" => &["action"],
        "frame" | "iframe" => &["longdesc", "src"],
        "head" => &["profile"],
        "html" => &["manifest"],
        "img" => &["longdesc", "src", "usemap"],
        "input" => &["formaction", "src", "usemap"],
        "object" => &["classid", "codebase", "data", "usemap"],
        "video" => &["poster", "src"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: Link<'_> = Link {
        prefix: "/api/v1/namespaces/n/pods/p/proxy",
        source: "10.0.0.1:80",
        asked: "api.example:6443",
    };

    #[test]
    fn links_to_the_same_host_stay_below_the_proxy() {
        for (address, expected) in [
            ("/x", Some("/api/v1/namespaces/n/pods/p/proxy/x")),
            ("/", Some("/api/v1/namespaces/n/pods/p/proxy/")),
            (
                "/a?b=/c#d",
                Some("/api/v1/namespaces/n/pods/p/proxy/a?b=/c#d"),
            ),
            (
                "http://10.0.0.1:80/x",
                Some("/api/v1/namespaces/n/pods/p/proxy/x"),
            ),
            (
                "https://api.example:6443/x",
                Some("https://api.example:6443/api/v1/namespaces/n/pods/p/proxy/x"),
            ),
            ("/api/v1/namespaces/n/pods/p/proxy/x", None),
            ("x", None),
            ("?q", None),
            ("#top", None),
            ("mailto:x@example.org", None),
            ("https://other.example/x", None),
            ("//other.example/x", None),
            ("http://10.0.0.1:80", None),
        ] {
            assert_eq!(LINK.rewrite(address).as_deref(), expected, "{address}");
        }
    }

    #[test]
    fn pages_keep_everything_but_their_links() {
        let page = r#"<!DOCTYPE html><!-- <a href="/no"> --><a class=x href="/yes">1 < 2</a>
<IMG SRC='/i.png' alt="a > b"><a href=/bare>x</a><p title="/no">/no</p><script src="/s.js">"<a href='/no'>"</script><a href="/end"#;
        let expected = r#"<!DOCTYPE html><!-- <a href="/no"> --><a class=x href="/P/yes">1 < 2</a>
<IMG SRC='/P/i.png' alt="a > b"><a href=/P/bare>x</a><p title="/no">/no</p><script src="/P/s.js">"<a href='/no'>"</script><a href="/end"#;
        let link = Link {
            prefix: "/P",
            ..LINK
        };
        assert_eq!(link.page(page), expected);
    }

    #[test]
    fn a_broken_page_is_handed_on_whole() {
        for page in [
            "<",
            "<a",
            "<a href",
            "<a href=",
            "<a href=\"",
            "</",
            "<>",
            "<!--",
            "<script>",
            "ä<ö href='/x'>",
        ] {
            assert_eq!(LINK.page(page), page);
        }
    }
}
