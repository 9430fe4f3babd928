//! The kubeconfig of the administrator in the data folder. Invariant: the certificate in it is one that the server
//! takes, also when the server has run for longer than a certificate lives.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use transom_host::files::{Access, FileError, Files, Native};

/// As often as the server looks whether its certificates end.
const OFTEN: Duration = Duration::from_mins(10);

/// Writes it, readable by its owner only.
pub(super) fn write(file: &Utf8Path, text: &str) -> Result<(), FileError> {
    Native.write_durable(file, text.as_bytes(), Access::Secret)
}

/// Writes it again whenever there is another one. `written` is what the file has.
pub(super) async fn keep(file: Utf8PathBuf, mut written: String, current: impl Fn() -> String) {
    loop {
        tokio::time::sleep(OFTEN).await;
        let text = current();
        if text == written {
            continue;
        }
        match write(&file, &text) {
            Ok(()) => {
                tracing::info!(%file, "wrote the kubeconfig of the administrator anew");
                written = text;
            }
            Err(error) => {
                tracing::error!(%file, %error, "could not write the kubeconfig; trying again later");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_renewed_certificate_comes_into_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = Utf8PathBuf::from_path_buf(folder.path().join("admin.kubeconfig")).unwrap();
        write(&file, "first").unwrap();
        let current = Arc::new(Mutex::new("first".to_owned()));
        let keeping = tokio::spawn(keep(file.clone(), "first".to_owned(), {
            let current = Arc::clone(&current);
            move || current.lock().unwrap().clone()
        }));
        for text in ["first", "second", "third"] {
            text.clone_into(&mut current.lock().unwrap());
            tokio::time::sleep(2 * OFTEN).await;
            assert_eq!(fs_err::read_to_string(&file).unwrap(), text);
        }
        keeping.abort();
    }
}
