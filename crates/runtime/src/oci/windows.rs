//! There are no Linux containers on Windows: whoever asks is told so.

use std::future::{self, Ready};
use std::process::ExitCode;

use camino::Utf8Path;

use super::{BridgeSettings, OciSettings, Opened};
use crate::RuntimeError;
use crate::images::{Platform, Registries};

pub(super) fn open(
    _: &OciSettings,
    _: &Utf8Path,
    _: Platform,
    _: Registries,
    _: &BridgeSettings,
) -> Ready<Result<Opened, RuntimeError>> {
    future::ready(Err(not_supported()))
}

pub(super) fn remove_all(_: &OciSettings, _: &BridgeSettings) -> Ready<Result<(), RuntimeError>> {
    future::ready(Err(not_supported()))
}

fn not_supported() -> RuntimeError {
    RuntimeError::NotSupported(
        "the oci runtime needs Linux: use the process runtime on Windows".to_owned(),
    )
}

/// No shim runs on Windows.
pub fn shim_main(_arguments: &[String]) -> ExitCode {
    ExitCode::FAILURE
}
