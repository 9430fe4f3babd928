//! How to reach a runtime on this machine: `unix:///run/containerd/containerd.sock`,
//! `npipe:////./pipe/containerd-containerd`, or the bare path.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub(crate) use linux::connect;
#[cfg(windows)]
pub(crate) use windows::connect;

/// The path in an address, without its scheme.
pub(crate) fn path_of(address: &str) -> &str {
    let schemes = ["unix://", "npipe://"];
    let bare = schemes
        .iter()
        .find_map(|scheme| address.strip_prefix(scheme));
    bare.unwrap_or(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_path_with_or_without_a_scheme() {
        assert_eq!(path_of("unix:///run/c.sock"), "/run/c.sock");
        assert_eq!(path_of("/run/c.sock"), "/run/c.sock");
        assert_eq!(path_of("npipe:////./pipe/c"), "//./pipe/c");
        assert_eq!(path_of(r"\\.\pipe\c"), r"\\.\pipe\c");
    }
}
