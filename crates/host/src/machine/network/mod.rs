//! Interfaces, addresses and routes, read from the system's own tables. Reading only: changes are
//! operations of `route`.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(super) mod netlink;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub(super) use linux::{interfaces, routes};
#[cfg(windows)]
pub(super) use windows::{interfaces, routes};

/// A hardware address in the usual form; None if it is empty or all zero.
fn mac_text(bytes: &[u8]) -> Option<String> {
    if bytes.iter().all(|byte| *byte == 0) {
        return None;
    }
    let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(pairs.join(":"))
}
