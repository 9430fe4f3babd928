//! A watch over a shared history: every reader pulls at its own pace, so none can delay a writer. A
//! reader never misses a revision: it takes notice of the newest one before it reads.

use std::sync::Arc;

use futures::stream;
use tokio::sync::watch;

use crate::{Batch, Pending, Revision, StoreError, Watch};

/// A batch is handed over once it has so many events; the last revision in it is whole all the same.
pub(crate) const EVENTS_PER_BATCH: usize = 512;

/// Where changes can be read from.
pub(crate) trait History: Send + Sync + 'static {
    /// Some changes after `after` to keys that begin with `prefix`, and how far they were looked for.
    ///
    /// [`Batch::revision`] is not above `after` if nothing has happened since.
    fn read<'a>(&'a self, prefix: &'a str, after: Revision) -> Pending<'a, Batch>;
}

struct Reader {
    history: Arc<dyn History>,
    prefix: String,
    after: Revision,
    newest: watch::Receiver<Revision>,
}

impl Reader {
    async fn next(&mut self) -> Result<Batch, StoreError> {
        loop {
            self.newest.borrow_and_update();
            let batch = self.history.read(&self.prefix, self.after).await?;
            if batch.revision > self.after {
                self.after = batch.revision;
                return Ok(batch);
            }
            self.newest
                .changed()
                .await
                .map_err(|_| StoreError::Closed)?;
        }
    }
}

/// Every change after `after`, and then each one as it happens, until the sender of `newest` is gone.
pub(crate) fn follow(
    history: Arc<dyn History>,
    prefix: String,
    after: Revision,
    newest: watch::Receiver<Revision>,
) -> Watch {
    let reader = Reader {
        history,
        prefix,
        after,
        newest,
    };
    Box::pin(stream::unfold(Some(reader), |reader| async move {
        let mut reader = reader?;
        let next = reader.next().await;
        let rest = next.is_ok().then_some(reader);
        Some((next, rest))
    }))
}

/// Tells watchers of a revision. Two writers may come here in another order than they wrote.
pub(crate) fn publish(newest: &watch::Sender<Revision>, revision: Revision) {
    newest.send_if_modified(|known| {
        let newer = revision > *known;
        if newer {
            *known = revision;
        }
        newer
    });
}
