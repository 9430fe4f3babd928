//! Connections that have not shown yet whose they are. Invariant: they never hold more than their share of all
//! places, and those of one address never more than a part of that, so whoever has a certificate gets in.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

/// A server with fewer places than this keeps none back: there is nothing to divide.
const SMALLEST_SHARED: usize = 16;
/// One address may have so many at least, however small the server is.
const FEWEST_FOR_EACH: usize = 8;

/// How strangers are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// There is room for one more that shows nothing.
    Open,
    /// Only a certificate gets this one further, and soon.
    CertificateOnly,
}

/// How many strangers there are.
#[derive(Debug)]
pub(super) struct Strangers {
    most: usize,
    most_for_each: usize,
    /// How many may be on their way to show a certificate when there is no room for others.
    most_hurried: usize,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    open: HashMap<IpAddr, usize>,
    all_open: usize,
    hurried: HashMap<IpAddr, usize>,
    all_hurried: usize,
}

impl Counts {
    fn of(&mut self, entry: Entry) -> (&mut HashMap<IpAddr, usize>, &mut usize) {
        match entry {
            Entry::Open => (&mut self.open, &mut self.all_open),
            Entry::CertificateOnly => (&mut self.hurried, &mut self.all_hurried),
        }
    }
}

impl Strangers {
    /// The strangers among so many connections.
    pub(super) fn new(places: usize) -> Self {
        let is_shared = places >= SMALLEST_SHARED;
        let most = if is_shared { places / 2 } else { places };
        Self {
            most,
            most_for_each: (places / 8).max(FEWEST_FOR_EACH).min(most),
            most_hurried: if is_shared { places / 4 } else { 0 },
            counts: Mutex::default(),
        }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        // Counts are right after each step, so a panic elsewhere does not spoil them.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a new connection; `None` if there is no room for it.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr) -> Option<Seat> {
        let source = source_of(address);
        let mut counts = self.counts();
        for (entry, most) in [
            (Entry::Open, self.most),
            (Entry::CertificateOnly, self.most_hurried),
        ] {
            let (sources, all) = counts.of(entry);
            let own = sources.get(&source).copied().unwrap_or_default();
            if *all < most && own < self.most_for_each {
                *all += 1;
                sources.insert(source, own + 1);
                let stranger = Stranger {
                    strangers: Arc::clone(self),
                    source,
                    entry,
                };
                return Some(Seat {
                    entry,
                    stranger: Mutex::new(Some(stranger)),
                    is_known: AtomicBool::new(false),
                    asked: AtomicU64::new(0),
                });
            }
        }
        None
    }
}

/// What counts as one source: whoever has one address of the sixth version has a whole network of them.
fn source_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) >> 64 << 64;
            Ipv6Addr::from(network).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

/// One that is counted, until this is dropped.
#[derive(Debug)]
struct Stranger {
    strangers: Arc<Strangers>,
    source: IpAddr,
    entry: Entry,
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let mut counts = self.strangers.counts();
        let (sources, all) = counts.of(self.entry);
        *all -= 1;
        if let Some(own) = sources.get_mut(&self.source) {
            *own -= 1;
            if *own == 0 {
                sources.remove(&self.source);
            }
        }
    }
}

/// What is known of one connection.
#[derive(Debug)]
pub(crate) struct Seat {
    entry: Entry,
    stranger: Mutex<Option<Stranger>>,
    is_known: AtomicBool,
    /// How many requests came.
    asked: AtomicU64,
}

impl Seat {
    pub(super) fn entry(&self) -> Entry {
        self.entry
    }

    /// Whoever is at the other end has shown who they are.
    pub(crate) fn prove(&self) {
        if self.is_known.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut stranger = self.stranger.lock().unwrap_or_else(PoisonError::into_inner);
        drop(stranger.take());
    }

    /// A request came.
    pub(super) fn ask(&self) {
        self.asked.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns once a stranger has asked nothing for `longest`; never for one who is known.
    pub(super) async fn idles(&self, longest: Duration) {
        let mut before = self.asked.load(Ordering::Acquire);
        loop {
            tokio::time::sleep(longest).await;
            if self.is_known.load(Ordering::Acquire) {
                return std::future::pending().await;
            }
            let now = self.asked.load(Ordering::Acquire);
            if now == before {
                return;
            }
            before = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn enter_many(strangers: &Arc<Strangers>, from: &str, many: usize) -> Vec<Seat> {
        let seats = (0..many).map_while(|_| strangers.enter(address(from)));
        seats.collect()
    }

    fn entries(seats: &[Seat]) -> (usize, usize) {
        let open = seats.iter().filter(|seat| seat.entry() == Entry::Open);
        let open = open.count();
        (open, seats.len() - open)
    }

    #[test]
    fn one_address_takes_a_part_and_all_of_them_a_half() {
        let strangers = Arc::new(Strangers::new(800));
        let one = enter_many(&strangers, "192.0.2.1", 1000);
        assert_eq!(entries(&one), (100, 100));
        let others: Vec<Seat> = (2..10)
            .flat_map(|last| enter_many(&strangers, &format!("192.0.2.{last}"), 1000))
            .collect();
        assert_eq!(entries(&others), (300, 100));
        assert!(strangers.enter(address("192.0.2.99")).is_none());
        drop(one);
        let seat = strangers.enter(address("192.0.2.99")).unwrap();
        assert_eq!(seat.entry(), Entry::Open);
    }

    #[test]
    fn whoever_is_known_is_no_stranger() {
        let strangers = Arc::new(Strangers::new(800));
        let known = enter_many(&strangers, "192.0.2.1", 200);
        assert!(strangers.enter(address("192.0.2.1")).is_none());
        for seat in &known {
            seat.prove();
            seat.prove();
        }
        let more = enter_many(&strangers, "192.0.2.1", 200);
        assert_eq!(entries(&more), (100, 100));
        drop((known, more));
        assert_eq!(strangers.counts().all_open, 0);
        assert!(strangers.counts().hurried.is_empty());
    }

    #[test]
    fn a_network_of_the_sixth_version_is_one_source() {
        for (one, other, same) in [
            ("2001:db8::1", "2001:db8::ffff:0:0:2", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
            ("::ffff:192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
        ] {
            let is_same = source_of(address(one)) == source_of(address(other));
            assert_eq!(is_same, same, "{one} {other}");
        }
    }

    #[test]
    fn a_small_server_keeps_nothing_back() {
        for places in 1..FEWEST_FOR_EACH {
            let strangers = Arc::new(Strangers::new(places));
            let seats = enter_many(&strangers, "192.0.2.1", 100);
            assert_eq!(entries(&seats), (places, 0));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_strangers_idle() {
        let strangers = Arc::new(Strangers::new(100));
        let seat = strangers.enter(address("192.0.2.1")).unwrap();
        let long = Duration::from_secs(30);
        let begun = tokio::time::Instant::now();
        seat.idles(long).await;
        assert_eq!(begun.elapsed(), long);
        let asks = async {
            for _ in 0..3 {
                tokio::time::sleep(long / 2).await;
                seat.ask();
            }
            seat.prove();
            tokio::time::sleep(long * 10).await;
        };
        tokio::select! {
            () = seat.idles(long) => panic!("it did not idle"),
            () = asks => {}
        }
    }
}
