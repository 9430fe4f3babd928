//! Writes many values at once and says how long it took: what `cargo xtask bench` times.
//!
//! `storm local FOLDER COUNT` writes into a store in a new folder, `storm etcd URL COUNT` into an etcd. Every write is
//! durable when it is counted; 64 clients write 2 KiB each.

use std::{sync::Arc, time::Instant};

use transom_store::{Etcd, EtcdOptions, Local, LocalOptions, Outcome, Store, Transaction};

const CLIENTS: usize = 64;
const SIZE: usize = 2 << 10;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [kind, place, count] = words.as_slice() else {
        return Err("usage: storm local FOLDER COUNT, or storm etcd URL COUNT".into());
    };
    let store: Arc<dyn Store> = match kind.as_str() {
        "local" => Arc::new(Local::open(place.as_str().into(), LocalOptions::default()).await?),
        _ => Arc::new(Etcd::connect(etcd(place)?).await?),
    };
    let count: usize = count.parse()?;
    let started = Instant::now();
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..CLIENTS {
        let store = Arc::clone(&store);
        clients.spawn(async move { write(&*store, client, count / CLIENTS).await });
    }
    while let Some(ended) = clients.join_next().await {
        ended??;
    }
    let seconds = started.elapsed().as_secs_f64();
    #[expect(clippy::print_stdout, reason = "the answer of the program")]
    {
        println!("{seconds}");
    }
    Ok(())
}

fn etcd(url: &str) -> Result<EtcdOptions, Failure> {
    Ok(EtcdOptions {
        endpoints: vec![url.parse()?],
        prefix: "/storm".to_owned(),
        tls: None,
    })
}

async fn write(store: &dyn Store, client: usize, count: usize) -> Result<(), Failure> {
    let value = vec![b'x'; SIZE];
    for number in 0..count {
        let key = format!("/storm/{}/{client}-{number}", std::process::id());
        match store
            .commit(Transaction::create(key, value.clone()))
            .await?
        {
            Outcome::Committed(_) => {}
            Outcome::Refused { .. } => return Err("a new key is there already".into()),
        }
    }
    Ok(())
}
